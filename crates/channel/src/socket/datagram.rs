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
    /// Our port when received; when sent, see [`DatagramHeader::label`].
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
    /// When sent: bits of [`marks`].
    pub quiet: u8,
    /// SO_TIMESTAMPING. When sent: which of its times are wanted, [`wanted`]. When received: not 0 if the time at which it came
    /// follows the payload: nanoseconds of the monotonic clock, in 8 bytes.
    pub stamps: u8,
}

/// Bits of [`DatagramHeader::quiet`] of a datagram that is sent.
pub mod marks {
    /// This host gets no copy of what goes to a group (IP_MULTICAST_LOOP was off).
    pub const QUIET: u8 = 1;
    /// The program chose the flow label, of which the four highest bits lie here, too.
    pub const HAS_LABEL: u8 = 2;
    pub(super) const LABEL_AT: u32 = 4;
}

/// Bits of [`DatagramHeader::stamps`] of a datagram that is sent.
pub mod wanted {
    /// When the transport gives it away.
    pub const SCHEDULED: u8 = 1;
    /// When a device has it.
    pub const SENT: u8 = 2;
}

impl DatagramHeader {
    /// The flow label that the program chose for it (20 bits; 0: it has none). `None`: ip chooses. The port that a datagram is sent
    /// from is its socket's, so its place has the low half.
    pub fn label(&self) -> Option<u32> {
        let high = u32::from(self.quiet >> marks::LABEL_AT) << 16;
        (self.quiet & marks::HAS_LABEL != 0).then_some(high | u32::from(self.local_port))
    }

    pub fn with_label(self, label: Option<u32>) -> DatagramHeader {
        let Some(label) = label else { return self };
        let high = ((label >> 16) as u8) << marks::LABEL_AT;
        DatagramHeader {
            local_port: label as u16,
            quiet: self.quiet & marks::QUIET | marks::HAS_LABEL | high,
            ..self
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_there_or_not_whatever_else_is_said() {
        for quiet in [0, marks::QUIET] {
            let header = DatagramHeader { quiet, local_port: 40_000, ..DatagramHeader::default() };
            assert_eq!(header.with_label(None), header);
            assert_eq!(header.label(), None);
            for label in [0, 1, 0x1_0000, 0x5_4321, 0xf_ffff] {
                let with = header.with_label(Some(label));
                assert_eq!((with.label(), with.quiet & marks::QUIET), (Some(label), quiet));
            }
        }
    }
}
