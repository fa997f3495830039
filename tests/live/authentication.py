"""TCP-AO (RFC 5925) between two stacks, since few kernels have it, and what is on the wire between them, checked here from its bytes."""

import functools
import hmac
import struct
import subprocess

from harness import EFT, Scene, Stack, addresses, check, over_ipv6, sh, wait_until
from sessions import session

PORT = 1791
HMAC, CMAC = "hmac(sha1)", "cmac(aes128)"

# Two that have each other's keys, of the same names at both ends but for 100 more: what one sends with, the other receives with.
KEYS = """
import ctypes, errno
names, secrets = keys
ADD, DEL, INFO, KEYS = 38, 39, 40, 41
OFFSET = 0 if role == "server" else 100
if family == socket.AF_INET:
    address, prefix = struct.pack("=HH4s", family, 0, socket.inet_aton(peer)), 32
else:
    address, prefix = struct.pack("=HHI16sI", family, 0, 0, socket.inet_pton(family, peer), 0), 128
address = address.ljust(128, b"\\0")
def ids(key):
    return (key + OFFSET) % 200, (key + 100 - OFFSET) % 200
def add(s, key, name, secret, exclude=False, flags=0, mac=0):
    send, receive = ids(key)
    head = address + name.encode().ljust(64, b"\\0") + struct.pack("=iIHBBBBBB", 0, flags, 0, prefix, send, receive, mac, 2 * exclude, len(secret))
    s.setsockopt(socket.IPPROTO_TCP, ADD, head + secret.encode().ljust(80, b"\\0"))
def delete(s, key):
    send, receive = ids(key)
    s.setsockopt(socket.IPPROTO_TCP, DEL, address + struct.pack("=iIHBBBBBB", 0, 0, 0, prefix, send, receive, 0, 0, 0))
def ask_for(s, key):
    s.setsockopt(socket.IPPROTO_TCP, INFO, struct.pack("=IHBB5Q", 2, 0, 0, ids(key)[1], 0, 0, 0, 0, 0))
def info(s):
    return struct.unpack("=IHBB5Q", s.getsockopt(socket.IPPROTO_TCP, INFO, 48))
def fails(number, call, *arguments, **more):
    try:
        call(*arguments, **more)
    except OSError as error:
        assert error.errno == number, error
    else:
        raise SystemExit(f"{call} does not fail")
def told_keys(s, count):
    # Python takes the length of all for that of one: the first is told, and how many there are.
    asked = struct.pack("=272xIHBBBBBBi16x", count, 4, 0, 0, 0, 0, 0, 0, 0)
    buffer, length = ctypes.create_string_buffer(asked.ljust(304 * count, b"\\0")), ctypes.c_uint32(304)
    assert ctypes.CDLL(None).getsockopt(s.fileno(), socket.IPPROTO_TCP, KEYS, buffer, ctypes.byref(length)) == 0
    keys = [buffer.raw[i * 304:][:304] for i in range(count)]
    assert length.value == 304 and struct.unpack_from("=I", keys[0], 272)[0] == count
    return sorted((k[278], k[279], k[192:192 + k[283]].decode()) for k in keys)
def give_keys(s):
    fails(errno.ENOENT, info, s)
    if names == "none":
        return
    for key, (name, secret) in enumerate(zip(names.split(";"), secrets.split(";"))):
        add(s, key + 1, name, secret, exclude=key == 1)
        fails(errno.EEXIST, add, s, key + 1, name, "another")
    fails(errno.ENOENT, add, s, 9, "hmac(md5)", "x")
    fails(errno.EMSGSIZE, add, s, 9, "hmac(sha1)", "x", mac=16)
    assert len(told_keys(s, key + 1)) == key + 1
    if role == "client":
        # It begins with the first.
        s.setsockopt(socket.IPPROTO_TCP, INFO, struct.pack("=IHBB5Q", 3, 0, *ids(1), 0, 0, 0, 0, 0))
def looks(s, turn):
    if role == "server" and turn == 1:
        # From now on the peer is to sign with its second key; it follows, and asks for nothing itself.
        ask_for(s, 2)
    if role == "client" and turn == 3 and names != "none":
        # The server has asked for it, and so do we.
        assert info(s)[2] == 102, info(s)
        ask_for(s, 2)
def ends(s):
    if names == "none":
        return
    if role == "server":
        flags, _, current, next, good, bad, unknown, unsigned, _ = info(s)
        assert (current, next, bad, unknown, unsigned) == (2, 102, 0, 0, 0) and flags & 3 == 3 and good > 20, info(s)
    else:
        fails(errno.EBUSY, delete, s, 2)
        delete(s, 1)
        fails(errno.ENOENT, delete, s, 1)
        assert told_keys(s, 1) == [(102, 2, secrets.split(";")[1])]
"""


