//! ICMP errors as bytes (RFC 792), and what they may be about.

use super::address::is_unicast;
use super::header::HEADER_LEN;
use crate::pending::{QuotedHeader, Report};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use eft_base::checksum::Checksum;
use eft_base::wire::{
    ICMP_PARAMETER_PROBLEM, ICMP_TIME_EXCEEDED, ICMP_UNREACHABLE, IPV4_OFFSET_MASK, IcmpHeader, Ipv4Header,
    PROTOCOL_ICMP,
};
use zerocopy::{FromBytes, IntoBytes};

/// As much of the packet as fits an error of 576 bytes (RFC 1812 §4.3.2.3).
pub(crate) const QUOTE_MAX: usize = 576 - HEADER_LEN - size_of::<IcmpHeader>();
/// Queries, about which errors may be sent: echo, timestamp, information, address mask.
const QUERIES: [u8; 10] = [0, 8, 9, 10, 13, 14, 15, 16, 17, 18];

/// The header of an error that quotes `quote`.
pub(crate) fn header(report: Report, quote: &[u8]) -> IcmpHeader {
    let (kind, code, pointer) = match report {
        Report::ProtocolUnreachable => (ICMP_UNREACHABLE, 2, 0),
        Report::PortUnreachable | Report::Blocked => (ICMP_UNREACHABLE, 3, 0),
        Report::ReassemblyTimeout => (ICMP_TIME_EXCEEDED, 1, 0),
        Report::ParameterProblem { code, pointer } => (ICMP_PARAMETER_PROBLEM, code, pointer as u8),
    };
    let mut header = IcmpHeader { kind, code, checksum: 0.into(), rest: [pointer, 0, 0, 0] };
    header.checksum = Checksum::new().add_bytes(header.as_bytes()).add_bytes(quote).finish().into();
    header
}

/// The whole message.
pub(crate) fn message(report: Report, quote: &[u8]) -> Vec<u8> {
    let mut message = header(report, quote).as_bytes().to_vec();
    message.extend_from_slice(quote);
    message
}

/// Source and destination of a packet, if an error about it may be sent: it is neither an error itself nor a fragment
/// other than the first.
pub(crate) fn reportable(packet: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let (ip, _) = Ipv4Header::ref_from_prefix(packet).ok()?;
    let source = Ipv4Addr::from(ip.source);
    let is_error = ip.protocol == PROTOCOL_ICMP
        && packet.get(ip.header_len()).is_none_or(|kind| !QUERIES.contains(kind));
    let later = ip.flags_fragment.get() & IPV4_OFFSET_MASK != 0;
    (!is_error && !later && is_unicast(source)).then_some((source, ip.destination.into()))
}

/// The header of a packet that an error quotes, if it is a whole packet or a first fragment.
pub(crate) fn quoted_header(quote: &[u8]) -> Option<QuotedHeader> {
    let (ip, _) = Ipv4Header::ref_from_prefix(quote).ok()?;
    let len = ip.header_len();
    let first = ip.flags_fragment.get() & IPV4_OFFSET_MASK == 0;
    (ip.version_ihl >> 4 == 4 && len >= HEADER_LEN && first).then_some(QuotedHeader {
        len,
        source: Ipv4Addr::from(ip.source).into(),
        destination: Ipv4Addr::from(ip.destination).into(),
        protocol: ip.protocol,
    })
}
