"""TCP Fast Open (RFC 7413) between a program on the stack and Linux, in both directions."""

import json

from crashes import kill_all_but_the_keeper
from harness import TOPOLOGIES, Scene, Stack, check, over_ipv6, sh, wait_until

PORT = 8080
SYN_DATA = 32

# Answers each connection with its data and its TCP_INFO. It asks for Fast Open before it listens, or afterwards.
SERVER = """
import json, socket, sys
address, port, asks = sys.argv[1], int(sys.argv[2]), sys.argv[3]
l = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
def ask():
    l.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)
if asks == "early":
    ask()
l.bind((address, port))
l.listen()
if asks == "late":
    ask()
assert l.getsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN) == 16
print("listens", flush=True)
while True:
    s, _ = l.accept()
    got = b""
    while not got.endswith(b"."):
        data = s.recv(65536)
        assert data
        got += data
    options = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 6)[5]
    s.sendall(json.dumps([len(got), options]).encode())
    s.close()
"""

# Makes one connection: the way it begins, and the length of its request.
CLIENT = """
import errno, json, select, socket, sys
address, port, how, size = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
request = b"x" * (size - 1) + b"."
said = ""
if how == "message":
    sent = s.sendto(request, socket.MSG_FASTOPEN, (address, port))
elif how == "later":
    s.setblocking(False)
    try:
        sent = s.sendto(request, socket.MSG_FASTOPEN, (address, port))
    except BlockingIOError as e:
        sent, said = 0, errno.errorcode[e.errno]
    assert select.select([], [s], [], 20)[1]
    s.setblocking(True)
else:
    s.setsockopt(socket.IPPROTO_TCP, 30, 1)
    s.connect((address, port))
    sent = 0
s.sendall(request[sent:])
options = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 6)[5]
answer = b""
while data := s.recv(65536):
    answer += data
assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
options |= s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 6)[5]
print(json.dumps([options, said, *json.loads(answer)]))
"""


class Pair:
    """A server on one side, and clients on the other."""

    def __init__(self, scene, on, beside, address, port=PORT, asks="early"):
        self.client, self.beside, self.address, self.port = scene.dir / "client.py", beside, address, port
        self.client.write_text(CLIENT)
        program = scene.dir / "server.py"
        program.write_text(SERVER)
        server = scene.start(*on("python3", program, address, port, asks), log=f"server-{port}.log")
        wait_until(lambda: "listens" in server.log.read_text(), 20, "a server that listens")

    def connect(self, how, size=1000):
        """Whether the SYN's data were accepted, and the result of the call."""
        told = json.loads(sh(*self.beside("python3", self.client, self.address, self.port, how, size)).stdout)
        options, said, got, theirs = told
        check(got == size, f"{how}: {got} of {size} bytes came")
        check(options & SYN_DATA == theirs & SYN_DATA, f"{how}: the client says {options}, the server {theirs}")
        return bool(options & SYN_DATA), said

    def expect(self, how, *expected, **options):
        got = self.connect(how, **options)
        check(got == expected, f"{how}: {got}, not {expected}")


def opened(scene, switch, *extra, **options):
    """A stack whose path to Linux works; Linux acts as client and server."""
    stack = Stack(scene, kind="packet", extra=["--fastopen", switch, *extra], **options)
    sh(*stack.beside("sysctl", "-qw", "net.ipv4.tcp_fastopen=3"))
    ping = stack.beside("ping", "-c", "1", "-W", "1", stack.address)
    wait_until(lambda: sh(*ping, ok=False).returncode == 0, 20, "an answer of the stack")
    return stack


def every_way(pair):
    """Every way to begin, first without a cookie."""
    pair.expect("message", False, "")
    for how in "message", "later", "connect":
        pair.expect(how, True, "")
    # The message is longer than a SYN carries.
    pair.expect("message", True, "", size=200_000)


