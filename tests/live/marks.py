"""Explicit congestion notification (RFC 3168) between a program on the stack and Linux, whose packet filter marks some packets
of either direction."""

import json

from harness import Scene, Stack, check, sh, wait_until

PORT = 8080
SIZE = 20_000_000
OPTION_ECN, OPTION_ECN_SEEN = 8, 16

# Both ends send as much as they receive, one after the other, and tell of TCP_INFO at the end.
PROGRAM = """
import json, os, socket, struct, sys, time
role, address, port, size, seen = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
if role == "server":
    l = socket.socket()
    l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    l.bind((address, port))
    l.listen()
    print("listens", flush=True)
    s, _ = l.accept()
else:
    s = socket.create_connection((address, port), 10)
def read():
    left = size
    while left:
        data = s.recv(65536)
        assert data
        left -= len(data)
block = bytes(size)
if role == "server":
    read()
    s.sendall(block)
    s.recv(1)
else:
    s.sendall(block)
    read()
time.sleep(0.4)
info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
print(json.dumps({"options": info[5], "delivered_ce": struct.unpack_from("I", info, 196)[0]}), flush=True)
if role == "client":
    # Both are looked at while they are connected.
    while not os.path.exists(seen):
        time.sleep(0.01)
    s.sendall(b"x")
    s.recv(1)
"""

# Every fortieth: of some hundred large packets chance might mark none.
RULES = """
table ip marks {
    chain arriving {
        type filter hook prerouting priority -300;
        tcp sport 8080 ip ecn ect0 numgen inc mod 40 0 counter ip ecn set ce
    }
    chain leaving {
        type filter hook postrouting priority 300;
        tcp dport 8080 ip ecn ect0 numgen inc mod 40 0 counter ip ecn set ce
    }
}
"""


def exchange(scene, stack, name):
    program = scene.dir / "program.py"
    program.write_text(PROGRAM)
    seen = scene.dir / f"{name}-seen"
    server = scene.start(*stack.on("python3", program, "server", stack.address, PORT, SIZE, seen), log=f"{name}.log")
    wait_until(lambda: "listens" in server.log.read_text(), 20, "a server that listens")
    client = scene.start(*stack.beside("python3", program, "client", stack.address, PORT, SIZE, seen), log=f"{name}-client.log")
    done = lambda: "{" in client.log.read_text()
    wait_until(lambda: done() or client.poll() is not None, 120, "an exchange")
    shown = json.loads(stack.eft("ss", "--json").stdout)["sockets"]
    seen.touch()
    check(server.wait(30) == 0, f"the server says {server.log.read_text()}")
    check(client.wait(30) == 0, f"the client says {client.log.read_text()}")
    told = [json.loads(process.log.read_text().split("\n")[line]) for process, line in ((server, 1), (client, 0))]
    return told, [s["ecn"] for s in shown if s.get("state") == "ESTAB"]


def marks_of_congestion():
    with Scene("marks") as scene:
        stack = Stack(scene, kind="packet")
        # Who does not ask is not marked.
        sh(*stack.beside("sysctl", "-qw", "net.ipv4.tcp_ecn=0"))
        told, shown = exchange(scene, stack, "unasked")
        check([t["options"] & OPTION_ECN for t in told] == [0, 0] and shown == [False], f"not asked, but {told}, {shown}")
        # Linux asks, and routers mark.
        sh(*stack.beside("sysctl", "-qw", "net.ipv4.tcp_ecn=1"))
        rules = scene.dir / "rules.nft"
        rules.write_text(RULES)
        sh(*stack.beside("nft", "-f", rules))
        (server, client), shown = exchange(scene, stack, "asked")
        for who, told in ("server", server), ("client", client):
            wanted = OPTION_ECN | OPTION_ECN_SEEN
            check(told["options"] & wanted == wanted, f"the {who} has agreed and seen: {told}")
            check(told["delivered_ce"] > 0, f"the {who} hears of its marks: {told}")
        check(shown == [True], f"eft ss: {shown}")
        for counter in "marks_received", "mark_reductions":
            check(stack.counter("tcp", counter) > 0, f"{counter}: none")


CASES = [marks_of_congestion]