class Two:
    """Two stacks at the ends of a veth pair."""

    def __init__(self, scene, *options):
        self.scene, self.names = scene, ("lta", "ltb")
        one, two, length = addresses(79)
        self.addresses = (one, two)
        sh("ip", "link", "add", "eftva", "type", "veth", "peer", "name", "eftvb")
        scene.undo("ip", "link", "del", "eftva")
        for link in ("eftva", "eftvb"):
            sh("ip", "link", "set", link, "up")
        self.processes = [scene.start(EFT, "up", "--name", name, "--device", f"packet:{link}", "--address", f"{address}/{length}",
                                      *options, log=f"up-{name}.log")
                          for name, link, address in zip(self.names, ("eftva", "eftvb"), self.addresses)]
        for process in self.processes:
            wait_until(lambda: "ready" in process.log.read_text() or process.poll() is not None, 10, "a stack to be ready")
            check(process.poll() is None, process.log.read_text())

    def on(self, side, *command):
        return [EFT, "run", "--name", self.names[side], "--", *map(str, command)]

    def stack(self, side):
        """What a `Stack` does with one of them."""
        stack = object.__new__(Stack)
        stack.scene, stack.name = self.scene, self.names[side]
        return stack


def between(scene, two, name, keys, kill=lambda turn: None):
    """A session with these keys (algorithms, secrets) of server and client; returns both processes."""
    sides = [(functools.partial(two.on, side), two.addresses[side], keys[side]) for side in (0, 1)]
    return session(scene, name, KEYS, PORT, *sides, kill)


def cmac(key, data):
    done = subprocess.run(["openssl", "mac", "-cipher", "AES-128-CBC", "-macopt", f"hexkey:{key.hex()}", "-in", "-", "CMAC"],
                          input=data, capture_output=True, check=True)
    return bytes.fromhex(done.stdout.decode().strip())


def code(algorithm, secret, context, data):
    """RFC 5926 §3."""
    if algorithm == HMAC:
        traffic = hmac.digest(secret, b"\x01TCP-AO" + context + struct.pack("!H", 160), "sha1")
        return hmac.digest(traffic, data, "sha1")[:12]
    master = secret if len(secret) == 16 else cmac(bytes(16), secret)
    return cmac(cmac(master, b"\x01TCP-AO" + context + struct.pack("!H", 128)), data)[:12]


def packets(path):
    """The IP packets of a capture of Ethernet frames."""
    data = path.read_bytes()
    at, (magic,) = 24, struct.unpack_from("=I", data)
    check(magic == 0xa1b2c3d4, f"{path} is no capture")
    while at + 16 <= len(data):
        _, _, size, _ = struct.unpack_from("=4I", data, at)
        yield data[at + 30:at + 16 + size]
        at += 16 + size


def parsed(packet):
    """Addresses, pseudo-header without length, and TCP's bytes; None if it is another protocol."""
    if packet[0] >> 4 == 4 and packet[9] == 6:
        size = struct.unpack_from("!H", packet, 2)[0]
        tcp = packet[(packet[0] & 15) * 4:size]
        return packet[12:16], packet[16:20], packet[12:20] + struct.pack("!HH", 6, len(tcp)), tcp
    if packet[0] >> 4 == 6 and packet[6] == 6:
        tcp = packet[40:40 + struct.unpack_from("!H", packet, 4)[0]]
        return packet[8:24], packet[24:40], packet[8:40] + struct.pack("!II", len(tcp), 6), tcp
    return None


