"""Runs scripts in (a part of) packetdrill's language: the system calls of a program, and what its stack sends and is sent.

The calls are made by a program on the side that is tested; the other end of the wire is a packet socket, and what it says comes
from an address that nobody else has. A script says in which order things come. Times before packets that are sent to the stack,
and before calls, are waited for; those before packets that the stack sends are not compared: machines are slow at times."""

import ctypes
import errno
import json
import os
import queue
import re
import select
import socket
import struct
import subprocess
import sys
import threading
import time

from segment import ACK, PSH, SYN, Segment, icmp_too_big, neighbour_answer, neighbour_question, told_neighbour

PATIENCE = 20
PORT = 8080
PEER_MAC = bytes.fromhex("02e0d7111101")
CLONE_NEWNET = 0x40000000
SOL_PACKET, PACKET_VNET_HDR, ETH_P_ALL = 263, 15, 3
FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, ".": 16, "U": 32, "E": 64, "W": 128, "A": 256}

# The program on the side that is tested. It makes one call per line that it reads; 
PROGRAM = r"""
import json, os, select, socket, sys
sockets, six = {}, sys.argv[2] == "6"
def added(s):
    fd = next(n for n in range(3, 100) if n not in sockets)
    sockets[fd] = s
    return fd
def address(to):
    return (sys.argv[1], int(sys.argv[3])) if to == "own" else tuple(to)
def call(name, a):
    if name == "socket":
        return added(socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_STREAM))
    s = sockets[a[0]]
    if name == "bind": s.bind(address(a[1]))
    elif name == "listen": s.listen(a[1])
    elif name == "accept": return added(s.accept()[0])
    elif name == "connect": s.connect(address(a[1]))
    elif name == "setsockopt": s.setsockopt(a[1], a[2], bytes.fromhex(a[3]))
    elif name == "getsockopt": return list(s.getsockopt(a[1], a[2], a[3]))
    elif name == "sendto": return s.sendto(bytes(a[1]), a[2], tuple(a[3]))
    elif name == "send": return s.send(bytes(a[1]), a[2])
    elif name == "recv":
        return len(s.recv(a[1], a[2]))
    elif name == "shutdown": s.shutdown(a[1])
    elif name == "close": sockets.pop(a[0]).close()
    elif name == "fcntl": s.setblocking(not a[2] & os.O_NONBLOCK)
    elif name == "poll":
        p = select.poll()
        p.register(s, a[1])
        return (p.poll(a[2]) or [(0, 0)])[0][1]
    return 0
for line in sys.stdin:
    try:
        result = {"result": call(*json.loads(line))}
    except OSError as e:
        result = {"result": -1, "errno": e.errno}
    print(json.dumps(result), flush=True)
os._exit(0)
"""


class Mismatch(Exception):
    pass


def numbers_of_info(data):
    """The fields of TCP_INFO that scripts may name."""
    words = struct.unpack("8B24I", data[:104])
    names = "rto ato snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent last_ack_sent last_data_recv last_ack_recv " \
        "pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss reordering rcv_rtt rcv_space total_retrans".split()
    fields = dict(zip(names, words[8:])) | {"state": words[0], "ca_state": words[1], "retransmits": words[2], "probes": words[3],
                                            "backoff": words[4], "options": words[5]}
    for name, kind, at in (("pacing_rate", "Q", 104), ("max_pacing_rate", "Q", 112), ("bytes_acked", "Q", 120), ("bytes_received", "Q", 128), ("notsent_bytes", "I", 144),
                           ("delivered", "I", 192), ("delivered_ce", "I", 196), ("bytes_retrans", "Q", 208),
                           ("dsack_dups", "I", 216), ("reord_seen", "I", 220), ("rcv_ooopack", "I", 224), ("received_ce", "I", 248),
                           ("delivered_e1_bytes", "I", 252), ("delivered_e0_bytes", "I", 256), ("delivered_ce_bytes", "I", 260),
                           ("received_e1_bytes", "I", 264), ("received_e0_bytes", "I", 268), ("received_ce_bytes", "I", 272),
                           ("accecn_fail_mode", "H", 276), ("accecn_opt_seen", "H", 278)):
        fields[name] = struct.unpack_from(kind, data, at)[0]
    return {f"tcpi_{name}": value for name, value in fields.items()}


def counts_of(words):
    """The fields of AccECN's option: `e1b 1 ceb 0 e0b 1`."""
    return dict(zip(words[::2], map(int, words[1::2])))


def value_of(text):
    """A number or a constant of the language: `SOL_SOCKET`, `O_RDWR|O_NONBLOCK`."""
    total = 0
    for word in text.split("|"):
        word = word.strip()
        extra = {"SO_MAX_PACING_RATE": 47, "TCP_INFO": 11, "TCP_ULP": 31, "TCP_INQ": 36}
        module = next((m for m in (socket, os, select, errno) if hasattr(m, word)), None)
        total |= int(word, 0) if re.fullmatch(r"-?(0x)?[0-9a-fA-F]+", word) else getattr(module, word) if module else extra[word]
    return total


