"""Groups and broadcasts: the same program on a stack and on the kernel, with the far end of a veth pair as the other side."""

import re
import subprocess

from harness import Scene, Stack, check, end, sh, wait_until

# Errors of the calls; the same text is expected of the stack and of the kernel.
ERRORS = """
import errno, socket, struct, sys
own = sys.argv[1]
six = ":" in own
family = socket.AF_INET6 if six else socket.AF_INET
level = socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP
group = lambda n: "ff15::1:%x" % n if six else "239.77.1.%d" % n
pack = lambda a: socket.inet_pton(family, a)
storage = lambda a: struct.pack("=HHI16sI", family, 0, 0, pack(a), 0).ljust(128, b"\\0") if six else \\
    struct.pack("=HH4s", family, 0, pack(a)).ljust(128, b"\\0")
here = next(i for i, n in socket.if_nameindex() if n != "lo")
s = socket.socket(family, socket.SOCK_DGRAM)
def tell(name, call):
    try:
        done = call()
        print(name, "fine" if done is None else done)
    except OSError as e:
        print(name, errno.errorcode[e.errno])
def join(name, number, a, index=here):
    tell(name, lambda: s.setsockopt(level, number, struct.pack("=II", index, 0) + storage(a)))
def source(name, number, a, b):
    tell(name, lambda: s.setsockopt(level, number, struct.pack("=II", here, 0) + storage(a) + storage(b)))
JOIN, BLOCK, UNBLOCK, LEAVE, JOIN_SOURCE, LEAVE_SOURCE = range(42, 48)
join("leave early", LEAVE, group(1))
join("join", JOIN, group(1))
join("join again", JOIN, group(1))
join("join a host", JOIN, own)
join("join nowhere", JOIN, group(1), 999)
source("block without a group", BLOCK, group(2), own)
source("unblock what is not blocked", UNBLOCK, group(1), own)
source("block", BLOCK, group(1), own)
source("block again", BLOCK, group(1), own)
source("join a source of what excludes", JOIN_SOURCE, group(1), own)
source("unblock", UNBLOCK, group(1), own)
join("leave", LEAVE, group(1))
join("leave again", LEAVE, group(1))
source("join a source", JOIN_SOURCE, group(3), own)
source("join it again", JOIN_SOURCE, group(3), own)
source("block in what includes", BLOCK, group(3), own)
source("leave the source", LEAVE_SOURCE, group(3), own)
source("leave it again", LEAVE_SOURCE, group(3), own)

# Whole filters. Python's getsockopt asks nothing.
import ctypes
EXCLUDE, INCLUDE = 0, 1
other = lambda n: "fd00::%x" % n if six else "10.9.9.%d" % n
def whole(name, a, mode, *sources, count=None, cut=0, index=here):
    value = struct.pack("=II", index, 0) + storage(a) + struct.pack("=II", mode, len(sources) if count is None else count)
    value += b"".join(map(storage, sources))
    tell(name, lambda: s.setsockopt(level, 48, value[:len(value) - cut]))
def read(name, number, head, room, size, at):
    buffer = ctypes.create_string_buffer(head + struct.pack("=II", 9, room) + b"x" * size * room)
    length = ctypes.c_uint(len(buffer) - 1)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.getsockopt(s.fileno(), level, number, buffer, ctypes.byref(length)):
        print(name, errno.errorcode[ctypes.get_errno()])
        return
    mode, count = struct.unpack_from("=II", buffer, len(head))
    some = [buffer.raw[len(head) + 8 + size * i + at:][:len(pack(own))] for i in range(min(count, room))]
    print(name, mode, count, length.value, sorted(socket.inet_ntop(family, a) for a in some) if count <= room else len(some))
def read_whole(name, a, room=3):
    read(name, 48, struct.pack("=II", here, 0) + storage(a), room, 128, 8 if six else 4)
whole("a filter without a group", group(7), EXCLUDE, other(1))
whole("none wanted without a group", group(7), INCLUDE)
read_whole("a filter is read without a group", group(7))
join("join for filters", JOIN, group(7))
read_whole("all is wanted", group(7))
whole("two are wanted", group(7), INCLUDE, other(2), other(1))
read_whole("these two", group(7))
read_whole("room for one", group(7), 1)
whole("three are not", group(7), EXCLUDE, other(1), other(3), other(4))
read_whole("these three", group(7))
source("one more is blocked", BLOCK, group(7), other(5))
read_whole("four", group(7), 4)
whole("a mode of its own", group(7), 2, other(1))
whole("no group", own, INCLUDE, other(1))
whole("too short for its sources", group(7), INCLUDE, other(1), cut=1)
whole("too short", group(7), INCLUDE, cut=4)
whole("too many", group(7), INCLUDE, *map(other, range(1, 67)))
whole("more than came", group(7), INCLUDE, other(1), count=2)
whole("nowhere", group(7), INCLUDE, other(1), index=999)
read_whole("still four", group(7), 4)
whole("all is wanted again", group(7), EXCLUDE)
read_whole("which reads so", group(7))
whole("nothing is wanted", group(7), INCLUDE)
join("it has left", LEAVE, group(7))
if not six:
    join("join for old filters", JOIN, group(7))
    head = pack(group(7)) + pack(own)
    tell("an old filter", lambda: s.setsockopt(0, 41, head + struct.pack("=II", INCLUDE, 2) + pack(other(1)) + pack(other(2))))
    read("an old filter is read", 41, head, 3, 4, 0)
    tell("an old one is too short", lambda: s.setsockopt(0, 41, head + struct.pack("=II", INCLUDE, 2) + pack(other(1))))
    tell("an old one of nobody", lambda: s.setsockopt(0, 41, pack(group(7)) + bytes([9, 9, 9, 9]) + struct.pack("=II", INCLUDE, 0)))
    join("leave for old filters", LEAVE, group(7))
if six:
    mreq = lambda a, i: pack(a) + struct.pack("=I", i)
    tell("old join", lambda: s.setsockopt(level, socket.IPV6_JOIN_GROUP, mreq(group(4), here)))
    tell("old join again", lambda: s.setsockopt(level, socket.IPV6_JOIN_GROUP, mreq(group(4), here)))
    tell("old leave", lambda: s.setsockopt(level, socket.IPV6_LEAVE_GROUP, mreq(group(4), here)))
    tell("too short", lambda: s.setsockopt(level, socket.IPV6_JOIN_GROUP, b"x" * 16))
    tell("interface", lambda: s.setsockopt(level, socket.IPV6_MULTICAST_IF, here))
    tell("no interface", lambda: s.setsockopt(level, socket.IPV6_MULTICAST_IF, 999))
    tell("loop 2", lambda: s.setsockopt(level, socket.IPV6_MULTICAST_LOOP, 2))
    tell("loop", lambda: s.setsockopt(level, socket.IPV6_MULTICAST_LOOP, 0))
    tell("loop reads", lambda: s.getsockopt(level, socket.IPV6_MULTICAST_LOOP))
    tell("all", lambda: s.setsockopt(level, 29, 0))
    tell("all reads", lambda: s.getsockopt(level, 29))
else:
    for n in range(20):
        join("group %d" % n, JOIN, group(100 + n))
    join("one too many", JOIN, group(120))
    t = socket.socket(family, socket.SOCK_DGRAM)
    s = t
    tell("old join", lambda: t.setsockopt(0, socket.IP_ADD_MEMBERSHIP, pack(group(4)) + pack(own)))
    tell("old join again", lambda: t.setsockopt(0, socket.IP_ADD_MEMBERSHIP, pack(group(4)) + pack(own)))
    tell("by index", lambda: t.setsockopt(0, socket.IP_ADD_MEMBERSHIP, pack(group(4)) + bytes(4) + struct.pack("=i", here)))
    tell("of nobody", lambda: t.setsockopt(0, socket.IP_ADD_MEMBERSHIP, pack(group(5)) + bytes([9, 9, 9, 9])))
    tell("old leave", lambda: t.setsockopt(0, socket.IP_DROP_MEMBERSHIP, pack(group(4)) + pack(own)))
    tell("too short", lambda: t.setsockopt(0, socket.IP_ADD_MEMBERSHIP, b"x" * 4))
    tell("old source", lambda: t.setsockopt(0, 39, pack(group(6)) + pack(own) + pack(own)))
    tell("old source again", lambda: t.setsockopt(0, 39, pack(group(6)) + pack(own) + pack(own)))
    tell("old source leaves", lambda: t.setsockopt(0, 40, pack(group(6)) + pack(own) + pack(own)))
    tell("long source", lambda: t.setsockopt(0, 39, bytes(16)))
    tell("interface", lambda: t.setsockopt(0, socket.IP_MULTICAST_IF, pack(own)))
    tell("interface reads", lambda: t.getsockopt(0, socket.IP_MULTICAST_IF, 4) == pack(own))
    tell("no interface", lambda: t.setsockopt(0, socket.IP_MULTICAST_IF, bytes([9, 9, 9, 9])))
    tell("loop 2", lambda: t.setsockopt(0, socket.IP_MULTICAST_LOOP, 2))
    tell("loop reads", lambda: t.getsockopt(0, socket.IP_MULTICAST_LOOP))
    tell("all 2", lambda: t.setsockopt(0, 49, 2))
    tell("all", lambda: t.setsockopt(0, 49, 0))
    tell("all reads", lambda: t.getsockopt(0, 49))
    tell("broadcast", lambda: t.sendto(b"x", (own.rsplit(".", 1)[0] + ".255", 9)))
    t.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    tell("broadcast allowed", lambda: t.sendto(b"x", (own.rsplit(".", 1)[0] + ".255", 9)))
"""

