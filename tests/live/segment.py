"""TCP segments, ICMP errors and neighbours' questions as bytes, of both IP versions."""

import dataclasses
import ipaddress
import struct

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << i for i in range(8))
TCP, ICMP, ICMPV6 = 6, 1, 58
ARP, IPV4, IPV6 = 0x0806, 0x0800, 0x86DD
KINDS = {1: "nop", 2: "mss", 3: "wscale", 4: "sackOK", 5: "sack", 8: "TS", 34: "FO"}
# AccECN's option (RFC 9768 §3.2.3) by the names of its fields, in order.
ECN_ORDERS = {172: ["e0b", "ceb", "e1b"], 174: ["e1b", "ceb", "e0b"]}


def checksum(data):
    data = data + b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def in_ip(source, destination, protocol, payload, tos=0):
    a, b = (ipaddress.ip_address(x).packed for x in (source, destination))
    if len(a) == 4:
        header = struct.pack("!BBHHHBBH", 0x45, tos, 20 + len(payload), 0, 0x4000, 64, protocol, 0) + a + b
        return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload
    return struct.pack("!IHBB", 6 << 28 | tos << 20, len(payload), protocol, 64 if protocol == TCP else 255) + a + b + payload


def pseudo_header(source, destination, protocol, length):
    a, b = (ipaddress.ip_address(x).packed for x in (source, destination))
    return a + b + (struct.pack("!HH", protocol, length) if len(a) == 4 else struct.pack("!II", length, protocol))


@dataclasses.dataclass
class Segment:
    source: str
    destination: str
    source_port: int
    destination_port: int
    seq: int
    ack: int
    flags: int
    window: int
    urgent: int
    options: list
    payload: bytes
    ecn: int = 0

    @classmethod
    def parsed(cls, frame):
        """The segment of an Ethernet frame; None if it has none."""
        kind, = struct.unpack_from("!H", frame, 12)
        ip = frame[14:]
        if kind == IPV4 and ip[9] == TCP:
            at, end, tos = (ip[0] & 15) * 4, struct.unpack_from("!H", ip, 2)[0], ip[1]
            ends = ip[12:16], ip[16:20]
        elif kind == IPV6 and ip[6] == TCP:
            at, end, tos = 40, 40 + struct.unpack_from("!H", ip, 4)[0], struct.unpack_from("!H", ip)[0] >> 4 & 255
            ends = ip[8:24], ip[24:40]
        else:
            return None
        tcp = ip[at:end]
        sport, dport, seq, ack, offset, flags, window, _, urgent = struct.unpack_from("!HHIIBBHHH", tcp)
        length = (offset >> 4) * 4
        # What accurate ECN calls AE is the last bit of the byte before.
        flags |= (offset & 1) << 8
        source, destination = (str(ipaddress.ip_address(e)) for e in ends)
        return cls(source, destination, sport, dport, seq, ack, flags, window, urgent, parsed_options(tcp[20:length]), tcp[length:], tos & 3)

    def cut(self, size):
        """The segments of the wire that a device makes of one with payloads of `size` bytes; 0: it is one."""
        if not size or len(self.payload) <= size:
            return [self]
        starts = range(0, len(self.payload), size)
        flags = lambda at: self.flags & ~(CWR if at else 0) & ~(0 if at == starts[-1] else FIN | PSH)
        return [dataclasses.replace(self, seq=(self.seq + at) & 0xFFFFFFFF, payload=self.payload[at:at + size], flags=flags(at))
                for at in starts]

    def packet(self):
        options = b"".join(written(*option) for option in self.options)
        options += b"\x01" * (-len(options) % 4)
        offset = (20 + len(options)) // 4 << 4 | self.flags >> 8
        tcp = struct.pack("!HHIIBBHHH", self.source_port, self.destination_port, self.seq & 0xFFFFFFFF, self.ack & 0xFFFFFFFF,
                          offset, self.flags & 255, self.window, 0, self.urgent) + options + self.payload
        total = checksum(pseudo_header(self.source, self.destination, TCP, len(tcp)) + tcp)
        return in_ip(self.source, self.destination, TCP, tcp[:16] + struct.pack("!H", total) + tcp[18:], self.ecn)


