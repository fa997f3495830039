//! What lies before each datagram in a ring.

use core::net::IpAddr;
use eft_base::WireAddress;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Before each datagram in a ring. 48 bytes; the payload is padded to a multiple of 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DatagramHeader {
    /// Bytes of payload.
    pub len: u32,
    /// The other side's port.
    pub port: u16,
    /// Our port.
    pub local_port: u16,
    /// The other side's address: source when received, destination when sent.
    pub address: WireAddress,
    /// Our address: destination when received; when sent, unspecified lets ip choose.
    pub local: WireAddress,
    pub ttl: u8,
    pub tos: u8,
    /// Not 0: the payload is several datagrams one after the other, each of as many bytes, the last of the rest. To be sent
    /// as such (UDP_SEGMENT), or received one after the other (UDP_GRO).
    pub segment: u16,
    /// When received: the index of the interface that it came by, as programs know it; 0: none did. When sent: the low half of
    /// the number that its times are told with ([`super::Stamp`]).
    pub interface: u16,
    /// When sent: not 0 if this host gets no copy of what goes to a group (IP_MULTICAST_LOOP was off).
    pub quiet: u8,
    /// SO_TIMESTAMPING. When sent: which of its times are wanted, [`wanted`]. When received: not 0 if the time at which it came
    /// follows the payload: nanoseconds of the monotonic clock, in 8 bytes.
    pub stamps: u8,
}

/// Bits of [`DatagramHeader::stamps`] of a datagram that is sent.
pub mod wanted {
    /// When the transport gives it away.
    pub const SCHEDULED: u8 = 1;
    /// When a device has it.
    pub const SENT: u8 = 2;
}

impl DatagramHeader {
    /// Bytes that a datagram occupies in a receive ring.
    pub fn received_len(&self) -> usize {
        datagram_record_len(self.len as usize) + if self.stamps != 0 { 8 } else { 0 }
    }
}

/// Datagrams of one record at most, as Linux takes from one call.
pub const SEGMENTS_MAX: usize = 128;

/// Largest payload over IPv6, whose length field does not count its header (RFC 8200 §3).
pub const PAYLOAD_MAX: usize = 65535 - UDP_HEADER_LEN;
const UDP_HEADER_LEN: usize = 8;
const IPV4_HEADER_LEN: usize = 20;

/// Largest payload of a datagram to this address.
pub fn payload_max(to: IpAddr) -> usize {
    if to.is_ipv4() { PAYLOAD_MAX - IPV4_HEADER_LEN } else { PAYLOAD_MAX }
}

/// Bytes that a datagram of `len` occupies in a ring.
pub const fn datagram_record_len(len: usize) -> usize {
    size_of::<DatagramHeader>() + len.next_multiple_of(8)
}
