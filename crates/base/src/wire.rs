//! Packet formats as they lie on the wire. Every struct is unaligned and big-endian; reading one is
//! a bounds check, not a parse. The engines validate what the fields say.

use crate::address::MacAddress;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub const ETHERTYPE_IPV4: u16 = 0x0800;
pub const ETHERTYPE_ARP: u16 = 0x0806;
pub const ETHERTYPE_IPV6: u16 = 0x86dd;

pub const PROTOCOL_ICMP: u8 = 1;
pub const PROTOCOL_IGMP: u8 = 2;
pub const PROTOCOL_TCP: u8 = 6;
pub const PROTOCOL_UDP: u8 = 17;
pub const PROTOCOL_ICMPV6: u8 = 58;

/// Ethernet II header, 14 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct EthernetHeader {
    pub destination: MacAddress,
    pub source: MacAddress,
    pub ethertype: U16,
}

/// ARP for IPv4 over Ethernet (RFC 826), 28 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ArpPacket {
    pub hardware_type: U16,
    pub protocol_type: U16,
    pub hardware_len: u8,
    pub protocol_len: u8,
    pub operation: U16,
    pub sender_mac: MacAddress,
    pub sender_ip: [u8; 4],
    pub target_mac: MacAddress,
    pub target_ip: [u8; 4],
}

pub const ARP_REQUEST: u16 = 1;
pub const ARP_REPLY: u16 = 2;

/// IPv4 header without options (RFC 791 §3.1), 20 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Ipv4Header {
    /// Version (4) in the high nibble, header length in 32-bit words in the low one.
    pub version_ihl: u8,
    pub tos: u8,
    pub total_len: U16,
    pub id: U16,
    /// Flags (bit 14 don't fragment, bit 13 more fragments) and offset in units of 8 bytes.
    pub flags_fragment: U16,
    pub ttl: u8,
    pub protocol: u8,
    pub checksum: U16,
    pub source: [u8; 4],
    pub destination: [u8; 4],
}

pub const IPV4_DONT_FRAGMENT: u16 = 0x4000;
pub const IPV4_MORE_FRAGMENTS: u16 = 0x2000;
pub const IPV4_OFFSET_MASK: u16 = 0x1fff;

impl Ipv4Header {
    pub fn header_len(&self) -> usize {
        (self.version_ihl & 0x0f) as usize * 4
    }
}

/// IPv6 header (RFC 8200 §3), 40 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Ipv6Header {
    /// Version (6) in the highest four bits, traffic class in the next eight, flow label in the rest.
    pub version_class_flow: U32,
    /// Bytes that follow this header, extension headers included.
    pub payload_len: U16,
    pub next_header: u8,
    pub hop_limit: u8,
    pub source: [u8; 16],
    pub destination: [u8; 16],
}

impl Ipv6Header {
    pub fn version(&self) -> u8 {
        (self.version_class_flow.get() >> 28) as u8
    }

    pub fn traffic_class(&self) -> u8 {
        (self.version_class_flow.get() >> 20) as u8
    }
}

/// Fragment header (RFC 8200 §4.5), 8 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Ipv6Fragment {
    pub next_header: u8,
    pub reserved: u8,
    /// Offset in units of 8 bytes in the high 13 bits, more fragments in the lowest.
    pub offset_more: U16,
    pub id: U32,
}

pub const IPV6_HOP_BY_HOP: u8 = 0;
pub const IPV6_ROUTING: u8 = 43;
pub const IPV6_FRAGMENT: u8 = 44;
pub const IPV6_NO_NEXT: u8 = 59;
pub const IPV6_DESTINATION: u8 = 60;

pub const ICMPV6_UNREACHABLE: u8 = 1;
pub const ICMPV6_TOO_BIG: u8 = 2;
pub const ICMPV6_TIME_EXCEEDED: u8 = 3;
pub const ICMPV6_PARAMETER_PROBLEM: u8 = 4;
/// Types below are errors (RFC 4443 §2.1).
pub const ICMPV6_INFORMATIONAL: u8 = 128;
pub const ICMPV6_ECHO_REQUEST: u8 = 128;
pub const ICMPV6_ECHO_REPLY: u8 = 129;
pub const ICMPV6_ROUTER_SOLICITATION: u8 = 133;
pub const ICMPV6_ROUTER_ADVERTISEMENT: u8 = 134;
pub const ICMPV6_NEIGHBOUR_SOLICITATION: u8 = 135;
pub const ICMPV6_NEIGHBOUR_ADVERTISEMENT: u8 = 136;

/// ICMP header (RFC 792, RFC 4443 §2.1), 8 bytes; the meaning of `rest` depends on the type.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IcmpHeader {
    pub kind: u8,
    pub code: u8,
    pub checksum: U16,
    pub rest: [u8; 4],
}

pub const ICMP_ECHO_REPLY: u8 = 0;
pub const ICMP_UNREACHABLE: u8 = 3;
pub const ICMP_ECHO_REQUEST: u8 = 8;
pub const ICMP_TIME_EXCEEDED: u8 = 11;
pub const ICMP_PARAMETER_PROBLEM: u8 = 12;

/// TCP header without options (RFC 9293 §3.1), 20 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct TcpHeader {
    pub source_port: U16,
    pub destination_port: U16,
    pub sequence: U32,
    pub acknowledgment: U32,
    /// Header length in 32-bit words in the high nibble.
    pub data_offset: u8,
    pub flags: u8,
    pub window: U16,
    pub checksum: U16,
    pub urgent: U16,
}

pub const TCP_FIN: u8 = 0x01;
pub const TCP_SYN: u8 = 0x02;
pub const TCP_RST: u8 = 0x04;
pub const TCP_PSH: u8 = 0x08;
pub const TCP_ACK: u8 = 0x10;
pub const TCP_URG: u8 = 0x20;
/// The bits of TOS or traffic class for explicit congestion notification (RFC 3168 §5). Their values: ECT(0), the sender
/// understands marks; CE, a router has marked the packet.
pub const ECN_FIELD: u8 = 3;
pub const ECN_INCAPABLE: u8 = 0;
pub const ECN_CAPABLE: u8 = 2;
pub const ECN_EXPERIENCED: u8 = 3;

/// Congestion was experienced; the window was reduced (RFC 3168 §6.1).
pub const TCP_ECE: u8 = 0x40;
pub const TCP_CWR: u8 = 0x80;

impl TcpHeader {
    pub fn header_len(&self) -> usize {
        (self.data_offset >> 4) as usize * 4
    }
}

/// UDP header (RFC 768), 8 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct UdpHeader {
    pub source_port: U16,
    pub destination_port: U16,
    pub length: U16,
    pub checksum: U16,
}
