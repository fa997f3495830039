//! Where address families part. All of this crate is about addresses of any family, but for what lies in a family's own
//! folder; these functions choose which. IPv6 is not spoken yet: what [`is_spoken`] refuses gets no further than the
//! checks, and a `v6` beside [`crate::v4`] would answer here.

use crate::pending::{ETHERNET_LEN, Outgoing, Report};
use crate::v4;
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::MacAddress;
use eft_base::wire::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, PROTOCOL_ICMP};
use zerocopy::IntoBytes;

/// RFC 8200 §3.
const IPV6_HEADER_LEN: usize = 40;

pub(crate) fn is_spoken(a: IpAddr) -> bool {
    a.is_ipv4()
}

/// Whether a packet may have these two addresses.
pub(crate) fn is_spoken_by(source: IpAddr, destination: IpAddr) -> bool {
    is_spoken(source) && source.is_ipv4() == destination.is_ipv4()
}

/// Bytes of the IP header of a packet of ours.
pub(crate) fn header_len(source: IpAddr) -> usize {
    match source {
        IpAddr::V4(_) => v4::header::HEADER_LEN,
        IpAddr::V6(_) => IPV6_HEADER_LEN,
    }
}

/// Where the transport header begins in a frame of ours.
pub(crate) fn transport_at(source: IpAddr) -> usize {
    ETHERNET_LEN + header_len(source)
}

pub(crate) fn ethertype(source: IpAddr) -> u16 {
    match source {
        IpAddr::V4(_) => ETHERTYPE_IPV4,
        IpAddr::V6(_) => ETHERTYPE_IPV6,
    }
}

/// Bytes of the IP packet.
pub(crate) fn len(o: &Outgoing) -> usize {
    header_len(o.source) + o.body_len()
}

/// Writes the header of a packet of `len` bytes. `to` is [`header_len`] long.
pub(crate) fn write_header(o: &Outgoing, len: usize, identification: u16, to: &mut [u8]) {
    if let (IpAddr::V4(source), IpAddr::V4(destination)) = (o.source, o.destination) {
        let header = v4::header::build(o, (source, destination), len, identification);
        to.copy_from_slice(header.as_bytes());
    }
}

/// Makes the header of a first fragment that of the whole packet, `len` bytes long.
pub(crate) fn make_whole(source: IpAddr, header: &mut [u8], len: usize) -> Option<()> {
    match source {
        IpAddr::V4(_) => v4::reassemble::make_whole(header, len),
        IpAddr::V6(_) => None,
    }
}

/// An error about a packet, to its sender: protocol and message.
pub(crate) fn error_message(sender: IpAddr, report: Report, quote: &[u8]) -> Option<(u8, Vec<u8>)> {
    match sender {
        IpAddr::V4(_) => Some((PROTOCOL_ICMP, v4::error::message(report, quote))),
        IpAddr::V6(_) => None,
    }
}

/// Whether it may be one host's address.
pub(crate) fn is_unicast(a: IpAddr) -> bool {
    match a {
        IpAddr::V4(a) => v4::address::is_unicast(a),
        IpAddr::V6(_) => false,
    }
}

/// The link's group for an address that means many whatever the networks are.
pub(crate) fn link_group(a: IpAddr) -> Option<MacAddress> {
    match a {
        IpAddr::V4(a) => v4::address::link_group(a),
        IpAddr::V6(_) => None,
    }
}