# Two members, one by a source filter, and a socket that is none: what each hears until "end", once a line.
LISTEN = """
import select, socket, struct, sys
own, group, port, peer = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
six = ":" in own
family = socket.AF_INET6 if six else socket.AF_INET
level = socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP
pack = lambda a: socket.inet_pton(family, a)
storage = lambda a: struct.pack("=HHI16sI", family, 0, 0, pack(a), 0).ljust(128, b"\\0") if six else \\
    struct.pack("=HH4s", family, 0, pack(a)).ljust(128, b"\\0")
here = next(i for i, n in socket.if_nameindex() if n != "lo")
all_groups = 29 if six else 49
def member():
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if six:
        s.setsockopt(level, socket.IPV6_V6ONLY, 1)
    s.bind(("::" if six else "0.0.0.0", port))
    s.setsockopt(level, all_groups, 0)
    s.setsockopt(level, socket.IPV6_RECVPKTINFO if six else 8, 1)
    return s
sockets = {"member": member(), "filter": member(), "stranger": member(), "sends": member()}
sockets["member"].setsockopt(level, 42, struct.pack("=II", here, 0) + storage(group))
sockets["filter"].setsockopt(level, 42, struct.pack("=II", here, 0) + storage(group))
sockets["filter"].setsockopt(level, 48, struct.pack("=II", here, 0) + storage(group) + struct.pack("=II", 1, 1) + storage(peer))
sockets["sends"].setsockopt(level, socket.IPV6_MULTICAST_IF if six else socket.IP_MULTICAST_IF, struct.pack("=i", here) if six else pack(own))
bound = socket.socket(family, socket.SOCK_DGRAM)
bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
bound.bind((group, port))
sockets["bound"] = bound
print("listening", flush=True)
names = {s: n for n, s in sockets.items()}
for i in range(2):
    sockets["sends"].sendto(b"own %d" % i, (group, port))
    sockets["sends"].setsockopt(level, socket.IPV6_MULTICAST_LOOP if six else socket.IP_MULTICAST_LOOP, 0)
# Three of them hear the last one.
ends = 0
while ends < 3:
    for s in select.select(list(names), [], [])[0]:
        data, ancillary, _, address = s.recvmsg(100, 200)
        by = ""
        for _, _, info in ancillary:
            by = struct.unpack("=16sI", info)[1] if six else struct.unpack("=i8s", info)[0]
            by = " by the device" if by == here else " by %r" % by
        print(names[s], "heard", data.decode() + by, flush=True)
        ends += data == b"end"
"""

