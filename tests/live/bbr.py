"""What BBR tells of itself (TCP_CC_INFO), on eft and on the kernel: at each stage of a connection the same gains, and the same is known."""

import json

from harness import Scene, Stack, check, over_ipv6, sh, wait_until

PORT = 8080
UNIT = 256
# 2/ln 2 in 256ths, as long as the path is not known to be full; its inverse drains; then one of these.
STARTUP, DRAIN, CRUISE = 739, 88, {320, 192, 256}

CLIENT = """
import json, socket, struct, sys, time
address, port, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
CC_INFO, INFO = 26, 11
def told(s):
    # A shorter buffer gets the head of the same, of whatever length.
    lengths = [len(s.getsockopt(socket.IPPROTO_TCP, CC_INFO, n)) for n in (1, 7, 12, 20, 64)]
    # The two are of different moments: they belong together if no acknowledgment changed what BBR knows between them.
    words, again = None, s.getsockopt(socket.IPPROTO_TCP, CC_INFO, 20)
    while words != again and time.monotonic() < limit:
        words, info = again, s.getsockopt(socket.IPPROTO_TCP, INFO, 280)
        again = s.getsockopt(socket.IPPROTO_TCP, CC_INFO, 20)
    assert words == again, "BBR's numbers never stayed the same for two questions"
    words = struct.unpack("5I", words)
    return {"lengths": lengths, "bandwidth": words[0] | words[1] << 32, "min_rtt": words[2], "pacing_gain": words[3], "window_gain": words[4],
        "rate": struct.unpack_from("Q", info, 104)[0], "rtt": struct.unpack_from("I", info, 148)[0], "age": time.monotonic() - begun}
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"bbr")
assert s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0") == b"bbr"
s.connect((address, port))
begun = time.monotonic()
limit = begun + 20
said = {"connected": told(s)}
# A little: the application limits the rate, so the path is not known to be full.
for _ in range(3):
    s.sendall(bytes(100))
    assert s.recv(1) == b"a"
said["a little"] = told(s)
s.sendall(bytes(size))
said["much"] = [told(s)]
while said["much"][-1]["window_gain"] != 512 and time.monotonic() < limit:
    s.sendall(bytes(size // 8))
    said["much"].append(told(s))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
assert s.getsockopt(socket.IPPROTO_TCP, CC_INFO, 64) == b""
print(json.dumps(said))
"""

SERVER = """
import socket, sys
l = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
l.bind((sys.argv[1], int(sys.argv[2])))
l.listen()
print("listens", flush=True)
s, _ = l.accept()
for _ in range(3):
    left = 100
    while left:
        left -= len(s.recv(left))
    s.sendall(b"a")
while s.recv(1 << 18):
    pass
"""


def numbers_of_bbr():
    """Rates and round trips are of each path; what is known when, and by how much BBR exceeds it, is the same."""
    with Scene("bbr") as scene:
        stack, kernel = Stack(scene, kind="veth"), scene.kernel()

        def said(side):
            server = scene.start(*side.beside("python3", "-c", SERVER, side.host, PORT), log=f"server-{side.host}.log")
            wait_until(lambda: "listens" in server.log.read_text(), 20, "a server that listens")
            return json.loads(sh(*side.on("python3", "-c", CLIENT, side.host, PORT, 32 << 20), timeout=120).stdout)

        for who, told in (("the kernel", said(kernel)), ("the stack", said(stack))):
            def expect(condition, what):
                check(condition, f"{who}, {what}: {told}")
            early, late = [told["connected"], told["a little"]], told["much"]
            for info in early + late:
                expect(info["lengths"] == [1, 7, 12, 20, 20], "lengths")
                # TCP_INFO has the shortest of 300 s, BBR that of 10 s.
                expect(0 < info["rtt"] <= info["min_rtt"], "BBR knows of no shorter round trip than TCP_INFO")
                expect(info["rtt"] == info["min_rtt"] or info["age"] > 9, "both know the same")
            # The search begins with the first acknowledgment of data.
            for info, gain in zip(early, (UNIT, STARTUP)):
                expect(info["min_rtt"] == info["rtt"], "the handshake counts")
                expect((info["pacing_gain"], info["window_gain"]) == (gain, gain), "gains at first")
            expect(told["connected"]["bandwidth"] == 0 < told["a little"]["bandwidth"], "what is known of the path at first")
            for info in late:
                cruises = info["window_gain"] == 2 * UNIT and info["pacing_gain"] in CRUISE
                searches = (info["pacing_gain"], info["window_gain"]) in {(STARTUP, STARTUP), (DRAIN, STARTUP)}
                expect(cruises or searches, "gains")
                expect(info["bandwidth"] > 0, "bandwidth")
            last = late[-1]
            expect(last["window_gain"] == 2 * UNIT, "the path is found to be full")
            # A hundredth less than the gain allows.
            allowed = last["bandwidth"] * last["pacing_gain"] / UNIT
            expect(0.5 * allowed <= last["rate"] <= 1.01 * allowed, "the rate")


CASES = [numbers_of_bbr, over_ipv6(numbers_of_bbr)]
