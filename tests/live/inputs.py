"""Wrong inputs: one clear line, nothing half done."""

import pathlib
import shutil
import subprocess

from harness import EFT, ROOT, Scene, Stack, check, end, sh, sha256_of, wait_until


def refused(*command, says, status=None):
    done = sh(*map(str, command), ok=False, timeout=20)
    check(done.returncode != 0, f"{command} was accepted")
    text = done.stderr.strip()
    check(says in text, f"{command} said {text!r} instead of {says!r}")
    check(len(text.splitlines()) <= 4, f"{command} said more than one clear thing:\n{text}")


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
        refused(*up, "--device", "tap:eftlt", "--gateway", "10.77.4.1", says="in none of the stack's networks")
        refused(EFT, "up", "--name", "a/b", "--device", "tap:eftlt", "--address", "10.77.3.2/24", says="no stack name")
        topology = scene.dir / "t.toml"
        good = (ROOT / "topologies/default.toml").read_text()
        topology.write_text(good.replace('name = "udp"', 'name = "upd"'))
        refused(*up, "--device", "tap:eftlt", "--topology", topology, says="unknown component `upd`")
        topology.write_text(good.replace('["ip", "filter"]', '["tcp", "filter"]'))
        refused(*up, "--device", "tap:eftlt", "--topology", topology, says="forbidden")
        refused(EFT, "run", "--name", "nosuch", "--", "true", says="there is no running stack `nosuch`")
        refused(EFT, "ps", "--name", "nosuch", says="there is no running stack `nosuch`")
        check("eftlt" not in sh("ip", "-o", "link").stdout, "a refused start left a device")


def names_and_addresses_in_use():
    with Scene("in-use") as scene:
        stack = Stack(scene)
        refused(EFT, "up", "--name", stack.name, "--device", "tap:eftother", "--address", "10.77.9.2/24", says="runs already")
        refused(EFT, "up", "--name", "lt2", "--device", "tap:eftother", "--address", f"{stack.address}/24", says="is in use")
        refused(EFT, "up", "--name", "lt2", "--device", "tap:eftother", "--address", f"{stack.host}/24", says="is in use")
        refused(EFT, "up", "--name", "lt2", "--device", f"tap:{stack.device}", "--address", "10.77.9.2/24", says="in use")


def programs_that_cannot_be_preloaded():
    with Scene("static") as scene:
        stack = Stack(scene)
        refused(*stack.on("/bin/busybox", "true"), says="statically linked")
        setuid = scene.dir / "setuid"
        shutil.copy("/usr/bin/true", setuid)
        setuid.chmod(0o4755)
        refused(*stack.on(setuid), says="setuid")
        refused(*stack.on("nosuchprogram"), says="command not found")
        # A descendant's exec must not slip onto the kernel unnoticed.
        out = sh(*stack.on("sh", "-c", "/bin/busybox true; echo status $?"), ok=False)
        check("static" in out.stderr, f"a static descendant ran silently: {out.stdout!r} {out.stderr!r}")


def no_io_uring():
    """Its rings would bypass the library; a program must find that there is none, however it asks."""
    ask = ("import ctypes; libc = ctypes.CDLL(None, use_errno=True); "
           "print(libc.syscall(425, 8, ctypes.create_string_buffer(512)), ctypes.get_errno())")
    with Scene("uring") as scene:
        stack = Stack(scene)
        said = sh(*stack.on("python3", "-c", ask)).stdout.strip()
        check(said == "-1 38", f"io_uring_setup on the stack: {said}")
        # Not an accident of the kernel that runs this.
        beside = sh(*stack.beside("python3", "-c", ask)).stdout.strip()
        check(beside != "-1 38" or "io_uring" not in sh("cat", "/proc/kallsyms").stdout, f"beside it: {beside}")


def low_ports_after_setuid():
    """A program that gave up its privilege has none here either."""
    ask = ("import os, socket, sys\nkept = socket.socket(); kept.bind((sys.argv[1], 81)); kept.listen()\n"
           "os.setgid(65534); os.setuid(65534)\n"
           "for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:\n"
           "  for address in sys.argv[1], '0.0.0.0':\n"
           "    try: socket.socket(type=kind).bind((address, 82)); print('bound')\n"
           "    except OSError as e: print(e.errno)\n")
    with Scene("setuid") as scene:
        stack, kernel = Stack(scene), scene.kernel()
        said = {side: sh(*side.on("python3", "-c", ask, side.address)).stdout for side in (stack, kernel)}
        check(said[stack] == said[kernel] == "13\n" * 4, f"on the stack {said[stack]!r}, on the kernel {said[kernel]!r}")


def a_connect_that_cannot_begin():
    """No route: the same error as on the kernel, the descriptor polls as there, and can be used again."""
    program = """
import select, socket, sys
s = socket.socket()
said = []
try: s.connect(("10.250.0.1", 80))
except OSError as e: said.append(e.errno)
p = select.poll(); p.register(s, select.POLLIN | select.POLLOUT)
said.append([events for _, events in p.poll(0)])
s.connect((sys.argv[1], 8000)); s.sendall(b"still useful"); s.shutdown(socket.SHUT_WR)
said.append(s.recv(100))
print(said)
"""
    def said(scene, side):
        echo = scene.start(*side.beside("socat", f"TCP-LISTEN:8000,bind={side.host},fork,reuseaddr", "EXEC:cat"))
        wait_until(lambda: sh(*side.beside("ss", "-Hltn", "sport = :8000")).stdout, 10, "socat to listen")
        out = sh(*side.on("python3", "-c", program, side.host)).stdout
        end(echo)
        return out
    with Scene("unreachable") as scene:
        on_stack, on_kernel = said(scene, Stack(scene, kind="veth")), said(scene, scene.kernel())
        check(on_stack == on_kernel and "still useful" in on_stack, f"on the stack {on_stack}, on the kernel {on_kernel}")


def no_privilege():
    with Scene("privilege") as scene:
        # `nobody` cannot reach the build folder everywhere; a copy lies where it can.
        out = sh("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", EFT, "up", "--name", "lt",
                 "--device", "tap:eftlt", "--address", "10.77.3.2/24", ok=False)
        check(out.returncode != 0, "a TAP device without privilege")
        check(len(out.stderr.strip().splitlines()) <= 2, out.stderr)


def filter_rules():
    with Scene("pf") as scene:
        stack = Stack(scene)
        ping = ["ping", "-c", "1", "-W", "1", stack.address]
        check(sh(*ping, ok=False).returncode == 0, "no answer before any rule")
        rules = scene.dir / "pf.conf"
        rules.write_text("block in proto icmp\npass out all keep state\n")
        stack.eft("pf", "-f", str(rules))
        check(sh(*ping, ok=False).returncode != 0, "a blocked ping was answered")
        shown = stack.eft("pf", "-s", "rules").stdout
        check("block" in shown and "icmp" in shown, shown)
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
        got = sha256_of(stack.on("curl", "-sf", f"http://{stack.address}:8000/f"))
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
    wrong_command_lines, names_and_addresses_in_use, programs_that_cannot_be_preloaded, no_io_uring, no_privilege,
    low_ports_after_setuid, a_connect_that_cannot_begin, filter_rules,
    capture, local_delivery_and_two_stacks, pair,
]