SEND = """
import socket, sys
own, group, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
six = ":" in own
s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
index = next(i for i, n in socket.if_nameindex() if n == "far")
if six:
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
else:
    s.setsockopt(0, socket.IP_MULTICAST_IF, socket.inet_aton(own))
s.bind((own, 0))
for word in sys.argv[4:]:
    s.sendto(word.encode(), (group, port))
"""

# Broadcasts: every socket on the port hears them.
BROADCAST = """
import select, socket, sys
port = int(sys.argv[2])
here = sys.argv[1].rsplit(".", 1)[0] + ".255"
sockets = {}
for name, address in [("any", "0.0.0.0"), ("another", "0.0.0.0"), ("bound", here), ("host", sys.argv[1])]:
    s = sockets[name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.bind((address, port))
print("listening", flush=True)
sockets["host"].sendto(b"own", (here, port))
heard = 0
while heard < 3 * 2:
    for name, s in sorted(sockets.items()):
        if select.select([s], [], [], 0.2)[0]:
            print(name, "heard", s.recv(100).decode(), flush=True)
            heard += 1
"""


def both(scene):
    """A stack and the kernel, each with its far side."""
    return [Stack(scene, kind="packet"), scene.kernel()]


def errors_of_memberships_are_those_of_the_kernel():
    for version, route in ((4, "224.0.0.0/4"), (6, "ff00::/8")):
        Stack.usual_version = version
        try:
            with Scene(f"group-errors-{version}") as scene:
                texts = []
                for side in both(scene):
                    texts.append(sh(*side.on("python3", "-c", ERRORS, side.address)).stdout.splitlines())
                pairs = [p for p in zip(*texts) if p[0] != p[1]]
                check(len(texts[0]) == len(texts[1]) and not pairs, f"IPv{version}: stack and kernel differ: {pairs}")
        finally:
            Stack.usual_version = 4


