"""Options of TCP as a program sets them, and what the kernel at the other end observes."""

import json

from harness import Scene, Stack, check, everywhere, over_ipv6, sh, wait_until

PORT = 8080

SERVER = """
import socket, struct, sys, time
UNACKED, SSTHRESH, NOTSENT_LOWAT, INFO = 24, 76, 25, 11
l = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
l.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 700)
l.bind((sys.argv[1], %d))
l.listen()
assert l.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) == 700
s, _ = l.accept()
def word(offset):
    return struct.unpack_from("I", s.getsockopt(socket.IPPROTO_TCP, INFO, 104), offset)[0]
assert word(SSTHRESH) == 0x7fffffff, word(SSTHRESH)
# The peer does not read: little waits beyond what its window takes.
s.setsockopt(socket.IPPROTO_TCP, NOTSENT_LOWAT, 20000)
s.setblocking(False)
sent, quiet = 0, 0
while quiet < 5:
    try:
        sent += s.send(bytes(10000))
        quiet = 0
    except BlockingIOError:
        quiet += 1
        time.sleep(0.1)
print("wrote", sent, flush=True)
s.setblocking(True)
assert s.recv(1) == b"r"
time.sleep(0.5)
assert word(UNACKED) == 0, word(UNACKED)
s.sendall(b"end")
print("server is done", flush=True)
"""

CLIENT = """
import socket, sys, time
def connect():
    s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    s.connect((sys.argv[1], int(sys.argv[2])))
    return s
for _ in range(100):
    try:
        s = connect()
        break
    except ConnectionRefusedError:
        # The server is on its way. (It takes one connection, so none may be spent on finding out.)
        time.sleep(0.1)
mss = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
assert mss <= 700, mss
time.sleep(1.5)
s.settimeout(10)
total = 0
s.sendall(b"r")
while True:
    data = s.recv(65536)
    total += len(data)
    if data.endswith(b"end") or not data:
        break
print("read", total - 3, flush=True)
"""


def options_of_tcp():
    with Scene("options") as scene:
        stack = Stack(scene)
        server, client = scene.dir / "server.py", scene.dir / "client.py"
        server.write_text(SERVER % PORT)
        client.write_text(CLIENT)
        process = scene.start(*stack.on("python3", server, everywhere()))
        read = sh(*stack.beside("python3", client, stack.address, PORT)).stdout
        check(process.wait(10) == 0, f"the server says {process.log.read_text()}")
        wrote = int(process.log.read_text().split("wrote ")[1].split()[0])
        check(read.split() == ["read", str(wrote)], f"{wrote} bytes were written, {read}")
        # The peer's window is at most 20,000 bytes; one write of 10,000 may exceed it.
        check(wrote < 400_000, f"{wrote} bytes were taken, though only a window of them could be sent")


