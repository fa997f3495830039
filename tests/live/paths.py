"""TCP over paths that are not kind: one that swallows large packets without a word (RFC 4821), and one that loses packets, with
BBR."""

import json

from harness import Scene, Stack, add_address, addresses, check, over_ipv6, sh, wait_until

PORT = 8080
SIZE = 6_000_000

# The client sends, and the server answers with as much and the hash of what came. Both report TCP_INFO, and the client what it knows
# of its congestion control.
PROGRAM = """
import contextlib, hashlib, json, os, socket, struct, sys, time
role, address, port, size, answer, congestion, go = sys.argv[1:8]
port, size, answer = int(port), int(size), int(answer)
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
def choose():
    # The peer's kernel may lack it.
    with contextlib.suppress(FileNotFoundError):
        if congestion != "default":
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
def told():
    info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
    name = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\\0")[0].decode()
    bbr = s.getsockopt(socket.IPPROTO_TCP, 26, 20)
    rate = struct.unpack_from("II", bbr) if len(bbr) == 20 else (0, 0)
    return {"mss": struct.unpack_from("I", info, 16)[0], "congestion": name, "pacing_rate": struct.unpack_from("Q", info, 104)[0],
            "bandwidth": rate[0] | rate[1] << 32, "min_rtt": struct.unpack_from("I", bbr, 8)[0] if len(bbr) == 20 else 0}
def take(n):
    digest, left = hashlib.sha256(), n
    while left:
        data = s.recv(min(left, 1 << 20))
        assert data, f"closed {left} bytes too early"
        digest.update(data)
        left -= len(data)
    return digest
block = bytes(i * 31 % 251 for i in range(100_000))
def give(n, when_half=None):
    digest, left = hashlib.sha256(), n
    while left:
        piece = block[:left]
        s.sendall(piece)
        digest.update(piece)
        left -= len(piece)
        if when_half and left <= n // 2:
            print("half", flush=True)
            while not os.path.exists(go):
                time.sleep(0.01)
            when_half = False
    return digest
if role == "server":
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    choose()
    s.bind((address, port))
    s.listen()
    print("listens", flush=True)
    s, _ = s.accept()
    came = take(size)
    s.sendall(came.digest())
    give(answer)
    s.recv(1)
else:
    choose()
    s.connect((address, port))
    sent = give(size, True)
    assert take(32).digest() == hashlib.sha256(sent.digest()).digest(), "other bytes came"
    expected = hashlib.sha256((block * (answer // len(block) + 1))[:answer])
    assert take(answer).digest() == expected.digest(), "other bytes were answered"
print(json.dumps(told()), flush=True)
"""


def exchange(scene, name, server, client, answer=1000, congestion="default", meanwhile=lambda: None, size=SIZE):
    """Between (command, address) of a server and of a client; returns what both report."""
    program, go = scene.dir / "program.py", scene.dir / f"{name}-go"
    program.write_text(PROGRAM)
    (on_server, address), on_client = server, client
    arguments = [address, PORT, size, answer, congestion, go]
    listener = scene.start(*on_server("python3", program, "server", *arguments), log=f"{name}-server.log")
    wait_until(lambda: "listens" in listener.log.read_text(), 20, f"a listener: {listener.log.read_text()}")
    caller = scene.start(*on_client("python3", program, "client", *arguments), log=f"{name}-client.log")
    wait_until(lambda: "half" in caller.log.read_text() or caller.poll() is not None, 60, f"half of {name}")
    meanwhile()
    go.touch()
    check(caller.wait(90) == 0, f"{name}: the client says {caller.log.read_text()}")
    check(listener.wait(30) == 0, f"{name}: the server says {listener.log.read_text()}")
    return [json.loads(process.log.read_text().splitlines()[-1]) for process in (listener, caller)]


# What passes in one packet.
NARROW = 1300
SILENT = """
table inet silent {
    chain out {
        type filter hook output priority 0;
        icmp type destination-unreachable drop
        icmpv6 type packet-too-big counter drop
    }
}
"""