def heard(scene, side, group, between=lambda: None):
    listener = scene.start(*side.on("python3", "-c", LISTEN, side.address, group, "7171", side.host))
    wait_until(lambda: "listening" in listener.log.read_text() or listener.poll() is not None, 10, "the listener")
    wait_until(lambda: "member heard own 0" in listener.log.read_text() or listener.poll() is not None, 10, "its own datagram")
    send = lambda *words: sh(*side.beside("python3", "-c", SEND, side.host, group, "7171", *words))
    send("first", "second")
    between()
    wait_until(lambda: "member heard second" in listener.log.read_text(), 10, "the second datagram")
    send("third")
    wait_until(lambda: "member heard third" in listener.log.read_text(), 10, "the third datagram")
    send("end")
    wait_until(lambda: listener.poll() is not None, 10, "the listener's end")
    return sorted(listener.log.read_text().splitlines())


def members_hear_what_they_hear_on_the_kernel():
    for version, group in ((4, "239.77.2.1"), (6, "ff15::2:1")):
        Stack.usual_version = version
        try:
            with Scene(f"group-members-{version}") as scene:
                stack, kernel = both(scene)
                ours, theirs = heard(scene, stack, group), heard(scene, kernel, group)
                check(ours == theirs, f"IPv{version}: the stack's members heard {ours}, the kernel's {theirs}")
                check("filter heard second by the device" in ours and not any("stranger" in l for l in ours), f"{ours}")
        finally:
            Stack.usual_version = 4


def memberships_survive_deaths_of_udp_and_ip():
    for version, group in ((4, "239.77.2.1"), (6, "ff15::2:1")):
        Stack.usual_version = version
        try:
            with Scene(f"group-deaths-{version}") as scene:
                stack = Stack(scene, kind="packet")

                def kill():
                    for component in ("udp", "ip", "sockets"):
                        stack.kill(component)
                    # ip is told again before datagrams are expected.
                    wait_until(lambda: stack.counter("ip", "membership_out") > 0, 10, "reports of the new ip")
                lines = heard(scene, stack, group, kill)
                check("filter heard third by the device" in lines, f"{lines}")
        finally:
            Stack.usual_version = 4


def broadcasts_are_heard_as_on_the_kernel():
    with Scene("broadcasts") as scene:
        texts = []
        for side in both(scene):
            listener = scene.start(*side.on("python3", "-c", BROADCAST, side.address, "7272"))
            wait_until(lambda: listener.log.read_text().count("own") == 3 or listener.poll() is not None, 10, "its own broadcast")
            sh(*side.beside("python3", "-c", f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.sendto(b"theirs", ("{side.address.rsplit('.', 1)[0]}.255", 7272))
"""))
            wait_until(lambda: listener.poll() is not None, 10, "the listener's end")
            texts.append(sorted(listener.log.read_text().splitlines()))
        check(texts[0] == texts[1] and len(texts[0]) == 7, f"on the stack {texts[0]}, on the kernel {texts[1]}")


def socat_joins_a_group():
    with Scene("socat-group") as scene:
        stack = Stack(scene, kind="packet")
        listener = scene.start(*stack.on("socat", "-u", f"UDP4-RECVFROM:7373,ip-add-membership=239.77.3.1:{stack.address},reuseaddr", "STDOUT"))
        stack.bound(7373)
        reports = scene.start("ip", "netns", "exec", stack.netns, "tcpdump", "-lvni", "far", "igmp", log="tcpdump.log")
        wait_until(lambda: "listening on" in reports.log.read_text(), 10, "tcpdump")
        sender = f"STDIN UDP4-DATAGRAM:239.77.3.1:7373,ip-multicast-if={stack.host}".split()
        sh(*stack.beside("socat", "-u", *sender), stdin="hello")
        wait_until(lambda: listener.log.read_text() == "hello" or listener.poll() is not None, 10, "socat to hear it")
        check(listener.log.read_text() == "hello", listener.log.read_text())
        wait_until(lambda: re.search(rf"{re.escape(stack.address)} > 224.0.0.22: igmp v3 report.*239\.77\.3\.1 to_in",
                                     reports.log.read_text()), 10, "the report of leaving")


CASES = [
    errors_of_memberships_are_those_of_the_kernel, members_hear_what_they_hear_on_the_kernel,
    memberships_survive_deaths_of_udp_and_ip, broadcasts_are_heard_as_on_the_kernel, socat_joins_a_group,
]