NUMBERS = """
import json, socket, struct, sys, time
role, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
FIELDS = {"state": ("B", 0), "ca_state": ("B", 1), "retransmits": ("B", 2), "probes": ("B", 3), "backoff": ("B", 4),
    "options": ("B", 5), "scales": ("B", 6), "app_limited": ("B", 7), "rto": ("I", 8), "ato": ("I", 12), "snd_mss": ("I", 16), "rcv_mss": ("I", 20), "unacked": ("I", 24),
    "sacked": ("I", 28), "lost": ("I", 32), "retrans": ("I", 36), "fackets": ("I", 40), "last_data_sent": ("I", 44),
    "last_data_recv": ("I", 52), "last_ack_recv": ("I", 56), "pmtu": ("I", 60), "rcv_ssthresh": ("I", 64), "rtt": ("I", 68), "rttvar": ("I", 72), "snd_ssthresh": ("I", 76), "snd_cwnd": ("I", 80),
    "advmss": ("I", 84), "reordering": ("I", 88), "rcv_rtt": ("I", 92), "rcv_space": ("I", 96), "total_retrans": ("I", 100),
    "pacing_rate": ("Q", 104), "max_pacing_rate": ("Q", 112), "bytes_acked": ("Q", 120), "bytes_received": ("Q", 128), "segs_out": ("I", 136),
    "segs_in": ("I", 140), "notsent_bytes": ("I", 144), "min_rtt": ("I", 148), "data_segs_in": ("I", 152),
    "data_segs_out": ("I", 156), "delivery_rate": ("Q", 160), "busy_time": ("Q", 168), "rwnd_limited": ("Q", 176),
    "sndbuf_limited": ("Q", 184), "delivered": ("I", 192), "delivered_ce": ("I", 196), "bytes_sent": ("Q", 200),
    "bytes_retrans": ("Q", 208), "dsack_dups": ("I", 216), "reord_seen": ("I", 220), "rcv_ooopack": ("I", 224),
    "snd_wnd": ("I", 228), "rcv_wnd": ("I", 232), "rehash": ("I", 236), "total_rto": ("H", 240), "total_rto_recoveries": ("H", 242),
    "total_rto_time": ("I", 244), "received_ce": ("I", 248), "delivered_e1_bytes": ("I", 252), "delivered_e0_bytes": ("I", 256),
    "delivered_ce_bytes": ("I", 260), "received_e1_bytes": ("I", 264), "received_e0_bytes": ("I", 268),
    "received_ce_bytes": ("I", 272), "accecn": ("I", 276)}
def info(s):
    whole = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
    # A shorter buffer gets the head of the same, of whatever length.
    for length in 1, 7, 104, 192, 231:
        assert len(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, length)) == min(length, len(whole))
    numbers = {name: struct.unpack_from(kind, whole, at)[0] for name, (kind, at) in FIELDS.items()}
    return numbers | {"length": len(whole)}
def exchange(s, mine, theirs, first):
    for turn in (first, not first):
        if turn:
            s.sendall(bytes(mine))
        else:
            left = theirs
            while left:
                left -= len(s.recv(min(left, 65536)))
    # The last acknowledgement is there, and the page's numbers are fresh.
    time.sleep(0.4)
    return info(s)
if role == "server":
    l = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    l.bind((address, port))
    l.listen(7)
    before = info(l)
    print("listens", flush=True)
    s, _ = l.accept()
    numbers = exchange(s, 300, 5000, False)
    print(json.dumps([before, numbers]))
else:
    s = socket.create_connection((address, port), 10)
    # Reno, since others of the kernel's pace, and tell more in TCP_CC_INFO.
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    assert s.getsockopt(socket.IPPROTO_TCP, 26, 64) == b""
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    numbers = exchange(s, 5000, 300, True)
    print(json.dumps([numbers]))
time.sleep(0.5)
"""

# Fields that two kernels with this MTU report with the same numbers for the same exchange.
EXACT = ["length", "state", "ca_state", "retransmits", "probes", "backoff", "options", "unacked", "sacked", "lost", "retrans",
         "fackets", "snd_mss", "advmss", "pmtu", "reordering", "total_retrans", "max_pacing_rate", "bytes_acked",
         "bytes_received", "notsent_bytes", "rwnd_limited", "sndbuf_limited", "delivered_ce", "bytes_sent", "bytes_retrans",
         "dsack_dups", "reord_seen", "rcv_ooopack", "total_rto", "total_rto_recoveries", "total_rto_time", "app_limited", "snd_ssthresh",
         "rehash", "received_ce", "delivered_e1_bytes", "delivered_e0_bytes", "delivered_ce_bytes", "received_e1_bytes",
         "received_e0_bytes", "received_ce_bytes", "accecn"]
# Fields that depend on time and on how segments are merged: only whether they are zero is compared. (rcv_rtt is zero where a round
# trip takes less than a millisecond of the timestamp clock.)
ANY = ["rto", "ato", "rcv_mss", "last_data_sent", "last_data_recv", "rcv_ssthresh", "rtt", "snd_cwnd", "rcv_space",
       "segs_out", "segs_in", "min_rtt", "pacing_rate", "rttvar",
       "data_segs_in", "data_segs_out", "delivery_rate", "delivered", "snd_wnd", "rcv_wnd"]


def numbers_of_tcp_info():
    """The same program at both ends: eft and the kernel each report what two kernels report for the same exchange."""
    with Scene("numbers") as scene:
        stack = Stack(scene)
        program = scene.dir / "numbers.py"
        program.write_text(NUMBERS)

        def run(port, server_on, client_on, address):
            server = scene.start(*server_on("python3", program, "server", address, port))
            wait_until(lambda: "listens" in server.log.read_text(), 20, "a server that listens")
            client = sh(*client_on("python3", program, "client", address, port)).stdout
            check(server.wait(20) == 0, f"the server says {server.log.read_text()}")
            return json.loads(server.log.read_text().split("\n")[1]) + json.loads(client)

        kernel = scene.kernel()
        expected = run(PORT + 1, kernel.on, kernel.beside, kernel.address)
        of_server = run(PORT + 1, stack.on, stack.beside, stack.address)
        host = stack.host
        of_client = run(PORT + 2, stack.beside, stack.on, host)
        wrong = []
        for who, of_kernel, of_eft in [("listener", expected[0], of_server[0]), ("server", expected[1], of_server[1]),
                                       ("client", expected[2], of_client[2])]:
            wrong += [f"{who}'s {name}: {of_eft[name]}, not {of_kernel[name]}" for name in EXACT if of_eft[name] != of_kernel[name]]
            wrong += [f"{who}'s {name}: {of_eft[name]}, the kernel's {of_kernel[name]}" for name in ANY
                      if (of_eft[name] == 0) != (of_kernel[name] == 0)]
        check(not wrong, "; ".join(wrong))


