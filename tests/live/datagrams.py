"""UDP programs that use the network and the kernel's loopback at once.

On the stack, a wildcard socket receives from both; a program beside it on 127.0.0.1 uses the kernel."""

import os
import signal
import socket
import subprocess

from harness import Scene, Stack, addresses, check, end, everywhere, family, in_url, loopback, over_ipv6, sh, wait_until

# Sends a server datagrams of all sizes; prints how many came back unchanged.
ASK = """
import os, socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect((sys.argv[1], int(sys.argv[2])))
same = 0
for i in range(int(sys.argv[3])):
    data = os.urandom(1 + i * 37 % 8000)
    s.send(data)
    same += s.recv(65536) == data
print(same)
"""

ASYNCIO = """
import asyncio, sys
class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport
    def datagram_received(self, data, address):
        self.transport.sendto(data, address)
async def main():
    await asyncio.get_running_loop().create_datagram_endpoint(Echo, local_addr=(sys.argv[2], int(sys.argv[1])))
    print("ready", flush=True)
    await asyncio.sleep(1000)
asyncio.run(main())
"""

# Three workers of one socket: two forked, one of them a fresh program that inherited the descriptor.
DOMAIN = """
import os, socket, sys
if sys.argv[1] != "-":
    s = socket.socket(socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((sys.argv[2], int(sys.argv[1])))
    os.set_inheritable(s.fileno(), True)
    if os.fork() == 0:
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, __file__, "-", str(s.fileno())])
else:
    s = socket.socket(fileno=int(sys.argv[2]))
while True:
    data, address = s.recvfrom(65536)
    s.sendto(data, address)
"""

# Like a resolver: one socket, a server on the loopback and one beyond the stack; in both orders, unconnected and
# connected.
BOTH = """
import socket, sys
places = [("::1" if ":" in sys.argv[1] else "127.0.0.1", int(sys.argv[2])), (sys.argv[1], int(sys.argv[2]))]
for first in (0, 1):
    for connected in (False, True):
        s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(5)
        for i in range(20):
            place = places[(first + i) % 2]
            data = b"%d %d %d" % (first, connected, i)
            if connected:
                s.connect(place)
                s.send(data)
            else:
                s.sendto(data, place)
            answer, (host, port, *_) = s.recvfrom(100)
            assert (answer, (host, port)) == (data.upper(), place), place
print("fine")
"""

UPPER = """
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], int(sys.argv[2])))
while True:
    data, address = s.recvfrom(65536)
    s.sendto(data.upper(), address)
"""

# Receives the given number of datagrams, and a last one.
SINK = """
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
s.bind((sys.argv[2], int(sys.argv[1])))
n = 0
print("ready", flush=True)
while (data := s.recv(65536)) != b"end":
    n += 1
print(n, flush=True)
"""

# Binds one port again and again, right after it was closed; each time it must be reached on the loopback.
AGAIN = """
import socket, sys
place = (sys.argv[1], int(sys.argv[2]))
for i in range(int(sys.argv[4])):
    server = socket.socket(socket.AF_INET6 if ":" in place[0] else socket.AF_INET, socket.SOCK_DGRAM)
    server.settimeout(5)
    server.bind((sys.argv[3], place[1]))
    client = socket.socket(server.family, socket.SOCK_DGRAM)
    client.sendto(b"%d" % i, place)
    assert server.recv(100) == b"%d" % i
    server.close()
    client.close()
"""


def script(scene, name, text):
    path = scene.dir / f"{name}.py"
    path.write_text(text)
    return path


