//! What a signature of a segment covers, of whichever kind it is (RFC 2385 §2.0, RFC 5925 §5.1).

use core::net::IpAddr;
use eft_base::WireAddress;
use eft_base::address::without_zone;
use eft_base::wire::{PROTOCOL_TCP, TcpHeader};

/// All but the options.
pub(super) struct Covered<'a> {
    /// Source and destination.
    pub addresses: (WireAddress, WireAddress),
    /// Without options and with a checksum of 0.
    pub header: &'a [u8; size_of::<TcpHeader>()],
    /// Of header, options and data.
    pub len: u32,
    pub data: &'a [u8],
}

impl Covered<'_> {
    /// Feeds the pseudo-header, as that of the checksum: of IPv4 (RFC 9293 §3.1), or of IPv6 (RFC 8200 §8.1).
    pub fn pseudo_header(&self, mut feed: impl FnMut(&[u8])) {
        let (source, destination) = self.addresses;
        match (without_zone(source.into()), without_zone(destination.into())) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                feed(&source.octets());
                feed(&destination.octets());
                feed(&[0, PROTOCOL_TCP]);
                feed(&(self.len as u16).to_be_bytes());
            }
            (source, destination) => {
                for address in [source, destination] {
                    feed(&WireAddress::from(address).0);
                }
                feed(&self.len.to_be_bytes());
                feed(&[0, 0, 0, PROTOCOL_TCP]);
            }
        }
    }
}