class Wire:
    """The far end of the link: what arrives for the peer, cut as the wire has it, and what the peer sends."""

    def __init__(self, namespace, device, own, peer):
        # Only what comes for this port is of the script that runs.
        self.port = 41000
        made = []
        thread = threading.Thread(target=lambda: made.append(self.opened(namespace, device)))
        thread.start()
        thread.join()
        self.socket, self.device = made[0], device
        self.own, self.peer, self.own_mac = own, peer, None
        self.arrived = queue.Queue()
        self.is_open = True
        threading.Thread(target=self.listen, daemon=True).start()
        limit = time.monotonic() + PATIENCE
        while not self.own_mac:
            if time.monotonic() > limit:
                raise Mismatch(f"nobody has {own}")
            self.send_frame(neighbour_question(peer, PEER_MAC, own))
            time.sleep(0.1)

    @staticmethod
    def opened(namespace, device):
        """A packet socket of another network namespace. The thread that opens it stays there, and ends."""
        with open(f"/run/netns/{namespace}") as f:
            if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), CLONE_NEWNET) < 0:
                raise OSError(ctypes.get_errno(), "setns")
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        s.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        s.bind((device, ETH_P_ALL))
        # Promiscuous: the peer's MAC is none of the device's.
        s.setsockopt(SOL_PACKET, 1, struct.pack("iHH8s", socket.if_nametoindex(device), 1, 0, b""))
        return s

    def listen(self):
        while self.is_open:
            if not select.select([self.socket], [], [], 0.2)[0]:
                continue
            data, source = self.socket.recvfrom(1 << 17)
            if source[2] == socket.PACKET_OUTGOING:
                continue
            size, frame = struct.unpack_from("=H", data, 4)[0], data[10:]
            self.own_mac = told_neighbour(frame, self.own) or self.own_mac
            answer = neighbour_answer(frame, self.peer, PEER_MAC)
            if answer:
                self.send_frame(answer)
                continue
            segment = Segment.parsed(frame)
            if segment and (segment.source, segment.destination, segment.destination_port) == (self.own, self.peer, self.port):
                for piece in segment.cut(size):
                    self.arrived.put(piece)

    def send_frame(self, frame):
        self.socket.send(bytes(10) + frame)

    def send(self, packet):
        kind = b"\x86\xdd" if ":" in self.own else b"\x08\x00"
        self.send_frame(self.own_mac + PEER_MAC + kind + packet)

    def close(self):
        self.is_open = False
        time.sleep(0.3)
        self.socket.close()


