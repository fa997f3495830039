"""What the error queue tells of datagrams, on eft and on the kernel: times (SO_TIMESTAMPING) and completions (MSG_ZEROCOPY)."""

import json

from harness import Scene, Stack, check, over_ipv6, sh, wait_until

PORT = 7411

# One end sends everything back. The other says what its error queue has for it.
PROGRAM = """
import json, select, socket, struct, sys, time
role, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
TIMESTAMPING, ZEROCOPY, ERRQUEUE, MSG_ZEROCOPY = 37, 60, 0x2000, 0x4000000
# TX_SOFTWARE, RX_SOFTWARE, SOFTWARE, OPT_ID, TX_SCHED, OPT_TSONLY
FLAGS = 2 | 8 | 16 | 128 | 256 | 2048
family = socket.AF_INET6 if ":" in address else socket.AF_INET
def fresh():
    return socket.socket(family, socket.SOCK_DGRAM)
def seconds(data):
    return struct.unpack_from("qq", data)[0] + struct.unpack_from("qq", data)[1] / 1e9
def queued(s, limit=5):
    "The next thing in the queue; None: there is none."
    p = select.poll()
    p.register(s, 0)
    if not p.poll(limit * 1000):
        return None
    data, control, flags, name = s.recvmsg(100, 512, ERRQUEUE)
    assert flags == ERRQUEUE, flags
    at = [seconds(c) for level, kind, c in control if (level, kind) == (socket.SOL_SOCKET, TIMESTAMPING)]
    [error] = [c for level, kind, c in control if (level, kind) != (socket.SOL_SOCKET, TIMESTAMPING)]
    errno, origin, _, _, _, info, number = struct.unpack_from("IBBBBII", error)
    return {"at": at, "errno": errno, "origin": origin, "info": info, "number": number, "quote": data.decode()}
def times(s, to):
    s.setsockopt(socket.SOL_SOCKET, TIMESTAMPING, FLAGS)
    before = time.time()
    kinds = {}
    for size in [1, 1000, 8000]:
        s.sendto(bytes(size), to) if to else s.send(bytes(size))
    while len(kinds) < 3 or any(len(k) < 2 for k in kinds.values()):
        told = queued(s)
        assert told and told["errno"] == 42 and told["origin"] == 4, told
        assert before - 0.01 <= told["at"][0] <= time.time() + 0.01, (before, told)
        kinds.setdefault(told["number"], []).append(["sent", "scheduled"][told["info"]])
    assert queued(s, 0) is None
    sizes = []
    for _ in range(3):
        data, control, _, _ = s.recvmsg(9000, 512)
        sizes.append(len(data))
        [at] = [seconds(c) for level, kind, c in control if (level, kind) == (socket.SOL_SOCKET, TIMESTAMPING)]
        assert before - 0.01 <= at <= time.time() + 0.01
    # Numbers begin anew with the option.
    s.setsockopt(socket.SOL_SOCKET, TIMESTAMPING, FLAGS & ~128)
    s.setsockopt(socket.SOL_SOCKET, TIMESTAMPING, 2 | 16 | 128 | 2048)
    s.sendto(b"again", to) if to else s.send(b"again")
    again = queued(s)
    assert s.recv(9000) == b"again"
    s.setsockopt(socket.SOL_SOCKET, TIMESTAMPING, 0)
    s.sendto(b"quiet", to) if to else s.send(b"quiet")
    assert s.recv(9000) == b"quiet" and queued(s, 0) is None
    return [kinds, sorted(sizes), again["info"], again["number"]]
def completions(s, to):
    s.setsockopt(socket.SOL_SOCKET, ZEROCOPY, 1)
    for size in [1, 0, 60_000, 1400]:
        s.sendto(bytes(size), MSG_ZEROCOPY, to)
    s.sendto(b"copied", to)
    told = []
    while len(told) < 4:
        entry = queued(s)
        assert entry and (entry["errno"], entry["origin"], entry["at"]) == (0, 5, []), entry
        told += range(entry["info"], entry["number"] + 1)
    sizes = sorted(len(s.recv(65_536)) for _ in range(5))
    assert queued(s, 0) is None
    return [sorted(told), sizes]
def refused(s, to):
    "Errors and times in one queue."
    s.setsockopt(*((socket.IPPROTO_IPV6, 25) if ":" in address else (socket.IPPROTO_IP, 11)), 1)
    s.setsockopt(socket.SOL_SOCKET, TIMESTAMPING, 2 | 16 | 128 | 2048)
    s.sendto(b"nobody", (to[0], 9))
    time.sleep(0.5)
    told = [queued(s) for _ in range(2)]
    s.settimeout(0)
    try:
        s.recv(10)
        pending = "data"
    except OSError as error:
        pending = error.errno
    return [sorted((t["errno"], t["origin"], t["quote"]) for t in told), pending, queued(s, 0)]
def arrivals(s, to):
    "SO_TIMESTAMP and SO_TIMESTAMPNS: the one ends the other."
    told = []
    options = [(29, 1_000_000), (35, 1_000_000_000)]
    for option, parts in [*options, options[0]]:
        s.setsockopt(socket.SOL_SOCKET, option, 1)
        before = time.time()
        s.sendto(b"when", to)
        data, control, _, _ = s.recvmsg(10, 512)
        [(level, kind, when)] = control
        whole, part = struct.unpack("qq", when)
        assert 0 <= part < parts and before - 0.01 <= whole + part / parts <= time.time() + 0.01, (before, whole, part)
        told.append([level, kind, [s.getsockopt(socket.SOL_SOCKET, o) for o, _ in options]])
    # Beside the other option, which keeps its own.
    s.setsockopt(socket.SOL_SOCKET, TIMESTAMPING, 8 | 16)
    s.sendto(b"when", to)
    told.append([kind for _, kind, _ in s.recvmsg(10, 512)[1]])
    s.setsockopt(socket.SOL_SOCKET, 35, 0)
    s.sendto(b"when", to)
    told.append([kind for _, kind, _ in s.recvmsg(10, 512)[1]])
    told.append([s.getsockopt(socket.SOL_SOCKET, o) for o in (29, 35, TIMESTAMPING)])
    return told
if role == "server":
    s = fresh()
    s.bind((address, port))
    print("bound", flush=True)
    while True:
        s.sendto(*s.recvfrom(65_536))
to = (address, port)
# Linux stamps what comes from some time on after a first socket has asked for it.
stamped = fresh()
stamped.settimeout(5)
stamped.setsockopt(socket.SOL_SOCKET, TIMESTAMPING, 8 | 16)
while True:
    stamped.sendto(b"stamped", to)
    if any(kind == TIMESTAMPING for _, kind, _ in stamped.recvmsg(10, 512)[1]):
        break
connected = fresh()
connected.connect(to)
connected.settimeout(5)
answers = [times(connected, None)]
for test in times, completions, refused, arrivals:
    s = fresh()
    s.settimeout(5)
    answers.append(test(s, to))
print(json.dumps(answers))
"""


def error_queues_of_datagrams():
    with Scene("queues") as scene:
        stack, kernel = Stack(scene), scene.kernel()
        program = scene.dir / "queues.py"
        program.write_text(PROGRAM)

        def run(side):
            server = scene.start(*side.beside("python3", program, "server", side.host, PORT))
            wait_until(lambda: "bound" in server.log.read_text(), 20, "a server")
            done = sh(*side.on("python3", program, "client", side.host, PORT), ok=False)
            check(done.returncode == 0, done.stderr)
            return json.loads(done.stdout)

        expected, found = run(kernel), run(stack)
        check(found == expected, f"{found}, the kernel has {expected}")
        check(expected[0][0] == {str(n): ["scheduled", "sent"] for n in range(3)}, f"the kernel has {expected}")


CASES = [error_queues_of_datagrams, over_ipv6(error_queues_of_datagrams)]
