"""Wrong inputs: one clear line, and nothing half done."""

import json
import os
import pathlib
import shutil
import struct
import subprocess

from harness import EFT, ROOT, Scene, Stack, check, end, everywhere, in_url, of_one_version, sh, sha256_of, wait_until


def refused(*command, says, status=None, env=None):
    done = sh(*map(str, command), ok=False, timeout=20, env=env)
    check(done.returncode != 0, f"{command} was accepted")
    check(status in (None, done.returncode), f"{command} ended with {done.returncode} instead of {status}")
    text = done.stderr.strip()
    check(says in text, f"{command} said {text!r} instead of {says!r}")
    check(len(text.splitlines()) <= 4, f"{command} said more than one clear thing:\n{text}")


@of_one_version("no stack comes up: ipv6_bad_addresses_are_refused has the words of IPv6")
def wrong_command_lines():
    with Scene("inputs") as scene:
        up = [EFT, "up", "--name", "lt", "--address", "10.77.3.2/24"]
        refused(*up, "--device", "tap:toolongforaninterface", says="no interface name")
        refused(*up, "--device", "bogus:x", says="expected tap:IF")
        refused(*up, "--device", "packet:nosuch0", says="there is no interface nosuch0")
        refused(EFT, "up", "--name", "lt", "--device", "tap:eftlt", "--address", "10.77.3.2", says="ADDRESS/PREFIX")
        refused(EFT, "up", "--name", "lt", "--device", "tap:eftlt", "--address", "127.0.0.2/8", says="cannot be a stack's address")
        refused(EFT, "up", "--name", "lt", "--device", "tap:eftlt", "--address", "10.77.3.255/24", says="which no host may have")
        refused(*up, "--device", "tap:eftlt", "--host-address", "10.77.3.2/24", says="the stack's own address")
        refused(*up, "--device", "tap:eftlt", "--host-address", "10.77.4.1/24", says="in none of the networks of tap:eftlt")
        refused(*up, "--device", "pair:/tmp/eftlt", "--host-address", "10.77.3.1/24", says="there is no TAP device")
        refused(*up, "--device", "tap:eftlt", "--gateway", "10.77.4.1", says="in none of the stack's networks")
        refused(EFT, "up", "--name", "a/b", "--device", "tap:eftlt", "--address", "10.77.3.2/24", says="no stack name")
        refused(*up, "--device", "tap:eftlt", "--record", "/dev/null/x", says="--record /dev/null/x: Not a directory")
        topology = scene.dir / "t.toml"
        good = (ROOT / "topologies/default.toml").read_text()
        topology.write_text(good.replace('name = "udp"', 'name = "upd"'))
        refused(*up, "--device", "tap:eftlt", "--topology", topology, says="unknown component `upd`")
        topology.write_text(good.replace('["ip", "filter"]', '["tcp", "filter"]'))
        refused(*up, "--device", "tap:eftlt", "--topology", topology, says="forbidden")
        for name, more, says in (("ip", "Edge", "`Edge` is not a name of a process: use 1 to 32 of a-z, 0-9, `-`"),
                                 ("cores", "a", "`cores` has rights that no other may have")):
            topology.write_text(good.replace(f'name = "{name}"', f'name = "{name}"\nprocess = "{more}"'))
            refused(*up, "--device", "tap:eftlt", "--topology", topology, says=says)
        topology.write_text(good.replace('name = "tcp"', 'name = "tcp"\nprocess = "a"\ncpu = 0')
                            .replace('name = "nic"', 'name = "nic"\nprocess = "a"'))
        refused(*up, "--device", "tap:eftlt", "--topology", topology, says="give them the same `cpu`")
        refused(EFT, "run", "--name", "nosuch", "--", "true", says="there is no running stack `nosuch`")
        refused(EFT, "ps", "--name", "nosuch", says="there is no running stack `nosuch`")
        check("eftlt" not in sh("ip", "-o", "link").stdout, "a refused start left a device")


def what_shared_processes_cannot():
    with Scene("shared") as scene:
        stack = Stack(scene, topology=ROOT / "topologies/edge.toml")
        refused(EFT, "update", "--name", stack.name, "ip", says="share a process, and cannot be updated yet")
        refused(EFT, "sched", "--name", stack.name, "policy", "adaptive", says="only `fixed` is possible")
        check("killed with what shares its process: " in stack.eft("kill", "filter").stdout, "who dies with it")