PACED = """
import json, socket, struct, sys, time
address, port, rate, size = sys.argv[1], *map(int, sys.argv[2:])
LIMIT, INFO = 47, (socket.IPPROTO_TCP, socket.TCP_INFO)
def limits(s):
    return [int.from_bytes(s.getsockopt(socket.SOL_SOCKET, LIMIT, n), sys.byteorder) for n in (4, 8)]
told = []
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
# On a socket without an address, and on a connected one.
for values in ([], [rate]):
    told.append(limits(s))
    for value in values:
        s.setsockopt(socket.SOL_SOCKET, LIMIT, value)
s.connect((address, port))
told.append(limits(s))
for value in [struct.pack("Q", 1 << 33), struct.pack("I", 0xffffffff), struct.pack("Q", rate)]:
    s.setsockopt(socket.SOL_SOCKET, LIMIT, value)
    told.append(limits(s))
begun = time.monotonic()
s.sendall(bytes(size))
s.shutdown(socket.SHUT_WR)
assert s.recv(1) == b""
seconds = time.monotonic() - begun
info = s.getsockopt(*INFO, 120)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.setsockopt(socket.SOL_SOCKET, LIMIT, rate)
print(json.dumps({"told": told, "info": struct.unpack_from("QQ", info, 104), "seconds": seconds}))
"""

SINK = """
import socket, sys
l = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
l.bind((sys.argv[1], int(sys.argv[2])))
l.listen()
print("listens", flush=True)
s, _ = l.accept()
while s.recv(65536):
    pass
"""


def rate_of_an_application():
    """SO_MAX_PACING_RATE reads back as on Linux, and bounds what is sent."""
    rate, size = 2_000_000, 2_000_000
    with Scene("pacing") as scene:
        stack, kernel = Stack(scene), scene.kernel()
        paced, sink = scene.dir / "paced.py", scene.dir / "sink.py"
        paced.write_text(PACED)
        sink.write_text(SINK)

        def run(server_on, client_on, address):
            server = scene.start(*server_on("python3", sink, address, PORT))
            wait_until(lambda: "listens" in server.log.read_text(), 20, "a server that listens")
            return json.loads(sh(*client_on("python3", paced, address, PORT, rate, size)).stdout)

        ours = run(stack.beside, stack.on, stack.host)
        theirs = run(kernel.beside, kernel.on, kernel.host)
        check(ours["told"] == theirs["told"], f"{ours['told']}, the kernel {theirs['told']}")
        check(ours["info"][1] == rate and 0 < ours["info"][0] <= rate, ours)
        # Ten segments leave at once, of up to 64 KiB each over a TAP.
        least = (size - 10 * 65536) / rate
        check(ours["seconds"] >= least, f"{size} bytes at {rate} a second took {ours['seconds']} s")


