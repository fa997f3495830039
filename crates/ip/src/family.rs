//! Chooses between the two versions of IP. Code in this crate takes addresses of either version, except in the folders
//! `v4` and `v6`.

use crate::pending::{ETHERNET_LEN, Outgoing, Report};
use crate::{v4, v6};
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::MacAddress;
use eft_base::address::{with_zone, zone_of_nic};
use eft_base::wire::{
    ECN_EXPERIENCED, ECN_FIELD, ETHERTYPE_IPV4, ETHERTYPE_IPV6, IcmpHeader, PROTOCOL_ICMP, PROTOCOL_ICMPV6,
};
use zerocopy::IntoBytes;

/// The longest headers before a transport's.
pub(crate) const HEADERS_MAX: usize = v6::header::HEADERS_MAX;

/// Whether a packet may have these two addresses.
pub(crate) fn is_pair(source: IpAddr, destination: IpAddr) -> bool {
    source.is_ipv4() == destination.is_ipv4()
}

/// Bytes of the IP header of a packet of ours.
pub(crate) fn header_len(source: IpAddr) -> usize {
    match source {
        IpAddr::V4(_) => v4::header::HEADER_LEN,
        IpAddr::V6(_) => v6::header::HEADER_LEN,
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

/// Writes the header of a packet of `len` bytes, with an identification if its version has one, or a flow label. `to` is
/// [`header_len`] long.
pub(crate) fn write_header(o: &Outgoing, len: usize, (identification, flow): (u16, u32), to: &mut [u8]) {
    match (o.source, o.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header = v4::header::build(o, (source, destination), len, identification);
            to.copy_from_slice(header.as_bytes());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let header = v6::header::build(o, (source, destination), len, flow);
            to.copy_from_slice(header.as_bytes());
        }
        _ => {}
    }
}

/// The mark of congestion of a header (RFC 3168 §5).
pub(crate) fn mark(header: &[u8]) -> u8 {
    let version_and_class = [header[0], header[1]];
    let class = match header[0] >> 4 {
        4 => header[1],
        _ => (u16::from_be_bytes(version_and_class) >> 4) as u8,
    };
    class & ECN_FIELD
}

/// Marks a header as a congested router does.
pub(crate) fn set_congested(header: &mut [u8]) {
    header[1] |= if header[0] >> 4 == 4 { ECN_EXPERIENCED } else { ECN_EXPERIENCED << 4 };
}

/// Makes the header of a first fragment that of the whole packet, `len` bytes long.
pub(crate) fn make_whole(source: IpAddr, header: &mut [u8], len: usize) -> Option<()> {
    match source {
        IpAddr::V4(_) => v4::reassemble::make_whole(header, len),
        IpAddr::V6(_) => v6::reassemble::make_whole(header, len),
    }
}

/// The protocol of a whole packet that begins with `head`, and where its header begins. An IPv4 packet of `protocol` has
/// `header_len` bytes before it; in an IPv6 packet headers may still follow.
pub(crate) fn transport(source: IpAddr, head: &[u8], protocol: u8, header_len: usize) -> Option<(u8, usize)> {
    match source {
        IpAddr::V4(_) => Some((protocol, header_len)),
        IpAddr::V6(_) => v6::reassemble::transport(head),
    }
}

pub(crate) fn icmp_protocol(source: IpAddr) -> u8 {
    match source {
        IpAddr::V4(_) => PROTOCOL_ICMP,
        IpAddr::V6(_) => PROTOCOL_ICMPV6,
    }
}

/// As much of a packet as an error about it quotes.
pub(crate) fn quote_max(packet: &[u8]) -> usize {
    match packet.first().map(|first| first >> 4) {
        Some(6) => v6::error::QUOTE_MAX,
        _ => v4::error::QUOTE_MAX,
    }
}

/// Source and destination of a packet, if an error about it may be sent. `zone`: the zone that it came from.
pub(crate) fn reportable(packet: &[u8], zone: u16) -> Option<(IpAddr, IpAddr)> {
    match packet.first()? >> 4 {
        6 => v6::error::reportable(packet, zone).map(|(s, d)| (s.into(), d.into())),
        _ => v4::error::reportable(packet).map(|(s, d)| (s.into(), d.into())),
    }
}

/// The header of an error that quotes `quote`.
pub(crate) fn error_header(report: Report, quote: &[u8], source: IpAddr, destination: IpAddr) -> IcmpHeader {
    match (source, destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            v6::error::header(report, quote, source, destination)
        }
        _ => v4::error::header(report, quote),
    }
}

/// An error about a packet, to its sender on this host: protocol and message.
pub(crate) fn error_message(sender: IpAddr, report: Report, quote: &[u8]) -> (u8, Vec<u8>) {
    match sender {
        IpAddr::V4(_) => (PROTOCOL_ICMP, v4::error::message(report, quote)),
        IpAddr::V6(sender) => (PROTOCOL_ICMPV6, v6::error::message(report, quote, sender)),
    }
}

/// Whether it may be one host's address.
pub(crate) fn is_unicast(a: IpAddr) -> bool {
    match a {
        IpAddr::V4(a) => v4::address::is_unicast(a),
        IpAddr::V6(a) => v6::address::is_unicast(a),
    }
}

/// The link's group for an address that is multicast or broadcast in every network.
pub(crate) fn link_group(a: IpAddr) -> Option<MacAddress> {
    match a {
        IpAddr::V4(a) => v4::address::link_group(a),
        IpAddr::V6(a) => v6::address::link_group(a),
    }
}

/// A link-local address as it is within the stack.
pub(crate) fn in_zone(address: IpAddr, interface: u8) -> IpAddr {
    match address {
        IpAddr::V4(a) => IpAddr::V4(a),
        IpAddr::V6(a) => IpAddr::V6(with_zone(a, zone_of_nic(interface))),
    }
}