def names_and_addresses_in_use():
    with Scene("in-use") as scene:
        stack = Stack(scene)
        refused(EFT, "up", "--name", stack.name, "--device", "tap:eftother", "--address", "10.77.9.2/24", says="runs already")
        refused(EFT, "up", "--name", "lt2", "--device", "tap:eftother", "--address", f"{stack.address}/24", says="is in use")
        refused(EFT, "up", "--name", "lt2", "--device", "tap:eftother", "--address", f"{stack.host}/24", says="is in use")
        refused(EFT, "up", "--name", "lt2", "--device", f"tap:{stack.device}", "--address", "10.77.9.2/24", says="in use")


SPEAK = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv) {
    union { struct sockaddr any; struct sockaddr_in v4; struct sockaddr_in6 v6; } to = {0}, own;
    socklen_t len = sizeof own;
    int six = inet_pton(AF_INET6, argv[1], &to.v6.sin6_addr);
    to.any.sa_family = six ? AF_INET6 : AF_INET;
    to.v4.sin_port = htons(8000);
    int s = socket(to.any.sa_family, SOCK_STREAM, 0);
    if (!six) inet_pton(AF_INET, argv[1], &to.v4.sin_addr);
    if (connect(s, &to.any, six ? sizeof to.v6 : sizeof to.v4)) return perror("connect"), 1;
    char *text = malloc(6), name[INET6_ADDRSTRLEN];
    if (write(s, "hello", 6) != 6 || read(s, text, 6) != 6) return 2;
    getsockname(s, &own.any, &len);
    printf("%s from %s\n", text, inet_ntop(own.any.sa_family, six ? (void *)&own.v6.sin6_addr : &own.v4.sin_addr, name, sizeof name));
    free(text);
}
"""


def speaker(scene, name, *compiler):
    """A program that sends `hello` to port 8000 of its argument, and prints the echo and its own address."""
    source, program = scene.dir / "speak.c", scene.dir / name
    source.write_text(SPEAK)
    sh(*compiler, "-o", str(program), str(source))
    return program


def echo(scene, stack):
    scene.start(*stack.beside("socat", f"TCP-LISTEN:8000,bind={in_url(stack.host)},pf=ip{Stack.usual_version},fork,reuseaddr", "EXEC:cat"))
    wait_until(lambda: sh(*stack.beside("ss", "-Hltn", "sport = :8000")).stdout, 10, "socat to listen")


def programs_that_cannot_be_preloaded():
    with Scene("static") as scene:
        stack = Stack(scene)
        echo(scene, stack)
        static, musl = speaker(scene, "static", "cc", "-static"), speaker(scene, "musl", "musl-gcc")
        setuid = scene.dir / "setuid"
        shutil.copy("/usr/bin/true", setuid)
        setuid.chmod(0o4755)
        refused(*stack.on(setuid), says="setuid", status=126)
        refused(*stack.on("nosuchprogram"), says="command not found", status=127)
        refused(*stack.on("/nosuch/program"), says="No such file", status=127)
        refused(*stack.on(scene.dir / "speak.c"), says="not executable", status=126)
        # A program or its descendant must not move to the kernel's network unnoticed.
        for program in (static, musl):
            for command in ([program, stack.host], ["sh", "-c", f"{program} {stack.host}"], ["env", "-i", program, stack.host]):
                said = sh(*stack.on(*command)).stdout
                check(said == f"hello from {stack.address}\n", f"{command}: {said!r}")
        # To use the kernel's network anyway, the user says so; this holds for the program and its children.
        allowed = {**os.environ, "EFT_UNSHIMMED": "allow"}
        for command in ([static, stack.host], ["sh", "-c", f"{static} {stack.host}"]):
            said = sh(*stack.on(*command), env=allowed).stdout
            check(said == f"hello from {stack.host}\n", f"{command} allowed on the kernel: {said!r}")


def programs_with_libraries_of_their_own():
    """AddressSanitizer must be the first library, and calls libc before libc is ready."""
    with Scene("sanitized") as scene:
        stack = Stack(scene)
        echo(scene, stack)
        for name, *compiler in (("plain", "cc"), ("sanitized", "cc", "-fsanitize=address")):
            said = sh(*stack.on(speaker(scene, name, *compiler), stack.host)).stdout
            check(said == f"hello from {stack.address}\n", f"{name}: {said!r}")
        told = sh(*stack.on("valgrind", "-q", scene.dir / "plain", stack.host), ok=False, timeout=300)
        check(told.stdout == f"hello from {stack.address}\n", f"valgrind: {told.stdout!r} {told.stderr!r}")


def end_of_segments(elf):
    """The offset in a 64-bit ELF file at which its last loaded segment ends."""
    headers, = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    segments = [struct.unpack_from("<IIQQQQ", elf, headers + i * size) for i in range(count)]
    return max(offset + length for kind, _, offset, _, _, length in segments if kind == 1)


def a_library_that_is_none():
    with Scene("corrupt") as scene:
        stack = Stack(scene)
        eft, library = scene.dir / "eft", scene.dir / "libeft.so"
        shutil.copy(EFT, eft)
        whole = (ROOT / "target/release/libeft.so").read_bytes()
        # Behind the loaded segments there may be as much again for debuggers, which the library does not need.
        for bytes_ in b"", b"nothing of the kind\n" * 50, whole[:5000], whole[:end_of_segments(whole) // 2]:
            library.write_bytes(bytes_)
            refused(eft, "run", "--name", stack.name, "--", "true", says="libeft.so cannot be loaded", status=126)
        library.write_bytes(whole)
        sh(eft, "run", "--name", stack.name, "--", "true")


def a_run_within_a_run():
    """`eft run --name B` in a program on A runs on B, or reports why not."""
    with Scene("nested") as scene:
        stacks = Stack(scene), Stack(scene, name="lt2", net=79)
        for stack in stacks:
            echo(scene, stack)
        speak = speaker(scene, "speak", "cc")
        for inner in stacks:
            for command in (inner.on(speak, inner.host), ["sh", "-c", " ".join(inner.on(speak, inner.host))],
                            inner.on("sh", "-c", f"{speak} {inner.host}")):
                said = sh(*stacks[0].on(*command)).stdout
                check(said == f"hello from {inner.address}\n", f"{command} on {stacks[0].name}: {said!r}")
        inherits = ("import os, socket, sys\ns = socket.create_connection((sys.argv[1], 8000)); s.set_inheritable(True)\n"
                    "os.execv(sys.argv[2], sys.argv[2:])")
        refused(*stacks[0].on("python3", "-c", inherits, stacks[0].host, *stacks[1].on("true")), says="inherit sockets")


def queues_of_what_was_read():
    """RECV-Q counts what the program has not read, even after a download that was read to its end."""
    serve = ("import socket, sys, time\nl = socket.create_server((sys.argv[1], 8000), family=socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET)\nc = l.accept()[0]\n"
             "c.sendall(bytes(1_700_000)); c.recv(1); c.sendall(bytes(1000)); time.sleep(60)")
    load = ("import socket, sys, time\nl = socket.create_server((sys.argv[2], 8001), family=socket.AF_INET6 if ':' in sys.argv[2] else socket.AF_INET)\n"
            "s = socket.create_connection((sys.argv[1], 8000)); n = 0\n"
            "while n < 1_700_000: n += len(s.recv(65536))\n"
            "print('read', flush=True); sys.stdin.readline(); s.send(b'x'); time.sleep(60)")
    with Scene("queues") as scene:
        stack = Stack(scene)
        scene.start(*stack.beside("python3", "-c", serve, stack.host))
        wait_until(lambda: sh(*stack.beside("ss", "-Hltn", "sport = :8000")).stdout, 10, "the server to listen")
        with subprocess.Popen(stack.on("python3", "-c", load, stack.host, everywhere()), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            try:
                check(client.stdout.readline() == "read\n", "the client read nothing")
                sockets = lambda: {s["state"]: s for s in json.loads(stack.eft("ss", "--json").stdout)["sockets"]}
                check(sockets()["ESTAB"]["recv_q"] == 0, f"all was read: {sockets()['ESTAB']}")
                client.stdin.write("more\n"), client.stdin.flush()
                wait_until(lambda: sockets()["ESTAB"]["recv_q"] == 1000, 10, "1000 unread bytes to be shown")
                listener = sockets()["LISTEN"]
                check((listener["local"], listener["remote"], listener["recv_q"]) == (f"{in_url(everywhere())}:8001", f"{in_url(everywhere())}:*", 0), f"{listener}")
                check(max(map(len, stack.eft("ss").stdout.splitlines())) <= 80, stack.eft("ss").stdout)
            finally:
                client.kill()


def segments_of_a_size_set_before_connect():
    """536 is also the kernel's value without TCP_MAXSEG: the shim must not confuse the two."""
    ask = ("import socket, sys\ns = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET); s.setsockopt(6, socket.TCP_MAXSEG, int(sys.argv[2]))\n"
           "s.connect((sys.argv[1], 8000)); print(s.getsockopt(6, socket.TCP_MAXSEG))")
    with Scene("segments") as scene:
        stack = Stack(scene)
        echo(scene, stack)
        for size in 536, 900:
            said = int(sh(*stack.on("python3", "-c", ask, stack.host, size)).stdout)
            check(size - 40 <= said <= size, f"a connection with segments of {size}: {said}")