def answers(scene, stack, port, count=60):
    """Queries a server from both sides at once."""
    ask = script(scene, "ask", ASK)
    sides = {loopback(): ["python3", ask, loopback()], stack.address: stack.beside("python3", ask, stack.address)}
    askers = {
        side: subprocess.Popen([*map(str, command), str(port), str(count)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for side, command in sides.items()
    }
    for side, asker in askers.items():
        out, complaint = asker.communicate(timeout=60)
        check(out.strip() == str(count), f"over {side} {out.strip() or 'nothing'} of {count} came back\n{complaint[-500:]}")


def is_heard(port):
    """Whether a socket has this port on the kernel's loopback."""
    with socket.socket(socket.AF_INET6 if ":" in loopback() else socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.bind((loopback(), port))
        except OSError:
            return True
    return False


def heard(port):
    wait_until(lambda: is_heard(port), 10, f"a server on {port}")


def udp_server_on_both_sides():
    with Scene("udp-asyncio") as scene:
        stack = Stack(scene)
        server = scene.start(*stack.on("python3", script(scene, "echo", ASYNCIO), 7301, everywhere()), log="echo.log")
        wait_until(lambda: "ready" in server.log.read_text(), 10, "the server")
        answers(scene, stack, 7301, 300)
        # A successor of sockets watches what its predecessor watched; a successor of udp knows what its predecessor
        # knew.
        for name in ("sockets", "udp"):
            stack.kill(name)
            answers(scene, stack, 7301)
        end(server)
        wait_until(lambda: not is_heard(7301), 10, "the port on the loopback to be free")


def a_port_is_bound_again_at_once():
    """A closed socket's shadow is kept by several processes, and those wait for a CPU here."""
    with Scene("udp-again") as scene:
        stack = Stack(scene)
        for _ in range(3):
            scene.start("python3", "-c", "while True: pass")
        again = stack.on("python3", script(scene, "again", AGAIN), loopback(), 7309, everywhere(), 300)
        sh(*again, timeout=60)


def udp_server_of_several_processes():
    with Scene("udp-domain") as scene:
        stack = Stack(scene)
        # The server's processes form a group of their own and are ended together.
        server = scene.start(*stack.on("python3", script(scene, "domain", DOMAIN), 7302, everywhere()), start_new_session=True)
        try:
            heard(7302)
            answers(scene, stack, 7302, 200)
        finally:
            os.killpg(server.pid, signal.SIGKILL)
        wait_until(lambda: not is_heard(7302), 10, "the port on the loopback to be free")


def udp_client_of_both_sides():
    with Scene("udp-both") as scene:
        stack = Stack(scene)
        upper = script(scene, "upper", UPPER)
        scene.start("python3", str(upper), loopback(), "7303")
        scene.start(*stack.beside("python3", upper, stack.host, 7303))
        for address in (loopback(), stack.host):
            wait_until(lambda: f"{in_url(address)}:7303" in sh("ss", "-lun").stdout, 10, f"the server on {address}")
        out = sh(*stack.on("python3", script(scene, "both", BOTH), stack.host, 7303), ok=False)
        check(out.stdout.strip() == "fine", f"the client: {out.stdout}{out.stderr[-800:]}")


def socat_datagrams_on_both_sides():
    with Scene("udp-socat") as scene:
        stack, v = Stack(scene), Stack.usual_version
        scene.start(*stack.on("socat", f"UDP{v}-RECVFROM:7304,fork", "EXEC:cat"))
        server = scene.start(*stack.on("socat", f"UDP{v}-LISTEN:7305,fork,reuseaddr", "EXEC:cat"), start_new_session=True)
        for port in (7304, 7305):
            heard(port)
            for i in range(4):
                command, address = (["socat"], loopback()) if i % 2 else (stack.beside("socat"), stack.address)
                out = sh(*command, "-t1", "-", f"UDP{v}:{in_url(address)}:{port}", stdin=f"line {i}", ok=False)
                check(out.stdout == f"line {i}", f"over {address}:{port}: {out.stdout!r} {out.stderr!r}")
        # Its children wait forever, because datagrams have no end.
        os.killpg(server.pid, signal.SIGTERM)


def receiving_asks_the_kernel_for_nothing_that_it_was_not_told_of():
    with Scene("udp-calls") as scene:
        stack = Stack(scene)
        count = 2000
        trace = scene.dir / "trace"
        server = scene.start(*stack.on("strace", "-f", "-qq", "-e", "trace=recvmsg", "-o", trace, "python3",
                                       script(scene, "sink", SINK), 7306, everywhere()), log="sink.log")
        wait_until(lambda: "ready" in server.log.read_text(), 20, "the server")
        before = trace.read_text().count("recvmsg")
        sh(*stack.beside("python3", "-c", f"""
import socket, time
s = socket.socket({family(stack.address)}, socket.SOCK_DGRAM)
for i in range({count}):
    s.sendto(b"x" * 100, ("{stack.address}", 7306))
    if i % 50 == 0: time.sleep(0.01)
for i in range(20):
    s.sendto(b"end", ("{stack.address}", 7306)); time.sleep(0.1)"""))
        server.wait(30)
        got = int(server.log.read_text().split()[1])
        check(got > count / 2, f"only {got} of {count} datagrams came")
        calls = trace.read_text().count("recvmsg") - before
        check(calls == 0, f"{calls} looks at the loopback for {got} datagrams from elsewhere")


def name_server_that_asks_for_the_interfaces():
    """dnsmasq without listen-address accepts requests to the addresses that netlink lists, and resets others."""
    with Scene("dnsmasq") as scene:
        stack = Stack(scene)
        scene.start(*stack.on("dnsmasq", "-k", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--port=5353", "--pid-file=",
                              "--user=root", "--address=/x.test/10.1.2.3"))
        for way in "+notcp", "+tcp":
            ask = stack.beside("dig", f"@{stack.address}", "-p", "5353", way, "+short", "+tries=1", "+time=2", "x.test")
            wait_until(lambda: sh(*ask, ok=False).stdout.strip() == "10.1.2.3", 10, f"an answer to dig {way}")


def names_of_programs_that_ask_themselves():
    """dig and node read /etc/resolv.conf, with and without the right to mount a view of it."""
    with Scene("resolver") as scene:
        stack = Stack(scene, extra=("--nameserver", addresses(77)[1]))
        scene.start(*stack.beside("dnsmasq", "-k", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file=", "--user=root",
                                  f"--listen-address={stack.host}", "--bind-interfaces", "--address=/x.test/10.1.2.3"))
        before = open("/etc/resolv.conf").read()
        unprivileged = ["setpriv", "--bounding-set", "-sys_admin"]
        mounts = os.readlink("/proc/self/ns/mnt")
        for way, private in ([], True), (unprivileged, False):
            on = lambda *command: sh(*way, *stack.on(*command), ok=False, timeout=30).stdout
            check((on("readlink", "/proc/self/ns/mnt").strip() != mounts) == private, f"{way}: the mounts are private: {not private}")
            wait_until(lambda: on("dig", "+short", "+tries=1", "+time=2", "x.test").strip() == "10.1.2.3", 10, f"{way}: dig's answer")
            resolve = "require('dns').resolve4('x.test', (e, a) => console.log(e || a.join()))"
            said = on("node", "-e", resolve).strip()
            check(said == "10.1.2.3", f"{way}: node said {said!r}")
        check(open("/etc/resolv.conf").read() == before, "the host's own file was changed")


# Sends to a port without a listener, and asks for the error.
ERRORS = '''
import select, socket, struct, sys
six = sys.argv[2] == "6"
family, level, errors, hops = (socket.AF_INET6, socket.IPPROTO_IPV6, 25, socket.IPV6_UNICAST_HOPS) if six else (
    socket.AF_INET, socket.IPPROTO_IP, 11, socket.IP_TTL)
s = socket.socket(family, socket.SOCK_DGRAM)
s.setsockopt(level, errors, 1)
poll = select.poll()
poll.register(s, 0)
for word in open(sys.argv[1]):
    place, ttl, text = word.split()
    s.setsockopt(level, hops, int(ttl))
    s.sendto(text.encode(), (place, 9))
    events = poll.poll(5000)
    assert events and events[0][1] == select.POLLERR, events
    data, [(where, kind, cmsg)], flags, name = s.recvmsg(1000, 1000, socket.MSG_ERRQUEUE)
    assert (where, kind, flags, name[:2]) == (level, errors, socket.MSG_ERRQUEUE, (place, 9)), (where, kind, flags, name)
    errno, origin, kind, code = struct.unpack("=IBBB", cmsg[:7])
    offender = socket.inet_ntop(family, cmsg[24:40] if six else cmsg[20:24])
    print(errno, origin, kind, code, offender, data.decode(), poll.poll(0), flush=True)
'''


def errors_are_queued_for_a_program_that_asks():
    with Scene("udp-errors") as scene:
        stack = Stack(scene)
        pipe = scene.dir / "lines"
        os.mkfifo(pipe)
        asker = scene.start(*stack.on("python3", script(scene, "errors", ERRORS), pipe, Stack.usual_version), log="errors.log")
        lines = scene.stack_.enter_context(open(pipe, "w", buffering=1))

        def ask(line, answer, count):
            lines.write(line + "\n")
            wait_until(lambda: len(asker.log.read_text().splitlines()) >= count, 10, f"the answer to {line}")
            said = asker.log.read_text().splitlines()[count - 1]
            check(said == answer, f"{line}: {said}")

        # ECONNREFUSED by ICMP, of type and code "port unreachable".
        what = "111 3 1 4" if Stack.usual_version == 6 else "111 2 3 3"
        refused = f"{what} {stack.host}"
        ask(f"{stack.host} 64 first", f"{refused} first []", 1)
        # A successor of udp knows the error queue as its predecessor did; ip refuses a datagram to the stack's own
        # address.
        stack.kill("udp")
        ask(f"{stack.host} 64 second", f"{refused} second []", 2)
        ask(f"{stack.address} 64 own", f"{what} {stack.address} own []", 3)


def traceroute_to_the_neighbour():
    with Scene("traceroute") as scene:
        stack = Stack(scene)
        # Otherwise the neighbour's kernel sends about six errors, and then one per second.
        sh(*stack.beside("sysctl", "-qw", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0"))
        for extra in [], ["-p", "40000", "-N", "1"]:
            # Otherwise traceroute waits for an answer only three times as long as another one took.
            out = sh(*stack.on("traceroute", "-n", "-m", "3", "-w", "5,0,0", *extra, stack.host), ok=False, timeout=60)
            hops = out.stdout.splitlines()[1:]
            check(len(hops) == 1 and hops[0].split()[:2] == ["1", stack.host] and "*" not in hops[0] and hops[0].count("ms") == 3,
                  f"traceroute {extra}: {out.stdout}{out.stderr}")


CASES = [
    traceroute_to_the_neighbour, errors_are_queued_for_a_program_that_asks,
    name_server_that_asks_for_the_interfaces, names_of_programs_that_ask_themselves,
    udp_server_on_both_sides, a_port_is_bound_again_at_once, udp_server_of_several_processes, udp_client_of_both_sides, socat_datagrams_on_both_sides,
    receiving_asks_the_kernel_for_nothing_that_it_was_not_told_of,
]
CASES += map(over_ipv6, (traceroute_to_the_neighbour, errors_are_queued_for_a_program_that_asks, a_port_is_bound_again_at_once))
