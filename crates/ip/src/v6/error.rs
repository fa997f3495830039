//! ICMPv6 errors as bytes (RFC 4443 §3), and what they may be about.

use super::address::is_unicast;
use super::header::{unknown_protocol, walk};
use crate::pending::{QuotedHeader, Report};
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use eft_base::address::with_zone;
use eft_base::checksum::Checksum;
use eft_base::wire::{
    ICMPV6_INFORMATIONAL, ICMPV6_PARAMETER_PROBLEM, ICMPV6_TIME_EXCEEDED, ICMPV6_UNREACHABLE, IcmpHeader,
    Ipv6Header, PROTOCOL_ICMPV6,
};
use zerocopy::{FromBytes, IntoBytes};

/// As much of the packet as fits an error of 1280 bytes (RFC 4443 §2.4 (c)).
pub(crate) const QUOTE_MAX: usize = 1280 - size_of::<Ipv6Header>() - size_of::<IcmpHeader>();

/// The header of an error that quotes `quote`, which `source` sends to `destination`.
pub(crate) fn header(report: Report, quote: &[u8], source: Ipv6Addr, destination: Ipv6Addr) -> IcmpHeader {
    let (kind, code, rest) = match report {
        Report::ProtocolUnreachable => match unknown_protocol(quote) {
            Some(problem) => return header(problem, quote, source, destination),
            None => (ICMPV6_PARAMETER_PROBLEM, 1, 0),
        },
        Report::ParameterProblem { code, pointer } => (ICMPV6_PARAMETER_PROBLEM, code, pointer),
        // RFC 4443 §3.1.
        Report::PortUnreachable => (ICMPV6_UNREACHABLE, 4, 0),
        // "Administratively prohibited" is a router's answer; pf answers "port unreachable", too.
        Report::Blocked => (ICMPV6_UNREACHABLE, 4, 0),
        // RFC 4443 §3.3.
        Report::ReassemblyTimeout => (ICMPV6_TIME_EXCEEDED, 1, 0),
    };
    let mut header = IcmpHeader { kind, code, checksum: 0.into(), rest: rest.to_be_bytes() };
    let len = (header.as_bytes().len() + quote.len()) as u32;
    let sum = Checksum::new().add_pseudo_header(source.into(), destination.into(), PROTOCOL_ICMPV6, len);
    header.checksum = sum.add_bytes(header.as_bytes()).add_bytes(quote).finish().into();
    header
}

/// The whole message, from a host to itself.
pub(crate) fn message(report: Report, quote: &[u8], ends: Ipv6Addr) -> Vec<u8> {
    let mut message = header(report, quote, ends, ends).as_bytes().to_vec();
    message.extend_from_slice(quote);
    message
}

/// Source and destination of a packet, whose destination is the error's source (RFC 4443 §2.2), if an error about it may be sent (RFC 4443 §2.4 (e)): it is not an error itself,
/// nor a fragment other than the first, and both addresses are unicast.
pub(crate) fn reportable(packet: &[u8], zone: u16) -> Option<(Ipv6Addr, Ipv6Addr)> {
    let (ip, _) = Ipv6Header::ref_from_prefix(packet).ok()?;
    let ends = (with_zone(ip.source.into(), zone), with_zone(ip.destination.into(), zone));
    if !is_unicast(ends.0) || !is_unicast(ends.1) {
        return None;
    }
    // A malformed header chain cannot hide an ICMP error: chains of our errors end well before it.
    if let Ok(chain) = walk(packet) {
        let later = chain.fragment_at.is_some_and(|at| packet[at + 2] != 0 || packet[at + 3] & !7 != 0);
        let is_error = chain.protocol == PROTOCOL_ICMPV6
            && packet.get(chain.len).is_none_or(|kind| *kind < ICMPV6_INFORMATIONAL);
        if later || is_error {
            return None;
        }
    }
    Some(ends)
}

/// The headers of a packet that an error quotes, if it is a whole packet or a first fragment.
pub(crate) fn quoted_header(quote: &[u8], zone: u16) -> Option<QuotedHeader> {
    let (ip, _) = Ipv6Header::ref_from_prefix(quote).ok()?;
    let chain = walk(quote).ok()?;
    let later = chain.fragment_at.is_some_and(|at| quote[at + 2] != 0 || quote[at + 3] & !7 != 0);
    (ip.version() == 6 && !later).then_some(QuotedHeader {
        len: chain.len,
        source: with_zone(ip.source.into(), zone).into(),
        destination: with_zone(ip.destination.into(), zone).into(),
        protocol: chain.protocol,
    })
}