def a_namespace_without_loopback():
    """Where `lo` is down, the kernel lets every address be bound; that does not make it an address of the host."""
    with Scene("no-lo") as scene:
        up = scene.start("unshare", "-n", EFT, "up", "--name", "lt", "--device", "tap:eftlt", "--address", "10.77.3.2/24")
        wait_until(lambda: up.log.read_text() or up.poll() is not None, 10, "the stack to say something")
        check(up.log.read_text().startswith("ready"), up.log.read_text())


def no_io_uring():
    """The rings would bypass the library; however a program asks for io_uring, it must find none."""
    ask = ("import ctypes; libc = ctypes.CDLL(None, use_errno=True); "
           "print(libc.syscall(425, 8, ctypes.create_string_buffer(512)), ctypes.get_errno())")
    with Scene("uring") as scene:
        stack = Stack(scene)
        said = sh(*stack.on("python3", "-c", ask)).stdout.strip()
        check(said == "-1 38", f"io_uring_setup on the stack: {said}")
        # This is not a property of the kernel that runs the test.
        beside = sh(*stack.beside("python3", "-c", ask)).stdout.strip()
        check(beside != "-1 38" or "io_uring" not in sh("cat", "/proc/kallsyms").stdout, f"beside it: {beside}")


def low_ports_after_setuid():
    """A program that gave up its privilege has none on the stack either."""
    ask = ("import os, socket, sys\nfamily = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET\nkept = socket.socket(family); kept.bind((sys.argv[1], 81)); kept.listen()\n"
           "os.setgid(65534); os.setuid(65534)\n"
           "for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:\n"
           "  for address in sys.argv[1:]:\n"
           "    try: socket.socket(family, kind).bind((address, 82)); print('bound')\n"
           "    except OSError as e: print(e.errno)\n")
    with Scene("setuid") as scene:
        stack, kernel = Stack(scene), scene.kernel()
        said = {side: sh(*side.on("python3", "-c", ask, side.address, everywhere())).stdout for side in (stack, kernel)}
        check(said[stack] == said[kernel] == "13\n" * 4, f"on the stack {said[stack]!r}, on the kernel {said[kernel]!r}")


