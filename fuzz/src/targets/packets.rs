//! Valid packets, built in code, and the checksums that make a damaged one reach deeper code.

use crate::source::Source;
use eft_base::MacAddress;
use eft_base::checksum::Checksum;
use eft_base::wire::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use zerocopy::IntoBytes;

pub const US: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
pub const THEM: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub const US6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2);
pub const THEM6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1);
pub const OUR_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
pub const THEIR_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
pub const ETHERNET_LEN: usize = 14;

pub fn ethernet(ethertype: u16, body: &[u8]) -> Vec<u8> {
    let h = EthernetHeader { destination: OUR_MAC, source: THEIR_MAC, ethertype: ethertype.into() };
    [h.as_bytes(), body].concat()
}

pub fn arp(operation: u16) -> Vec<u8> {
    let p = ArpPacket {
        hardware_type: 1.into(),
        protocol_type: ETHERTYPE_IPV4.into(),
        hardware_len: 6,
        protocol_len: 4,
        operation: operation.into(),
        sender_mac: THEIR_MAC,
        sender_ip: THEM.octets(),
        target_mac: OUR_MAC,
        target_ip: US.octets(),
    };
    ethernet(ETHERTYPE_ARP, p.as_bytes())
}

/// An IPv4 packet from `source`; `fragment` is the flags and offset field.
pub fn ipv4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, fragment: u16, body: &[u8]) -> Vec<u8> {
    let h = Ipv4Header {
        version_ihl: 0x45,
        tos: 0,
        total_len: ((20 + body.len()) as u16).into(),
        id: 7.into(),
        flags_fragment: fragment.into(),
        ttl: 64,
        protocol,
        checksum: 0.into(),
        source: source.octets(),
        destination: destination.octets(),
    };
    let mut p = [h.as_bytes(), body].concat();
    fix_ip(&mut p);
    p
}

/// An IPv6 packet; `next` is what follows its header.
pub fn ipv6(source: Ipv6Addr, destination: Ipv6Addr, next: u8, body: &[u8]) -> Vec<u8> {
    let h = Ipv6Header {
        version_class_flow: (6 << 28).into(),
        payload_len: (body.len() as u16).into(),
        next_header: next,
        // Neighbour discovery is believed with no other.
        hop_limit: 255,
        source: source.octets(),
        destination: destination.octets(),
    };
    let mut p = [h.as_bytes(), body].concat();
    fix_ip(&mut p);
    p
}

pub fn icmp(kind: u8, code: u8, rest: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let h = IcmpHeader { kind, code, checksum: 0.into(), rest };
    let mut p = [h.as_bytes(), payload].concat();
    let sum = Checksum::new().add_bytes(&p).finish();
    p[2..4].copy_from_slice(&sum.to_be_bytes());
    p
}

pub fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let h = UdpHeader {
        source_port: from.into(),
        destination_port: to.into(),
        length: ((8 + payload.len()) as u16).into(),
        checksum: 0.into(),
    };
    [h.as_bytes(), payload].concat()
}

/// A TCP segment; `options` is padded to words.
pub struct Segment<'a> {
    pub from: u16,
    pub to: u16,
    pub sequence: u32,
    pub acknowledgment: u32,
    pub flags: u8,
    pub window: u16,
    pub options: &'a [u8],
    pub payload: &'a [u8],
}

pub fn tcp(s: &Segment) -> Vec<u8> {
    let mut options = s.options[..s.options.len().min(40)].to_vec();
    options.resize(options.len().next_multiple_of(4), 0);
    let h = TcpHeader {
        source_port: s.from.into(),
        destination_port: s.to.into(),
        sequence: s.sequence.into(),
        acknowledgment: s.acknowledgment.into(),
        data_offset: ((5 + options.len() / 4) << 4) as u8,
        flags: s.flags,
        window: s.window.into(),
        checksum: 0.into(),
        urgent: 0.into(),
    };
    [h.as_bytes(), &options, s.payload].concat()
}

/// MSS, SACK permitted, timestamps, window scale.
pub const SYN_OPTIONS: [u8; 20] = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];

/// Makes the IPv4 header's checksum right, or that of an ICMPv6 message right behind its header, if there is one.
pub fn fix_ip(packet: &mut [u8]) {
    if packet.first().is_some_and(|first| first >> 4 == 6) {
        return fix_icmpv6(packet);
    }
    let Some(n) = packet.first().map(|b| (b & 15) as usize * 4).filter(|n| *n >= 20 && *n <= packet.len())
    else {
        return;
    };
    packet[10..12].fill(0);
    let sum = Checksum::new().add_bytes(&packet[..n]).finish();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn fix_icmpv6(packet: &mut [u8]) {
    if packet.len() < 44 || packet[6] != PROTOCOL_ICMPV6 {
        return;
    }
    let (header, message) = packet.split_at_mut(40);
    let address = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&header[at..at + 16]).expect("16 bytes"));
    message[2..4].fill(0);
    let sum = Checksum::new()
        .add_pseudo_header(address(8).into(), address(24).into(), PROTOCOL_ICMPV6, message.len() as u32)
        .add_bytes(message)
        .finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// Frames of every kind that ip knows of IPv6.
