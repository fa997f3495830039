"""Programs that cannot be preloaded: their calls are made by a proxy."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from groups import SEND
from harness import Failure, Scene, Stack, addresses, check, end, family, in_url, over_ipv6, processes_of_eft, seconds, sh, sha256_of, wait_until
from past import GO
from programs import PORT, quiet_wrk

SOURCE = pathlib.Path(__file__).with_name("proxied.c")
SERVED, FETCHED, CLOSED = 7008, 7009, 7010


def built(scene):
    """The program, as musl links it without and with a dynamic linker, and as glibc does."""
    programs = {}
    for name, *compiler in (("musl", "musl-gcc", "-static"), ("linked", "musl-gcc"), ("glibc", "gcc", "-static")):
        programs[name] = scene.dir / name
        sh(*compiler, "-O2", "-Wall", "-o", programs[name], SOURCE)
    return programs


def echoed(scene, side, program, path):
    """Checksums of what comes back from the program on this side, and of what comes back to it."""
    scene.start(*side.on(program, "serve", side.address, SERVED), log="serve.log")
    side.listening(SERVED)
    fetch = f"{program} fetch"
    there = [sha256_of(side.beside("bash", "-c", f"{fetch} {side.address} {SERVED} < {path}")) for _ in range(3)]
    back = [sha256_of(side.on("bash", "-c", f"exec {fetch} {side.host} {FETCHED} < {path}")) for _ in range(3)]
    return there + back


def programs_without_a_libc_to_preload():
    with Scene("proxied") as scene:
        programs = built(scene)
        path, want = scene.file("data", 8 << 20)
        for side in (scene.kernel(), Stack(scene)):
            scene.start(*side.beside(programs["musl"], "serve", side.host, FETCHED))
            wait_until(lambda: f":{FETCHED} " in sh(*side.beside("ss", "-ltn")).stdout, 10, "the echo")
            for program in programs.values():
                told = sh(*side.on(program, "check", side.host, FETCHED, CLOSED)).stdout
                check(told == "all well\n", f"{program.name} on {type(side).__name__}: {told!r}")
            sums = echoed(scene, side, programs["musl"], path)
            check(sums == [want] * 6, f"on {type(side).__name__}: {sums}, not {want}")
            for command in (side.on(programs["musl"], "many", side.host, FETCHED, "500"),
                            side.beside(programs["musl"], "many", side.address, SERVED, "500")):
                check(sh(*command).stdout == "all echoed\n", "connections at once")


def proxied_programs_survive_crashes():
    """tcp dies again and again while bytes go both ways."""
    with Scene("proxied-crash") as scene:
        program = built(scene)["musl"]
        stack = Stack(scene)
        path, want = scene.file("data", 48 << 20)
        scene.start(*stack.on(program, "serve", stack.address, SERVED))
        stack.listening(SERVED)
        fetch = f"{program} fetch {stack.address} {SERVED} < {path} | sha256sum"
        midway = 0
        for _ in range(30):
            client = subprocess.Popen(stack.beside("bash", "-c", fetch), stdout=subprocess.PIPE, text=True)
            time.sleep(0.05)
            while client.poll() is None:
                stack.kill("tcp")
                midway += client.poll() is None
                time.sleep(0.3)
            check(client.communicate(timeout=120)[0].split()[0] == want, f"what came back differs after {midway} crashes")
            if midway >= 3:
                return
        raise Failure("no transfer outlasted a crash")


def a_broken_connection_is_seen():
    """The other side resets it."""
    with Scene("proxied-reset") as scene:
        program = built(scene)["musl"]
        stack = Stack(scene)
        server = ("import socket, struct\n"
                  f"listener = socket.create_server(({stack.host!r}, {FETCHED}), family={family(stack.host)})\n"
                  "connection, _ = listener.accept()\n"
                  "connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))\n"
                  "input()\n")
        other = subprocess.Popen(stack.beside("python3", "-c", server), stdin=subprocess.PIPE)
        try:
            wait_until(lambda: f":{FETCHED} " in sh(*stack.beside("ss", "-ltn")).stdout, 10, "the server")
            client = scene.start(*stack.on(program, "hang", stack.host, FETCHED), log="hang.log")
            wait_until(lambda: "connected" in client.log.read_text(), 10, "a connection")
            other.communicate(b"\n", timeout=10)
            wait_until(lambda: client.poll() is not None, 10, "the program to end")
            check(client.log.read_text() == "connected\nConnection reset by peer\n", client.log.read_text())
        finally:
            other.kill()
            other.wait()


def a_dead_proxy_harms_its_program_alone():
    with Scene("proxied-dead") as scene:
        program = built(scene)["musl"]
        stack = Stack(scene)
        scene.start(*stack.beside(program, "serve", stack.host, FETCHED))
        stack.listening_beside(FETCHED)
        server = scene.start(*stack.on(program, "serve", stack.address, SERVED))
        stack.listening(SERVED)
        proxy, = [line.split()[0] for line in processes_of_eft("proxy --link")]
        client = scene.start(*stack.beside(program, "hang", stack.address, SERVED), log="hang.log")
        wait_until(lambda: "connected" in client.log.read_text(), 10, "a connection")
        os.kill(int(proxy), signal.SIGKILL)
        wait_until(lambda: client.poll() is not None, 10, "the connection to end")
        wait_until(lambda: server.poll() is not None, 10, "the program to fail")
        listens = lambda: any(s["state"] in ("LISTEN", "ESTABLISHED") for s in json.loads(stack.eft("ss", "--json").stdout)["sockets"])
        wait_until(lambda: not listens(), 10, "the end of its sockets")
        check(sh(*stack.on(program, "many", stack.host, FETCHED, "20")).stdout == "all echoed\n", "another program")


INHERIT = """
import socket, subprocess, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print(subprocess.run([sys.argv[3], "true"], stdin=connection).returncode, flush=True)
local, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
print(subprocess.run([sys.argv[3], "true"], stdin=local).returncode, flush=True)
"""


def sockets_of_preloaded_programs_are_not_inherited():
    """A plain read of one would find no bytes."""
    with Scene("proxied-inherit") as scene:
        stack = Stack(scene)
        scene.start(*stack.beside("socat", f"TCP-LISTEN:{FETCHED},bind={in_url(stack.host)},pf=ip{Stack.usual_version},fork,reuseaddr", "EXEC:cat"))
        stack.listening_beside(FETCHED)
        told = sh(*stack.on("python3", "-c", INHERIT, stack.host, FETCHED, "/bin/busybox"))
        check(told.stdout == "126\n0\n" and "inherit sockets" in told.stderr, f"{told.stdout!r} {told.stderr!r}")


def names_are_resolved_by_a_static_program():
    """By its own resolver, from the stack's name server."""
    if not shutil.which("go"):
        print("        (no Go toolchain here)")
        return
    with Scene("proxied-names") as scene:
        program = built_go(scene)
        stack = Stack(scene, extra=("--nameserver", addresses(77)[1]))
        scene.start(*stack.beside("dnsmasq", "-k", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file=", "--user=root",
                                  f"--listen-address={stack.host}", "--bind-interfaces", f"--host-record=far.test,{stack.host}"))
        path, want = scene.file("www/big", 1 << 20)
        scene.start(*stack.beside("python3", "-m", "http.server", PORT, "--bind", stack.host, "--directory", path.parent))
        stack.listening_beside(PORT)
        check(sha256_of(stack.on(program, "fetch", f"http://far.test:{PORT}/big")) == want, "what it fetched differs")