def a_connect_that_cannot_begin():
    """Without a route the error is the same as on the kernel; the descriptor polls as there, and can be used again."""
    program = """
import select, socket, sys
v6 = ":" in sys.argv[1]
s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET)
said = []
try: s.connect(("fdfa::1" if v6 else "10.250.0.1", 80))
except OSError as e: said.append(e.errno)
p = select.poll(); p.register(s, select.POLLIN | select.POLLOUT)
said.append([events for _, events in p.poll(0)])
s.connect((sys.argv[1], 8000)); s.sendall(b"still useful"); s.shutdown(socket.SHUT_WR)
said.append(s.recv(100))
print(said)
"""
    def said(scene, side):
        echo = scene.start(*side.beside("socat", f"TCP-LISTEN:8000,bind={in_url(side.host)},pf=ip{Stack.usual_version},fork,reuseaddr", "EXEC:cat"))
        wait_until(lambda: sh(*side.beside("ss", "-Hltn", "sport = :8000")).stdout, 10, "socat to listen")
        out = sh(*side.on("python3", "-c", program, side.host)).stdout
        end(echo)
        return out
    with Scene("unreachable") as scene:
        on_stack, on_kernel = said(scene, Stack(scene, kind="veth")), said(scene, scene.kernel())
        check(on_stack == on_kernel and "still useful" in on_stack, f"on the stack {on_stack}, on the kernel {on_kernel}")


def no_privilege():
    with Scene("privilege") as scene:
        # `nobody` cannot reach every build folder; the copy lies where it can.
        out = sh("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", EFT, "up", "--name", "lt",
                 "--device", "tap:eftlt", "--address", "10.77.3.2/24", ok=False)
        check(out.returncode != 0, "a TAP device without privilege")
        check(len(out.stderr.strip().splitlines()) <= 2, out.stderr)