def hole(scene, stack):
    """Beyond the stack's neighbour lies a link that takes less than both ends believe, and the neighbour may not say so. Returns how
    to run a program there, and the address."""
    beyond = "eft-lt-beyond"
    address, router, length = addresses(79)
    sh("ip", "netns", "add", beyond)
    scene.undo("ip", "netns", "del", beyond)
    sh("ip", "-n", stack.netns, "link", "add", "inner", "type", "veth", "peer", "name", "outer", "netns", beyond)
    for namespace, link, own in ((stack.netns, "inner", router), (beyond, "outer", address)):
        add_address(namespace, f"{own}/{length}", link)
        sh("ip", "-n", namespace, "link", "set", link, "up")
    sh("ip", "-n", stack.netns, "link", "set", "inner", "mtu", str(NARROW))
    sh("ip", "-n", beyond, *(["-6"] if ":" in router else []), "route", "add", "default", "via", router)
    for name in "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding":
        sh(*stack.beside("sysctl", "-qw", f"{name}=1"))
    rules = scene.dir / "silent.nft"
    rules.write_text(SILENT)
    sh(*stack.beside("nft", "-f", rules))
    there = lambda *command: ["ip", "netns", "exec", beyond, *map(str, command)]
    # Forwarding may take a moment to begin.
    ping = there("ping", "-c", "1", "-W", "1", stack.address)
    wait_until(lambda: sh(*ping, ok=False).returncode == 0, 20, "an answer of the stack through the path")
    return there, address


def path_that_swallows_large_packets(probing):
    with Scene(f"hole-{probing}") as scene:
        stack = Stack(scene, kind="packet", extra=["--mtu-probing", probing, "--gateway", addresses(77)[1]])
        far = hole(scene, stack)
        headers = 40 + 12 if stack.host.count(".") else 60 + 12
        # Both as the end that connects and as the one that accepts.
        ways = [("out", far, stack.on, 1), ("in", (stack.on, stack.address), far[0], 0)]
        for name, server, client, own in ways:
            before = stack.counters()["tcp"]
            answer = 1000 if own else SIZE
            told = exchange(scene, name, server, client, answer, size=SIZE if own else 1000)
            counted = {n: v - before[n] for n, v in stack.counters()["tcp"].items() if n.startswith("mtu_")}
            mss = told[own]["mss"]
            check(1024 - 12 <= mss <= NARROW - headers, f"{name}: segments of {mss} bytes at the end, {counted}")
            check(counted["mtu_probes_passed"] > 0, f"{name}: no larger packet passed: {counted}")
            holes = counted["mtu_black_holes"]
            check((holes > 0) == (probing == "blackhole"), f"{name}: {holes} holes noticed")


def path_that_swallows_large_packets_is_noticed():
    path_that_swallows_large_packets("blackhole")


def path_is_searched_from_the_beginning():
    path_that_swallows_large_packets("always")


def loss(scene, stack, one_in):
    """Linux drops every so manieth packet of either direction."""
    text = "table inet loss {\n"
    for hook, side in ("prerouting", -300), ("postrouting", 300):
        text += f"chain {hook} {{\ntype filter hook {hook} priority {side};\n"
        text += f"tcp sport {PORT} numgen random mod {one_in} 0 drop\ntcp dport {PORT} numgen random mod {one_in} 0 drop\n}}\n"
    file = scene.dir / "loss.nft"
    file.write_text(text + "}\n")
    sh(*stack.beside("nft", "-f", file))


def bbr_over_a_path_that_loses():
    """Chosen by the program: by one that connects, and by a listener for what it accepts."""
    with Scene("bbr") as scene:
        stack = Stack(scene, kind="packet")
        loss(scene, stack, 20)
        ways = [("out", (stack.beside, stack.host), stack.on, 1), ("in", (stack.on, stack.address), stack.beside, 0)]
        for name, server, client, own in ways:
            told = exchange(scene, name, server, client, answer=SIZE, congestion="bbr",
                            meanwhile=lambda: stack.kill("tcp"))[own]
            check(told["congestion"] == "bbr", f"{name}: {told}")
            missing = [what for what in ("bandwidth", "min_rtt", "pacing_rate") if not told[what]]
            check(not missing, f"{name}: nothing is known of {missing}: {told}")


CASES = [path_that_swallows_large_packets_is_noticed, path_is_searched_from_the_beginning, bbr_over_a_path_that_loses]
CASES += [over_ipv6(case) for case in CASES]
