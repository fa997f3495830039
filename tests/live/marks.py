"""Explicit congestion notification (RFC 3168) between a program on the stack and Linux, whose packet filter marks some
packets in either direction."""

import json

from harness import Scene, Stack, check, over_ipv6, sh, wait_until

PORT = 8080
SIZE = 20_000_000
OPTION_ECN, OPTION_ECN_SEEN = 8, 16

# Both ends send as much as they receive, one after the other, and report TCP_INFO at the end.
PROGRAM = """
import json, os, socket, struct, sys, time
role, address, port, size, seen, marked = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], "marked" in sys.argv
if role == "server":
    l = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
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
def told():
    info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 280)
    words = struct.unpack_from("7I2H", info + bytes(280 - len(info)), 248)
    return {"options": info[5], "unacked": struct.unpack_from("I", info, 24)[0], "delivered_ce": struct.unpack_from("I", info, 196)[0],
            "received_ce": words[0], "delivered": words[1:4], "received": words[4:7], "failures": words[7], "seen": words[8]}
# What was sent last may not be acknowledged yet.
end = time.monotonic() + 10
while (told()["unacked"] or marked and not (told()["options"] & 16 and told()["delivered_ce"])) and time.monotonic() < end:
    time.sleep(0.01)
print(json.dumps(told()), flush=True)
if role == "client":
    # Both are looked at while they are connected.
    while not os.path.exists(seen):
        time.sleep(0.01)
    s.sendall(b"x")
    s.recv(1)
"""

def rules(scene, stack, server_side):
    """Makes Linux mark every fortieth packet with `server_side` ("sport": the server is on the stack) that arrives, and
    every fortieth in the other direction that leaves. A random choice might mark none of some hundred large packets."""
    other = {"sport": "dport", "dport": "sport"}[server_side]
    text = ""
    for family in "ip", "ip6":
        mark = f"{family} ecn ect0 numgen inc mod 40 0 counter {family} ecn set ce"
        text += f"table {family} marks {{\n"
        for hook, priority, port in ("prerouting", -300, server_side), ("postrouting", 300, other):
            text += f"chain {hook} {{\ntype filter hook {hook} priority {priority};\ntcp {port} {PORT} {mark}\n}}\n"
        text += "}\n"
    file = scene.dir / "rules.nft"
    file.write_text(text)
    sh(*stack.beside("nft", "-f", file))


def exchange(scene, stack, name, marked, on=None, beside=None, address=None):
    program = scene.dir / "program.py"
    program.write_text(PROGRAM)
    on, beside, address = on or stack.on, beside or stack.beside, address or stack.address
    seen = scene.dir / f"{name}-seen"
    arguments = [address, PORT, SIZE, seen, "marked" if marked else "plain"]
    server = scene.start(*on("python3", program, "server", *arguments), log=f"{name}.log")
    wait_until(lambda: "listens" in server.log.read_text(), 20, "a server that listens")
    client = scene.start(*beside("python3", program, "client", *arguments), log=f"{name}-client.log")
    done = lambda: "{" in client.log.read_text()
    wait_until(lambda: done() or client.poll() is not None, 120, "an exchange")
    shown = json.loads(stack.eft("ss", "--json").stdout)["sockets"]
    seen.touch()
    check(server.wait(30) == 0, f"the server says {server.log.read_text()}")
    check(client.wait(30) == 0, f"the client says {client.log.read_text()}")
    told = [json.loads(process.log.read_text().split("\n")[line]) for process, line in ((server, 1), (client, 0))]
    return told, [s["ecn"] for s in shown if s.get("state") == "ESTAB"]


def marks_asked_for_by_the_stack():
    """Linux answers by default."""
    with Scene("marks-asked") as scene:
        stack = Stack(scene, kind="packet", extra=["--ecn", "ask"])
        rules(scene, stack, "dport")
        # A SYN without an answer is sent again without the request for ECN, so the path must work first.
        ping = stack.beside("ping", "-c", "1", "-W", "1", stack.address)
        wait_until(lambda: sh(*ping, ok=False).returncode == 0, 20, "an answer of the stack")
        (server, client), shown = exchange(scene, stack, "asking", True, on=stack.beside, beside=stack.on, address=stack.host)
        wanted = OPTION_ECN | OPTION_ECN_SEEN
        for who, told in ("server", server), ("client", client):
            check(told["options"] & wanted == wanted and told["delivered_ce"] > 0, f"the {who}: {told}")
        check(shown == [True], f"eft ss: {shown}")