def filter_rules():
    with Scene("pf") as scene:
        stack, protocol = Stack(scene), "icmp6" if Stack.usual_version == 6 else "icmp"
        ping = ["ping", "-c", "1", "-W", "1", stack.address]
        check(sh(*ping, ok=False).returncode == 0, "no answer before any rule")
        rules = scene.dir / "pf.conf"
        rules.write_text(f"block in proto {protocol}\npass out all keep state\n")
        stack.eft("pf", "-f", str(rules))
        check(sh(*ping, ok=False).returncode != 0, "a blocked ping was answered")
        shown = stack.eft("pf", "-s", "rules").stdout
        check("block" in shown and protocol in shown, shown)
        rules.write_text("pass in all\nblock in on lt0 port\n")
        bad = stack.eft("pf", "-f", str(rules), ok=False)
        check(bad.returncode != 0 and "line 2" in bad.stderr and "column" in bad.stderr, f"a syntax error said {bad.stderr!r}")
        check(sh(*ping, ok=False).returncode != 0, "a bad file changed the rules")
        # The rules outlive the filter.
        stack.kill("filter")
        check(sh(*ping, ok=False).returncode != 0, "a reborn filter forgot its rules")
        rules.write_text("pass all keep state\n")
        stack.eft("pf", "-f", str(rules))
        wait_until(lambda: sh(*ping, ok=False).returncode == 0, 5, "an answer after the rules were opened")


def capture():
    with Scene("capture") as scene:
        stack = Stack(scene)
        # Binary data must not go to a terminal.
        master, terminal = os.openpty()
        done = subprocess.run([EFT, "capture", "--name", stack.name, "--count", "1"], stdout=terminal,
                              stderr=subprocess.PIPE, text=True, timeout=20)
        check(done.returncode == 1 and "-w FILE" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr)
        os.close(master), os.close(terminal)
        out = scene.dir / "c.pcapng"
        process = scene.start(EFT, "capture", "--name", stack.name, "-w", str(out), "-c", "6")
        wait_until(lambda: "capturing" in process.log.read_text(), 5, "the capture to begin")
        sh("ping", "-c", "4", "-i", "0.2", stack.address)
        process.wait(10)
        text = sh("tcpdump", "-nr", str(out)).stdout
        check("echo request" in text and "echo reply" in text, f"tcpdump reads {text!r}")


def local_delivery_and_two_stacks():
    with Scene("local") as scene:
        stack = Stack(scene)
        _, want = scene.file("www/f", 8 << 20)
        scene.start(*stack.on("python3", "-m", "http.server", "8000", "--bind", stack.address, "--directory", str(scene.dir / "www")))
        stack.listening(8000)
        got = sha256_of(stack.on("curl", "-sf", f"http://{in_url(stack.address)}:8000/f"))
        check(got == want, "a download from the stack to itself differs")


def pair():
    with Scene("pair") as scene:
        path = scene.dir / "pair.sock"
        up = lambda name, a: scene.start(EFT, "up", "--name", name, "--device", f"pair:{path}", "--address", f"{a}/24", log=f"{name}.log")
        one, two = up("ltp1", "10.77.4.1"), up("ltp2", "10.77.4.2")
        for p in (one, two):
            wait_until(lambda: "ready" in p.log.read_text(), 10, "both stacks")
        _, want = scene.file("www/f", 32 << 20)
        on = lambda name, *c: [EFT, "run", "--name", name, "--", *map(str, c)]
        scene.start(*on("ltp1", "python3", "-m", "http.server", "8000", "--bind", "10.77.4.1", "--directory", scene.dir / "www"))
        wait_until(lambda: sh(*on("ltp2", "curl", "-sf", "-o", "/dev/null", "-r", "0-0", "http://10.77.4.1:8000/f"), ok=False).returncode == 0, 10, "the server")
        check(sha256_of(on("ltp2", "curl", "-sf", "http://10.77.4.1:8000/f")) == want, "a download over the pair differs")


CASES = [
    wrong_command_lines, what_shared_processes_cannot, names_and_addresses_in_use, programs_that_cannot_be_preloaded, no_io_uring, no_privilege,
    programs_with_libraries_of_their_own, a_library_that_is_none, a_run_within_a_run, a_namespace_without_loopback,
    queues_of_what_was_read, segments_of_a_size_set_before_connect,
    low_ports_after_setuid, a_connect_that_cannot_begin, filter_rules,
    capture, local_delivery_and_two_stacks, pair,
]