# Go names the interface of a membership by the kernel's number.
MEMBER = '''
package main

import ("fmt"; "net"; "os")

func main() {
	device, err := net.InterfaceByName(os.Args[1])
	if err != nil { panic(err) }
	group, err := net.ResolveUDPAddr("udp", os.Args[2])
	if err != nil { panic(err) }
	socket, err := net.ListenMulticastUDP("udp", device, group)
	if err != nil { panic(err) }
	fmt.Println("joined")
	bytes := make([]byte, 100)
	for {
		n, _, err := socket.ReadFromUDP(bytes)
		if err != nil { panic(err) }
		fmt.Println(string(bytes[:n]))
		if string(bytes[:n]) == "end" { return }
	}
}
'''


def members_without_a_libc_to_preload():
    with Scene("proxied-groups") as scene:
        stack = Stack(scene, kind="veth")
        group, port = ("ff15::1:9" if Stack.usual_version == 6 else "239.77.1.9"), 7400
        commands = [stack.on(program, "member", stack.address, port, group) for program in built(scene).values()]
        if shutil.which("go"):
            commands.append(stack.on(built_go(scene, MEMBER), stack.device, f"{in_url(group)}:{port}"))
        for command in commands:
            member = scene.start(*command, log="member.log")
            wait_until(lambda: "joined" in member.log.read_text(), 10, f"a member: {member.log.read_text()}")
            check(group in stack.eft("maddr").stdout, "the membership is not shown")
            sh(*stack.beside("python3", "-c", SEND, stack.host, group, port, "one", "end"))
            wait_until(lambda: member.poll() is not None, 10, "the member to end")
            check(member.log.read_text() == "joined\none\nend\n", f"{command}: {member.log.read_text()}")
            wait_until(lambda: group not in stack.eft("maddr").stdout, 10, "the end of the membership")
            end(member)