STAMPS = """
import json, select, socket, struct, sys, time
role, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
TIMESTAMPING, ERRQUEUE, RECVERR = 37, 0x2000, 11
# TX_SOFTWARE, RX_SOFTWARE, SOFTWARE, OPT_ID, TX_SCHED, TX_ACK, OPT_TSONLY
FLAGS = 2 | 8 | 16 | 128 | 256 | 512 | 2048
SENDS = [100, 50_000, 1]
def seconds(data):
    return struct.unpack_from("qq", data)[0] + struct.unpack_from("qq", data)[1] / 1e9
def stamp(s):
    _, control, flags, _ = s.recvmsg(0, 512, ERRQUEUE)
    assert flags == ERRQUEUE, flags
    (level, kind, times), (_, _, error) = control
    assert (level, kind) == (socket.SOL_SOCKET, TIMESTAMPING), control
    errno, origin, _, _, _, info, number = struct.unpack_from("IBBBBII", error)
    assert (errno, origin) == (42, 4), error
    return {"kind": ["sent", "scheduled", "acknowledged"][info], "number": number, "at": seconds(times)}
if role == "server":
    l = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    l.bind((address, port))
    l.listen()
    print("listens", flush=True)
    s, _ = l.accept()
    s.setsockopt(socket.SOL_SOCKET, TIMESTAMPING, FLAGS)
    before = time.time()
    for size in SENDS:
        s.sendall(bytes(size))
        # Linux tells the times of one of two sends whose bytes go together.
        time.sleep(0.05)
    told, p = [], select.poll()
    p.register(s, 0)
    while len(told) < 3 * len(SENDS):
        ready = p.poll(10_000)
        assert ready and ready[0][1] == select.POLLERR, (ready, told)
        told.append(stamp(s))
    try:
        stamp(s)
        raise SystemExit("one more")
    except BlockingIOError:
        pass
    after = time.time()
    assert all(before - 0.01 <= t["at"] <= after + 0.01 for t in told), (before, told, after)
    data, control, _, _ = s.recvmsg(10, 512)
    assert data == b"x" and control[0][:2] == (socket.SOL_SOCKET, TIMESTAMPING), (data, control)
    assert after - 0.01 <= seconds(control[0][2]) <= time.time() + 0.01, control
    print(json.dumps(told))
else:
    s = socket.create_connection((address, port), 10)
    left = sum(SENDS)
    while left:
        left -= len(s.recv(left))
    time.sleep(0.3)
    s.sendall(b"x")
    s.recv(1)
"""


def times_of_sends_and_receives():
    """SO_TIMESTAMPING on eft and on the kernel: the same times in the same order for each send."""
    with Scene("stamps") as scene:
        stack = Stack(scene)
        program = scene.dir / "stamps.py"
        program.write_text(STAMPS)
        kernel = scene.kernel()

        def run(on, beside, address):
            server = scene.start(*on("python3", program, "server", address, PORT))
            wait_until(lambda: "listens" in server.log.read_text(), 20, "a server that listens")
            sh(*beside("python3", program, "client", address, PORT))
            check(server.wait(20) == 0, f"the server says {server.log.read_text()}")
            told = json.loads(server.log.read_text().split("\n")[1])
            by_send = {}
            for stamp in told:
                by_send.setdefault(stamp["number"], []).append(stamp["kind"])
                times = [t["at"] for t in told if t["number"] == stamp["number"]]
                check(times == sorted(times), f"times in this order: {times}")
            return by_send

        expected = run(kernel.on, kernel.beside, kernel.address)
        found = run(stack.on, stack.beside, stack.address)
        check(found == expected, f"{found}, the kernel has {expected}")
        check(list(expected) == [99, 50_099, 50_100], f"the kernel has {expected}")


# A listener that waits for data: what it accepts, in which order, on the kernel and on the stack.
DEFERRED = """
import select, socket, sys
address, port = sys.argv[1], int(sys.argv[2])
six = ":" in address
l = socket.socket(socket.AF_INET6 if six else socket.AF_INET)
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
for seconds in 0, 1, 3, 4, 7, 8, 100, 1000, -1, 2:
    l.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, seconds)
    print(seconds, l.getsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT))
l.bind((address, port)); l.listen()
print("listening", flush=True)
for _ in range(2):
    s, _ = l.accept()
    s.setblocking(False)
    try:
        print("accepted with", s.recv(100).decode(), flush=True)
    except BlockingIOError:
        print("accepted with nothing", flush=True)
"""

DEFERRING = """
import socket, sys, time
to = (sys.argv[1], int(sys.argv[2]))
silent = socket.create_connection(to)
time.sleep(0.3)
late = socket.create_connection(to)
time.sleep(0.3)
late.sendall(b"data")
time.sleep(15)
"""


def accepts_are_deferred():
    """Who sends data first is accepted first; who sends none, at the end of the time."""
    with Scene("deferred") as scene:
        said = {}
        for side in (scene.kernel(), Stack(scene)):
            name = type(side).__name__
            server = scene.start(*side.on("python3", "-c", DEFERRED, side.address, 7050), log=f"server-{name}.log")
            wait_until(lambda: "listening" in server.log.read_text(), 10, "the server")
            scene.start(*side.beside("python3", "-c", DEFERRING, side.address, 7050))
            check(server.wait(40) == 0, server.log.read_text())
            said[name] = server.log.read_text()
        check(said["Stack"] == said["Kernel"], f"{said}")
        check(said["Stack"].endswith("accepted with data\naccepted with nothing\n"), f"{said}")


CASES = [options_of_tcp, numbers_of_tcp_info, rate_of_an_application, times_of_sends_and_receives]
CASES += map(over_ipv6, (options_of_tcp, numbers_of_tcp_info))
CASES += [accepts_are_deferred]
