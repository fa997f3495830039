"""Several datagrams by one call: UDP_SEGMENT and UDP_GRO, and Linux's result for each use of them."""

import subprocess

from harness import Scene, Stack, check, over_ipv6, wait_until

COMMON = """
import errno, hashlib, select, socket, struct, sys
UDP_SEGMENT, UDP_GRO = 103, 104
def family(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET
def tried(call, *arguments):
    try:
        return call(*arguments)
    except OSError as e:
        return errno.errorcode[e.errno]
def size(n, kind=UDP_SEGMENT, form="H"):
    return [(socket.SOL_UDP, kind, struct.pack(form, n))]
def bytes_of(n):
    return bytes(i * 31 % 251 for i in range(n))
"""

# Reports the length of each datagram since the last request, and their content as a whole. Sends datagrams on request,
# which the kernel cuts.
PEER = COMMON + """
s = socket.socket(family(sys.argv[1]), socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
s.bind((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
lengths, whole = [], hashlib.sha256()
while True:
    data, address = s.recvfrom(65536)
    if data == b"report":
        s.sendto(repr((len(lengths), sorted(set(lengths)), whole.hexdigest()[:16])).encode(), address)
        lengths, whole = [], hashlib.sha256()
    elif data.startswith(b"send "):
        total, segment = map(int, data.split()[1:])
        s.sendmsg([bytes_of(total)], size(segment), 0, address)
    else:
        lengths.append(len(data))
        whole.update(data)
"""

PROGRAM = COMMON + """
import fcntl, os, termios, time
host, place = sys.argv[1], (sys.argv[1], int(sys.argv[2]))
def new():
    s = socket.socket(family(host), socket.SOCK_DGRAM)
    s.settimeout(10)
    return s
def report(sender):
    # What two sockets send need not keep its order.
    while unsent(sender):
        time.sleep(0.001)
    s = new()
    s.sendto(b"report", place)
    return s.recv(1000).decode()
def unsent(s):
    return struct.unpack("i", fcntl.ioctl(s, termios.TIOCOUTQ, bytes(4)))[0]

for option in UDP_SEGMENT, UDP_GRO:
    for value in -1, 0, 1, 2, 1400, 65535, 65536, b"\\x05\\0", b"":
        s = new()
        print(option, value, tried(s.setsockopt, socket.SOL_UDP, option, value), s.getsockopt(socket.SOL_UDP, option))
    stream = socket.socket(family(host), socket.SOCK_STREAM)
    print(option, "stream", tried(stream.setsockopt, socket.SOL_UDP, option, 1) is None)

# (bytes, bytes of each), by the call and by the option, with a peer and without.
for total, each in [(1000, 100), (1050, 100), (50, 100), (100, 100), (0, 100), (1000, 0), (128, 1), (129, 1), (12800, 100),
                    (12801, 100), (1000, 2000), (2000, 2000), (1472, 1452), (3000, 1452), (3000, 1472), (3000, 1473), (3000, 65535),
                    (50000, 1400), (65507, 1400), (65528 if ":" in host else 65508, 1400)]:
    for connected in False, True:
        for by_call in False, True:
            s = new()
            if connected:
                s.connect(place)
            if not by_call:
                s.setsockopt(socket.SOL_UDP, UDP_SEGMENT, each)
            to = () if connected else place
            data, control = bytes_of(total), size(each) if by_call else []
            sent = tried(s.sendmsg, [data], control, 0, to) if to else tried(s.sendmsg, [data], control)
            print(total, each, connected, by_call, sent, report(s))

s = new()
print("no peer", tried(s.sendmsg, [b"data"], size(100)))
s.connect(place)
for control in [size(100, UDP_GRO), size(100, form="I"), size(100, form="B"), size(0), size(10) + size(20),
                size(10) + [(socket.SOL_UDP, 1, b"12")]]:
    print("control", tried(s.sendmsg, [bytes_of(300)], control), report(s))
s.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 200)
print("the call wins", s.sendmsg([bytes_of(300)], size(100)), report(s))
print("0 is none", s.sendmsg([bytes_of(300)], size(0)), report(s))
print("write", os.write(s.fileno(), bytes_of(300)), report(s))
print("more", s.sendmsg([bytes_of(150)], size(100), socket.MSG_MORE), s.sendmsg([bytes_of(150)], size(50)), report(s))
s.setsockopt(socket.SOL_UDP, 1, 1)
print("cork", s.send(bytes_of(250)), s.send(bytes_of(250)), s.setsockopt(socket.SOL_UDP, 1, 0), report(s))

# What comes in pieces of 700 bytes comes whole, however many pieces a call has.
def receive(s, total, each):
    s.sendto(b"send %d %d" % (total, each), place)
    got, merged = b"", 0
    while len(got) < total:
        data, control, flags, _ = s.recvmsg(65536, 1000)
        told = [struct.unpack("i", c)[0] for level, kind, c in control if (level, kind) == (socket.SOL_UDP, UDP_GRO)]
        assert told == ([each] if len(data) > each else []), (len(data), told)
        assert len(data) % each == 0 or len(got) + len(data) == total, (len(got), len(data))
        assert flags == 0, flags
        got += data
        merged += bool(told)
    return got == bytes_of(total), merged
for gro in 0, 1:
    s = new()
    s.setsockopt(socket.SOL_UDP, UDP_GRO, gro)
    rounds = [receive(s, 20300, 700) for _ in range(50)]
    print("received", gro, all(whole for whole, _ in rounds), any(merged for _, merged in rounds))
    # What is short of room is cut as one datagram is, and its size is told.
    s.sendto(b"send 100 700", place)
    print(s.recvmsg(60, 1000)[1:3])
"""


def said(scene, side, name):
    peer_script, program = scene.dir / f"peer-{name}.py", scene.dir / f"program-{name}.py"
    peer_script.write_text(PEER)
    program.write_text(PROGRAM)
    peer = scene.start(*side.beside("python3", peer_script, side.host, 7310), log=f"peer-{name}.log")
    wait_until(lambda: "ready" in peer.log.read_text(), 10, "the peer")
    done = subprocess.run(side.on("python3", program, side.host, 7310), capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, f"on {name}: {done.stdout[-300:]}{done.stderr[-1500:]}")
    return done.stdout.splitlines()


def datagrams_of_one_call_are_as_on_linux():
    with Scene("udp-segments") as scene:
        stack = Stack(scene)
        on_stack, on_kernel = said(scene, stack, "eft"), said(scene, scene.kernel(), "kernel")
        differ = [f"eft: {a}\nLinux: {b}" for a, b in zip(on_stack, on_kernel) if a != b]
        check(not differ and len(on_stack) == len(on_kernel), "\n".join(differ[:20]) or "lines are missing")
        check(stack.counter("udp", "merged_datagrams") > 0, "udp merged nothing")


CASES = [datagrams_of_one_call_are_as_on_linux]
CASES += [over_ipv6(case) for case in CASES]