def fast_open_from_linux():
    with Scene("early-server") as scene:
        stack = opened(scene, "server")
        pair = Pair(scene, stack.on, stack.beside, stack.address)
        every_way(pair)
        stack.kill("tcp")
        pair.expect("message", True, "")
        check(stack.counter("tcp", "fast_open_refused") == 0, "a cookie was refused")


def fast_open_from_linux_to_two_instances():
    """The client has one cookie for the server's address, and does not know which instance gets its next connection."""
    with Scene("early-spread") as scene:
        keep = ("--keep", "20")
        stack = opened(scene, "server", *keep, topology=TOPOLOGIES / "spread.toml")
        names = ("tcp", "tcp1")
        early = Pair(scene, stack.on, stack.beside, stack.address)
        late = Pair(scene, stack.on, stack.beside, stack.address, PORT + 1, asks="late")

        def of_both(counter):
            return [stack.counter(name, counter) for name in names]

        def both_take(pair):
            before = of_both("fast_opened")
            for _ in range(20):
                pair.expect("message", True, "")
            taken = [now - then for now, then in zip(of_both("fast_opened"), before)]
            check(all(taken) and sum(taken) == 20, f"connections of both instances: {taken}")
            check(not any(of_both("fast_open_refused")), "a cookie was refused")

        every_way(early)
        both_take(early)
        both_take(late)
        stack.kill("tcp1")
        both_take(early)
        kill_all_but_the_keeper(stack)
        stack.up("--fastopen", "server", *keep, log="-2")
        both_take(late)
        both_take(early)


def fast_open_to_linux():
    with Scene("early-client") as scene:
        stack = opened(scene, "client")
        pair = Pair(scene, stack.beside, stack.on, stack.host)
        every_way(pair)
        # The cookies die with tcp: a nonblocking socket reports that.
        stack.kill("tcp")
        pair.expect("later", False, "EINPROGRESS")
        pair.expect("later", True, "")
        stack.kill("tcp")
        pair.expect("connect", False, "")
        pair.expect("connect", True, "")
        check(stack.counter("tcp", "fast_open_failed") == 0, "data were not taken")


def fast_open_is_the_servers_choice():
    """Linux's default: clients only."""
    with Scene("early-default") as scene:
        stack = Stack(scene, kind="packet")
        sh(*stack.beside("sysctl", "-qw", "net.ipv4.tcp_fastopen=3"))
        pair = Pair(scene, stack.on, stack.beside, stack.address)
        for _ in range(3):
            pair.expect("message", False, "")
        check(stack.counter("tcp", "fast_open_asked") == 0, "a cookie was told")


# Before and after the socket has its first address: whether TCP_FASTOPEN_CONNECT can be set.
ASKS = """
import errno, socket, sys
for address in None, sys.argv[1]:
    s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
    if address:
        s.bind((address, 0))
    try:
        s.setsockopt(socket.IPPROTO_TCP, 30, 1)
        print("taken")
    except OSError as e:
        print("refused" if e.errno == errno.EOPNOTSUPP else e)
"""


def fast_open_of_clients_is_refused_where_it_is_off():
    """As on Linux, at the call that asks for it; also by a program that runs while `eft set` changes it."""
    with Scene("early-off") as scene:
        stack = opened(scene, "server")
        asks = scene.dir / "asks.py"
        asks.write_text(ASKS)

        def found():
            return sh(*stack.on("python3", asks, stack.address)).stdout.split()

        check(found() == ["refused"] * 2, "the option was taken")
        stack.eft("set", "--fastopen", "both")
        wait_until(lambda: found() == ["taken"] * 2, 10, "the option to be taken")
        stack.kill("sockets")
        check(found() == ["taken"] * 2, "the successor refuses the option")
        stack.eft("set", "--fastopen", "off")
        wait_until(lambda: found() == ["refused"] * 2, 10, "the option to be refused")


CASES = [fast_open_from_linux, fast_open_to_linux, fast_open_is_the_servers_choice]
CASES += [over_ipv6(case) for case in CASES]
CASES += [fast_open_of_clients_is_refused_where_it_is_off, fast_open_from_linux_to_two_instances]