def written(kind, value):
    if kind == "ECN":
        number = 174 if list(value)[:1] == ["e1b"] else 172
        data = b"".join(count.to_bytes(3, "big") for count in value.values())
        return bytes([number, 2 + len(data)]) + data
    number = {name: n for n, name in KINDS.items()}[kind]
    data = {
        "nop": lambda: b"", "sackOK": lambda: b"", "mss": lambda: struct.pack("!H", value), "wscale": lambda: bytes([value]),
        "TS": lambda: struct.pack("!II", *value), "FO": lambda: bytes.fromhex(value), "sack": lambda: b"".join(struct.pack("!II", *(e & 0xFFFFFFFF for e in b)) for b in value),
    }[kind]()
    return bytes([number]) if kind == "nop" else bytes([number, 2 + len(data)]) + data


def parsed_options(data):
    found = []
    while data and data[0] != 0:
        if data[0] == 1:
            data = data[1:]
            continue
        kind, body = KINDS.get(data[0], f"kind{data[0]}"), data[2:data[1]]
        words = struct.unpack(f"!{len(body) // 4}I", body[:len(body) // 4 * 4])
        value = {"mss": lambda: struct.unpack("!H", body)[0], "wscale": lambda: body[0], "TS": lambda: words, "FO": body.hex,
                 "sack": lambda: list(zip(words[::2], words[1::2]))}.get(kind, lambda: None)()
        if data[0] in ECN_ORDERS:
            kind, value = "ECN", {name: int.from_bytes(body[at:at + 3], "big")
                                  for name, at in zip(ECN_ORDERS[data[0]], range(0, len(body), 3))}
        found.append((kind, value))
        data = data[data[1]:]
    return found


def icmp_too_big(segment, mtu, seq):
    """The error of a router about a segment: it quotes its begin."""
    quoted = struct.pack("!HHI", segment.source_port, segment.destination_port, seq & 0xFFFFFFFF)
    router, host = segment.destination, segment.source
    if ":" not in host:
        message = struct.pack("!BBHHH", 3, 4, 0, 0, mtu) + in_ip(host, segment.destination, TCP, quoted)
        message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
        return in_ip(router, host, ICMP, message)
    message = struct.pack("!BBHI", 2, 0, 0, mtu) + in_ip(host, segment.destination, TCP, quoted)
    total = checksum(pseudo_header(router, host, ICMPV6, len(message)) + message)
    return in_ip(router, host, ICMPV6, message[:2] + struct.pack("!H", total) + message[4:])


def neighbour_answer(frame, address, mac):
    """The answer to a frame that asks who has `address`, by ARP or neighbour discovery; None if it does not."""
    kind, = struct.unpack_from("!H", frame, 12)
    wanted = ipaddress.ip_address(address).packed
    if kind == ARP and len(wanted) == 4 and frame[20:22] == b"\0\1" and frame[38:42] == wanted:
        return frame[6:12] + mac + frame[12:20] + b"\0\2" + mac + wanted + frame[22:32]
    if kind == IPV6 and frame[20] == ICMPV6 and frame[54] == 135 and frame[62:78] == wanted:
        asker = str(ipaddress.ip_address(frame[22:38]))
        message = struct.pack("!BBHI", 136, 0, 0, 0x60000000) + wanted + b"\x02\x01" + mac
        total = checksum(pseudo_header(address, asker, ICMPV6, len(message)) + message)
        return frame[6:12] + mac + b"\x86\xdd" + in_ip(address, asker, ICMPV6, message[:2] + struct.pack("!H", total) + message[4:])
    return None


def neighbour_question(asker, mac, address):
    """A frame that asks who has `address`."""
    own, wanted = (ipaddress.ip_address(x).packed for x in (asker, address))
    if len(own) == 4:
        return b"\xff" * 6 + mac + b"\x08\x06" + struct.pack("!HHBBH", 1, IPV4, 6, 4, 1) + mac + own + bytes(6) + wanted
    group = str(ipaddress.ip_address(bytes.fromhex("ff0200000000000000000001ff") + wanted[13:]))
    message = struct.pack("!BBHI", 135, 0, 0, 0) + wanted + b"\x01\x01" + mac
    total = checksum(pseudo_header(asker, group, ICMPV6, len(message)) + message)
    return b"\x33\x33\xff" + wanted[13:] + mac + b"\x86\xdd" + in_ip(asker, group, ICMPV6, message[:2] + struct.pack("!H", total) + message[4:])


def told_neighbour(frame, address):
    """The link address of `address`, if the frame is the answer to such a question."""
    kind, = struct.unpack_from("!H", frame, 12)
    wanted = ipaddress.ip_address(address).packed
    is_arp = kind == ARP and len(wanted) == 4 and frame[20:22] == b"\0\2" and frame[28:32] == wanted
    is_discovery = kind == IPV6 and frame[20] == ICMPV6 and frame[54] == 136 and frame[62:78] == wanted
    return frame[6:12] if is_arp or is_discovery else None