class Script:
    """One run of a script."""

    def __init__(self, text, start, wire):
        self.lines = [(i + 1, line) for i, line in enumerate(re.sub(r"//.*", "", text).splitlines()) if line.strip()]
        self.wire = wire
        self.program = start(["python3", "-c", PROGRAM, wire.own, "6" if ":" in wire.own else "4", str(PORT)])
        self.results = queue.Queue()
        threading.Thread(target=self.read_results, daemon=True).start()
        # Sequence numbers of both sides, timestamps by those of the script, the last segment of the stack.
        self.isn, self.peer_isn, self.port = None, 0x1000_0000, PORT
        self.clocks, self.sent, self.last_fd, self.cookie = {}, None, 3, None
        # A SYN after an accepted connection has been closed opens another one.
        self.accepted, self.is_over = None, False

    def read_results(self):
        for line in self.program.stdout:
            self.results.put(json.loads(line))

    def run(self):
        self.now = time.monotonic()
        for number, line in self.lines:
            try:
                self.step(line.strip())
            except (Mismatch, KeyError, ValueError, struct.error) as e:
                raise Mismatch(f"line {number}: {line.strip()}: {e!r}") from e

    def step(self, line):
        when, what = line.split(None, 1) if not line.startswith("%{") else ("+0", line)
        self.now += float(when) if when.startswith("+") else 0
        if not what.startswith(">"):
            time.sleep(max(0, self.now - time.monotonic()))
        if what.startswith("<"):
            self.nothing_more(what)
            self.send(what[1:].strip())
        elif what.startswith(">"):
            self.expect(what[1:].strip())
        elif what.startswith("%{"):
            self.check_info(what)
        elif what.startswith("`flood "):
            self.flood(int(re.fullmatch(r"`flood (\d+)`", what)[1]))
        else:
            self.call(what)
        self.now = max(self.now, time.monotonic())

    def nothing_more(self, before):
        if not self.wire.arrived.empty():
            raise Mismatch(f"before that came {self.shown(self.wire.arrived.get())}")

    def shown(self, segment):
        flags = "".join(name for name, bit in FLAGS.items() if segment.flags & bit)
        seq = (segment.seq - (self.isn if self.isn is not None else segment.seq)) & 0xFFFFFFFF
        ack = (segment.ack - self.peer_isn) & 0xFFFFFFFF
        return f"{flags} {seq}({len(segment.payload)}) ack {ack} win {segment.window} {segment.options}"

    def call(self, text):
        name, arguments, result = re.fullmatch(r"(\w+)\((.*)\)\s*=\s*(.*)", text).groups()
        self.expected = result
        polled = re.match(r"\[\{fd=(\d+), events=(.*?), revents=(.*?)\}\], 1, (\d+)", arguments)
        if polled:
            arguments, self.expected = ", ".join(polled.group(1, 2, 4)), polled[3]
        a = [word.strip() for word in re.split(r",(?![^\[{]*[\]}])", arguments)]
        fd = value_of(a[0]) if name != "socket" else 0
        made = {
            "bind": lambda: [fd, "own"], "listen": lambda: [fd, value_of(a[1])], "accept": lambda: [fd], "close": lambda: [fd],
            "connect": lambda: [fd, [self.wire.peer, self.wire.port]], "socket": lambda: [], "shutdown": lambda: [fd, value_of(a[1])],
            "setsockopt": lambda: [fd, value_of(a[1]), value_of(a[2]), self.option(a[3]).hex()],
            "getsockopt": lambda: [fd, value_of(a[1]), value_of(a[2]), 4],
            "write": lambda: [fd, value_of(a[2]), 0], "read": lambda: [fd, value_of(a[2]), 0],
            "send": lambda: [fd, value_of(a[2]), value_of(a[3])], "recv": lambda: [fd, value_of(a[2]), value_of(a[3])],
            "sendto": lambda: [fd, value_of(a[2]), value_of(a[3]), [self.wire.peer, self.wire.port]],
            "fcntl": lambda: [fd, 0, value_of(a[2])], "poll": lambda: [fd, value_of(a[1]), value_of(a[2])],
        }[name]()
        self.word = int.from_bytes(self.option(a[3]), sys.byteorder) if name == "getsockopt" else None
        self.last_fd = fd or self.last_fd
        self.is_over |= name == "close" and fd == self.accepted
        self.make({"write": "send", "read": "recv"}.get(name, name), made)
        made = self.result()
        if name == "accept" and made > 0:
            self.last_fd = self.accepted = made

    @staticmethod
    def option(text):
        if text.startswith("{"):
            return struct.pack("ii", *(int(n) for n in re.findall(r"=\s*(\d+)", text)))
        if text.startswith('"'):
            return text.strip('"').encode()
        return struct.pack("i", value_of(text.strip("[]")))

    def make(self, name, arguments):
        self.program.stdin.write(json.dumps([name, arguments]) + "\n")
        self.program.stdin.flush()

    def result(self):
        """The result of the call, compared with the script's."""
        try:
            got = self.results.get(timeout=PATIENCE)
        except queue.Empty:
            raise Mismatch("a call does not return") from None
        if self.expected is None:
            return got["result"]
        want = self.expected.split()
        why = os.strerror(got["errno"]) if "errno" in got else ""
        value = got["result"]
        if self.word is not None and value != -1:
            if int.from_bytes(bytes(value), sys.byteorder) != self.word:
                raise Mismatch(f"the option is {int.from_bytes(bytes(value), sys.byteorder)}")
            value = 0
        if value != value_of(want[0]) or (len(want) > 1 and got.get("errno") != getattr(errno, want[1])):
            raise Mismatch(f"returned {value} {why}")
        return value

    def check_info(self, text):
        self.expected = None
        self.make("getsockopt", [self.last_fd, socket.IPPROTO_TCP, 11, 280])
        fields = numbers_of_info(bytes(self.result()))
        for statement in re.findall(r"assert\s+(.*?)\s*(?:;|}%)", text):
            names = {name: value for name, value in fields.items() if name in statement}
            if not eval(statement, {}, fields):  # The project's own scripts, in Python as packetdrill has it.
                raise Mismatch(f"{names}")

    def flood(self, count):
        """So many SYNs of others, which never answer. (packetdrill itself takes it for a command that there is not.)"""
        for port in range(50000, 50000 + count):
            self.wire.send(Segment(
                source=self.wire.peer, destination=self.wire.own, source_port=port, destination_port=self.port, seq=0, ack=0,
                flags=SYN, window=65535, urgent=0, options=[("mss", 1000)], payload=b"").packet())

    def parse(self, text):
        """Flags, sequence number, length, acknowledgment, window, urgent pointer, options."""
        m = re.fullmatch(r"([FSRP.UEWA]+)\s+(\d+):(\d+)\((\d+)\)(?:\s+ack\s+(\d+))?(?:\s+win\s+(\d+))?(?:\s+urg\s+(\d+))?(?:\s+<(.*)>)?", text)
        if not m:
            raise ValueError(f"no packet: {text}")
        flags = 0
        for letter in m[1]:
            flags |= FLAGS[letter]
        return flags, int(m[2]), int(m[4]), m[5], m[6], m[7], m[8]

    def send(self, text):
        marked = re.match(r"\[(\w+)\]\s+(.*)", text)
        ecn, text = ({"ect0": 2, "ect1": 1, "ce": 3, "noecn": 0}[marked[1]], marked[2]) if marked else (0, text)
        too_big = re.match(r"icmp (?:unreachable frag_needed|packet_too_big) mtu (\d+) \[(\d+):", text)
        if too_big:
            return self.wire.send(icmp_too_big(self.sent, int(too_big[1]), self.isn + int(too_big[2])))
        flags, seq, length, ack, window, urgent, options = self.parse(text)
        if flags == SYN and self.is_over:
            self.wire.port, self.is_over, self.isn = self.wire.port + 200, False, None
        self.wire.send(Segment(
            source=self.wire.peer, destination=self.wire.own, source_port=self.wire.port, destination_port=self.port,
            seq=self.peer_isn + seq, ack=(self.isn or 0) + int(ack) if ack else 0, flags=flags | (ACK if ack else 0),
            window=int(window or 0), urgent=int(urgent or 0), options=self.options_out(options), payload=bytes(length), ecn=ecn,
        ).packet())

    def options_out(self, text):
        """Options of the peer: of its own timestamps, and of the stack's as the script calls them."""
        made = []
        for word in (text or "").split(","):
            kind, *rest = word.split() or [""]
            if kind == "sack":
                made.append(("sack", [tuple(self.isn + int(n) for n in pair.split(":")) for pair in rest]))
            elif kind == "TS":
                made.append(("TS", (int(rest[1]), self.clocks.get(rest[3], 0))))
            elif kind == "ECN":
                made.append((kind, counts_of(rest)))
            elif kind == "FO":
                made.append(("FO", self.cookie if rest == ["TFO_COOKIE"] else "".join(rest)))
            elif kind:
                made.append((kind, int(rest[0]) if rest else None))
        return made

    def expect(self, text):
        marked = re.match(r"\[(\w+)\]\s+(.*)", text)
        ecn, text = ({"ect0": 2, "ect1": 1, "ce": 3, "noecn": 0}[marked[1]], marked[2]) if marked else (None, text)
        flags, seq, length, ack, window, urgent, options = self.parse(text)
        try:
            got = self.wire.arrived.get(timeout=PATIENCE)
        except queue.Empty:
            raise Mismatch("nothing comes") from None
        self.sent = got
        if flags & SYN:
            self.isn = got.seq
            self.port = got.source_port
        want = flags | (ACK if ack else 0)
        # Where a stack pushes is its own matter, unless the script asks for it.
        unasked = 0 if want & PSH else PSH
        same = (got.flags & ~unasked == want and (got.seq - (self.isn or got.seq)) & 0xFFFFFFFF == seq and len(got.payload) == length
                and (ack is None or (got.ack - self.peer_isn) & 0xFFFFFFFF == int(ack))
                and (window is None or got.window == int(window)) and (urgent is None or got.urgent == int(urgent))
                and (ecn is None or got.ecn == ecn))
        if not same or (options not in (None, "...") and not self.options_fit(got.options, options)):
            raise Mismatch(f"instead {self.shown(got)} ecn {got.ecn}")

    def options_fit(self, got, text):
        want, have = [word.split() for word in text.split(",") if word and word != "nop"], [o for o in got if o[0] != "nop"]
        if want and want[-1] == ["..."]:
            want.pop()
            have = [option for option in have if option[0] in [w[0] for w in want]]
        if sorted(w[0] for w in want) != sorted(o[0] for o in have):
            return False
        by_kind = dict(have)
        for kind, *rest in want:
            value = by_kind[kind]
            if kind == "sack":
                blocks = [tuple((edge - self.peer_isn) & 0xFFFFFFFF for edge in pair) for pair in value]
                if blocks != [tuple(map(int, pair.split(":"))) for pair in rest]:
                    return False
            elif kind == "TS":
                self.clocks[rest[1]] = value[0]
                if value[1] != int(rest[3]):
                    return False
            elif kind == "ECN":
                if value != counts_of(rest):
                    return False
            elif kind == "FO":
                self.cookie = value if rest == ["TFO_COOKIE"] else self.cookie
                if value != (self.cookie if rest == ["TFO_COOKIE"] else "".join(rest)) or rest and not value:
                    return False
            elif rest and value != int(rest[0]):
                return False
        return True