fn frames6(payload: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut ip = |next, body: &[u8]| all.push(ethernet(ETHERTYPE_IPV6, &ipv6(THEM6, US6, next, body)));
    for (kind, flags, target, option) in [
        (ICMPV6_NEIGHBOUR_SOLICITATION, 0, US6, 1),
        (ICMPV6_NEIGHBOUR_ADVERTISEMENT, 0x60, THEM6, 2),
        (ICMPV6_NEIGHBOUR_ADVERTISEMENT, 0x20, US6, 2),
    ] {
        let body = [&target.octets()[..], &[option, 1], &THEIR_MAC.0].concat();
        ip(PROTOCOL_ICMPV6, &icmp(kind, 0, [flags, 0, 0, 0], &body));
    }
    ip(PROTOCOL_ICMPV6, &icmp(ICMPV6_ECHO_REQUEST, 0, [0, 1, 0, 1], &payload[..56]));
    for (kind, code) in [(ICMPV6_UNREACHABLE, 4), (ICMPV6_TOO_BIG, 0), (ICMPV6_PARAMETER_PROBLEM, 1)] {
        for protocol in [PROTOCOL_TCP, PROTOCOL_UDP] {
            let quoted = ipv6(US6, THEM6, protocol, &udp(80, 4000, &payload[..8]));
            ip(PROTOCOL_ICMPV6, &icmp(kind, code, [0, 0, 5, 0x14], &quoted));
        }
    }
    let datagram = udp(4000, 53, payload);
    ip(PROTOCOL_UDP, &datagram);
    let padding = |next| [next, 0, 1, 4, 0, 0, 0, 0];
    let chain = [
        &padding(IPV6_ROUTING)[..],
        &[IPV6_DESTINATION, 0, 0, 0, 0, 0, 0, 0],
        &padding(PROTOCOL_UDP),
        &datagram,
    ];
    ip(IPV6_HOP_BY_HOP, &chain.concat());
    ip(IPV6_DESTINATION, &[&[99, 0, 0x9e, 4, 0, 0, 0, 0][..], &payload[..20]].concat());
    // In three pieces, whole, and overlapping.
    for (from, to, more) in [(0, 800, 1), (800, 1200, 1), (1200, 1408, 0), (400, 1000, 1), (0, 1408, 0)] {
        let [a, b] = (from as u16 | more).to_be_bytes();
        ip(IPV6_FRAGMENT, &[&[PROTOCOL_UDP, 0, a, b, 0, 0, 0, 7], &datagram[from..to]].concat());
    }
    all
}

/// Frames of every kind that ip knows.
pub fn frames(source: &mut Source) -> Vec<Vec<u8>> {
    let mut all = vec![arp(ARP_REQUEST), arp(ARP_REPLY)];
    let mut ip = |protocol, fragment, body: &[u8]| {
        all.push(ethernet(ETHERTYPE_IPV4, &ipv4(THEM, US, protocol, fragment, body)));
    };
    let payload = source.noise(1400);
    ip(PROTOCOL_ICMP, 0, &icmp(ICMP_ECHO_REQUEST, 0, [0, 1, 0, 1], &payload[..56]));
    ip(PROTOCOL_ICMP, 0, &icmp(ICMP_ECHO_REPLY, 0, [0, 1, 0, 1], &payload[..56]));
    for (kind, code) in [(ICMP_UNREACHABLE, 3), (ICMP_UNREACHABLE, 4), (ICMP_TIME_EXCEEDED, 0)] {
        for protocol in [PROTOCOL_TCP, PROTOCOL_UDP, PROTOCOL_ICMP] {
            let quoted = ipv4(US, THEM, protocol, 0, &udp(80, 4000, &payload[..8]));
            ip(PROTOCOL_ICMP, 0, &icmp(kind, code, [0, 0, 2, 0x40], &quoted));
        }
    }
    let segment = Segment {
        from: 4000,
        to: 80,
        sequence: 1,
        acknowledgment: 2,
        flags: TCP_SYN,
        window: 1000,
        options: &SYN_OPTIONS,
        payload: &payload[..0],
    };
    ip(PROTOCOL_TCP, IPV4_DONT_FRAGMENT, &tcp(&segment));
    ip(PROTOCOL_TCP, IPV4_DONT_FRAGMENT, &tcp(&Segment { flags: TCP_ACK, payload: &payload, ..segment }));
    ip(PROTOCOL_UDP, 0, &udp(4000, 53, &payload[..300]));
    // A datagram in three pieces, whole, overlapping, and one that ends too far out.
    let datagram = udp(4000, 53, &payload);
    for (from, to, more) in
        [(0, 800, true), (800, 1200, true), (1200, 1408, false), (400, 1000, true), (0, 64, true)]
    {
        let fragment = (from / 8) as u16 | if more { IPV4_MORE_FRAGMENTS } else { 0 };
        ip(PROTOCOL_UDP, fragment, &datagram[from..to]);
    }
    ip(PROTOCOL_UDP, 0x1fff, &payload[..200]);
    ip(255, 0, &payload[..20]);
    all.push(ethernet(ETHERTYPE_IPV6, &payload[..60]));
    all.extend(frames6(&payload));
    all
}