def verify(path, algorithms, secrets, most_of_cmac=60):
    """Checks the code of every segment of one connection of a capture (RFC 5925 §5.1, §5.2, §6.2); of AES as many as openssl can make
    soon. Returns the KeyIDs that each side used, in order."""
    isns, used, checked = {}, {}, [0, 0]
    for source, destination, pseudo, tcp in filter(None, map(parsed, packets(path))):
        ports, seq, ack = tcp[:4], *struct.unpack_from("!II", tcp, 4)
        syn, acks = tcp[13] & 2, tcp[13] & 16
        me, other = (source, ports[:2]), (destination, ports[2:])
        if syn:
            isns[me] = seq
        own, peers = isns[me], isns.get(other, 0) if not syn or acks else 0
        options, at = bytearray(tcp[20:(tcp[12] >> 4) * 4]), 0
        while options[at] != 29:
            at += 1 if options[at] == 1 else options[at + 1]
        told, key = bytes(options[at + 4:at + 16]), options[at + 2]
        check(options[at + 1] == 16, "a code of another length")
        options[at + 4:at + 16] = bytes(12)
        number = (key - 1) % 100
        is_cmac = algorithms[number] == CMAC
        mine = used.setdefault(me, [])
        if not mine or mine[-1] != key:
            mine.append(key)
        if is_cmac and checked[1] >= most_of_cmac:
            continue
        checked[is_cmac] += 1
        # The second key leaves other options out.
        covered = options[at:at + 16] if number == 1 else options
        data = struct.pack("!I", int(seq < own)) + pseudo + tcp[:16] + bytes(2) + tcp[18:20] + covered + tcp[(tcp[12] >> 4) * 4:]
        context = source + destination + ports + struct.pack("!II", own, peers)
        check(code(algorithms[number], secrets[number].encode(), context, data) == told, f"a wrong code: {tcp[:60].hex()}")
    check(sum(checked) > 100, f"{checked} segments")
    return used


def authenticated_sessions():
    with Scene("authentication") as scene:
        two = Two(scene)
        for name, algorithms in [("hmac", (HMAC, HMAC)), ("both", (HMAC, CMAC))]:
            capture = scene.dir / f"{name}.pcap"
            tcpdump = scene.start("tcpdump", "-Z", "root", "-U", "-i", "eftva", "-w", str(capture), "tcp", "port", str(PORT),
                                  log=f"{name}-tcpdump.log")
            wait_until(lambda: "listening on" in tcpdump.log.read_text(), 10, "tcpdump")
            secrets = ("a secret of one", "another secret, longer than the first")
            keys = (";".join(algorithms), ";".join(secrets))
            server, client = between(scene, two, name, (keys, keys), lambda turn: two.stack(turn % 2).kill("tcp"))
            check(client.wait(30) == 0 and "over" in client.log.read_text(), f"{name}: {client.log.read_text()}")
            check(server.wait(30) == 0, f"{name}: {server.log.read_text()}")
            tcpdump.terminate()
            tcpdump.wait(10)
            used = verify(capture, algorithms, secrets)
            # A segment that was delayed may ask for the first key once more.
            changes = sorted((keys[0], keys[-1], len(set(keys))) for keys in used.values())
            check(changes == [(1, 2, 2), (101, 102, 2)], f"{name}: keys {used}")
        for side in (0, 1):
            stack = two.stack(side)
            counted = {what: stack.counter("tcp", f"drop_{what}") for what in ("unsigned", "bad_signature", "unknown_key")}
            check(not any(counted.values()), f"both sign all, but {counted}")


def unauthenticated_sessions():
    with Scene("authentication-refused") as scene:
        two = Two(scene)
        right, wrong, other = (HMAC, "secret"), (HMAC, "a guess"), (CMAC, "secret")
        none = ("none", "none")
        cases = [("wrong", (right, wrong), "bad_signature"), ("algorithm", (right, other), "bad_signature"),
                 ("unsigned", (right, none), "unsigned"), ("unwanted", (none, right), "unexpected_signature")]
        for name, keys, counter in cases:
            stack = two.stack(0)
            before = stack.counter("tcp", f"drop_{counter}")
            server, client = between(scene, two, name, keys)
            told = client.log.read_text()
            check(client.wait(20) != 0 and ("timed out" in told or "TimeoutError" in told), f"{name}: {told}")
            server.terminate()
            server.wait(10)
            counted = stack.counter("tcp", f"drop_{counter}") - before
            check(counted > 0, f"{name}: drop_{counter} grew by {counted}")


CASES = [authenticated_sessions, over_ipv6(authenticated_sessions), unauthenticated_sessions]