def busybox_is_on_the_stack():
    with Scene("busybox") as scene:
        stack = Stack(scene)
        path, want = scene.file("www/big", 8 << 20)
        scene.start(*stack.on("/bin/busybox", "httpd", "-f", "-p", PORT, "-h", path.parent))
        stack.listening(PORT)
        for _ in range(3):
            check(sha256_of(stack.beside("curl", "-sf", f"http://{in_url(stack.address)}:{PORT}/big")) == want, "a download differs")
        scene.start(*stack.beside("python3", "-m", "http.server", PORT, "--bind", stack.host, "--directory", path.parent))
        stack.listening_beside(PORT)
        url = f"http://{in_url(stack.host)}:{PORT}/big"
        check(sha256_of(stack.on("/bin/busybox", "wget", "-q", "-O", "-", url)) == want, "what wget fetched differs")
        # What it starts has its proxy, whether it could be preloaded or not.
        for command in (f"wget -q -O - {url}", f"curl -sf {url}"):
            check(sha256_of(stack.on("/bin/busybox", "sh", "-c", command)) == want, f"{command} in its shell: another file")


def built_go(scene, source=GO):
    (scene.dir / "main.go").write_text(source)
    program = scene.dir / "program"
    sh("go", "build", "-o", program, scene.dir / "main.go", timeout=600,
       env=os.environ | {"CGO_ENABLED": "0", "GO111MODULE": "off"})
    return program


def static_go_programs():
    """Without a Go toolchain there is nothing to run."""
    if not shutil.which("go"):
        print("        (no Go toolchain here)")
        return
    with Scene("static-go") as scene:
        program = built_go(scene)
        stack = Stack(scene)
        path, want = scene.file("www/big", 16 << 20)
        scene.file("www/small", 4096)
        scene.start(*stack.on(program, "serve", f":{PORT}", path.parent))
        stack.listening(PORT)
        url = f"http://{in_url(stack.address)}:{PORT}"
        quiet_wrk(stack, "/small", max(2, seconds() // 3), connections=100)
        check(sha256_of(stack.beside("curl", "-sf", f"{url}/big")) == want, "a download differs")
        said = sh(*stack.beside("curl", "-sf", f"{url}/child")).stdout
        check(said == "from a child\n<nil>", f"its child said {said!r}")
        back = sh("bash", "-c", f"echo over udp | timeout 3 socat -t1 - UDP:{in_url(stack.address)}:{PORT}", ok=False).stdout
        check(back == "over udp\n", f"a datagram came back as {back!r}")
        scene.start(*stack.beside("python3", "-m", "http.server", PORT, "--bind", stack.host, "--directory", path.parent))
        stack.listening_beside(PORT)
        url = f"http://{in_url(stack.host)}:{PORT}"
        for _ in range(5):
            check(sha256_of(stack.on(program, "fetch", f"{url}/big")) == want, "what it fetched differs")


CASES = [programs_without_a_libc_to_preload, proxied_programs_survive_crashes, a_broken_connection_is_seen,
         a_dead_proxy_harms_its_program_alone, sockets_of_preloaded_programs_are_not_inherited, busybox_is_on_the_stack, static_go_programs,
         names_are_resolved_by_a_static_program, members_without_a_libc_to_preload]
CASES += map(over_ipv6, (busybox_is_on_the_stack, programs_without_a_libc_to_preload, members_without_a_libc_to_preload))
