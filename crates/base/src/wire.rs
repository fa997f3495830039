//! Packet formats as they lie on the wire. Every struct is unaligned and big-endian; reading one is
//! a bounds check, not a parse. Validation of what the fields say is the engine's.

use crate::address::MacAddress;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub const ETHERTYPE_IPV4: u16 = 0x0800;
pub const ETHERTYPE_ARP: u16 = 0x0806;
pub const ETHERTYPE_IPV6: u16 = 0x86dd;

pub const PROTOCOL_ICMP: u8 = 1;
pub const PROTOCOL_TCP: u8 = 6;
pub const PROTOCOL_UDP: u8 = 17;

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

/// ICMP header (RFC 792), 8 bytes; the meaning of `rest` depends on the type.
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