def marks_of_congestion():
    with Scene("marks") as scene:
        stack = Stack(scene, kind="packet")
        # Without the request there are no marks.
        sh(*stack.beside("sysctl", "-qw", "net.ipv4.tcp_ecn=0"))
        told, shown = exchange(scene, stack, "unasked", False)
        check([t["options"] & OPTION_ECN for t in told] == [0, 0] and shown == [False], f"not asked, but {told}, {shown}")
        # Linux asks, and routers mark.
        sh(*stack.beside("sysctl", "-qw", "net.ipv4.tcp_ecn=1"))
        rules(scene, stack, "sport")
        (server, client), shown = exchange(scene, stack, "asked", True)
        for who, told in ("server", server), ("client", client):
            wanted = OPTION_ECN | OPTION_ECN_SEEN
            check(told["options"] & wanted == wanted, f"the {who} has agreed and seen: {told}")
            check(told["delivered_ce"] > 0, f"the {who} hears of its marks: {told}")
        check(shown == [True], f"eft ss: {shown}")
        for counter in "marks_received", "mark_reductions":
            check(stack.counter("tcp", counter) > 0, f"{counter}: none")


# Bits of the twelfth and thirteenth byte of a TCP header: AE, CWR, ECE, ACK, SYN. Who asks, and who agrees to a SYN that was not marked.
HANDSHAKES = [("asked", 0x1D2, 0x1C2), ("agreed", 0x1D2, 0x092)]


def count_handshakes(scene, stack):
    text = "table inet handshakes {\n"
    for name, _, _ in HANDSHAKES:
        text += f"counter {name} {{ }}\n"
    for hook in "input", "output":
        text += f"chain {hook} {{\ntype filter hook {hook} priority 0;\n"
        for name, mask, bits in HANDSHAKES:
            # In a router solicitation the same bytes are those of a random MAC address.
            text += f"meta l4proto tcp @th,96,16 & {mask:#x} == {bits:#x} counter name {name}\n"
        text += "}\n"
    file = scene.dir / "handshakes.nft"
    file.write_text(text + "}\n")
    sh(*stack.beside("nft", "-f", file))


def handshakes(stack):
    listed = json.loads(sh(*stack.beside("nft", "-j", "list", "counters")).stdout)["nftables"]
    return {c["counter"]["name"]: c["counter"]["packets"] for c in listed if "counter" in c}


def know_of_each_other(told):
    """Whether each end knows by bytes what the other got (RFC 9768 §3.2.3): all that was sent, of which a part was marked."""
    pairs = zip(told, reversed(told))
    return all(a["delivered"] == b["received"] and a["delivered"][0] == 0 and sum(a["delivered"]) >= SIZE and a["delivered"][2] > 0
               and (a["seen"], a["failures"]) == (2, 0) for a, b in pairs)


def accurate_marks():
    """Both ends count marks (RFC 9768), whoever asks; with a kernel that cannot, both do as RFC 3168 has it."""
    with Scene("marks-accurate") as scene:
        stack = Stack(scene, kind="packet", extra=["--ecn", "accurate"])
        accurate = sh(*stack.beside("sysctl", "-qw", "net.ipv4.tcp_ecn=3"), ok=False).returncode == 0
        if not accurate:
            sh(*stack.beside("sysctl", "-qw", "net.ipv4.tcp_ecn=1"))
        ping = stack.beside("ping", "-c", "1", "-W", "1", stack.address)
        wait_until(lambda: sh(*ping, ok=False).returncode == 0, 20, "an answer of the stack")
        count_handshakes(scene, stack)
        ways = [("from", "sport", {}, 0), ("to", "dport", dict(on=stack.beside, beside=stack.on, address=stack.host), 1)]
        for name, side, where, own in ways:
            rules(scene, stack, side)
            before, agreed = stack.counter("tcp", "marks_received"), handshakes(stack)
            told, shown = exchange(scene, stack, name, True, **where)
            sh(*stack.beside("nft", "delete", "table", "ip", "marks"))
            sh(*stack.beside("nft", "delete", "table", "ip6", "marks"))
            now = handshakes(stack)
            # A kernel that cannot does not ask.
            wanted = {"asked": int(accurate or name == "to"), "agreed": int(accurate)}
            check({n: now[n] - agreed[n] for n in now} == wanted, f"{name}: {agreed}, {now}, not {wanted}")
            check(shown == [True], f"eft ss: {shown}")
            counted, heard = stack.counter("tcp", "marks_received") - before, told[1 - own]["delivered_ce"]
            check(counted > 0 and heard > 0, f"{name}: eft counted {counted}, Linux heard of {heard}")
            # The last marks may come after Linux was asked.
            check(not accurate or 0.8 * counted <= heard <= counted, f"{name}: of {counted} marks, Linux heard of {heard}")
            check(told[own]["delivered_ce"] > 0, f"{name}: eft hears of its marks: {told}")
            check(not accurate or know_of_each_other(told), f"{name}: {told}")
        check(stack.counter("tcp", "mark_reductions") > 0, "no reductions")


CASES = [marks_of_congestion, marks_asked_for_by_the_stack, accurate_marks]
CASES += [over_ipv6(case) for case in CASES]
