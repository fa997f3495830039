//! ICMP errors as bytes (RFC 792).

use crate::pending::Report;
use alloc::vec::Vec;
use eft_base::checksum::Checksum;
use eft_base::wire::{ICMP_TIME_EXCEEDED, ICMP_UNREACHABLE, IcmpHeader};
use zerocopy::IntoBytes;

/// The header of an error that quotes `quote`.
pub(crate) fn header(report: Report, quote: &[u8]) -> IcmpHeader {
    let (kind, code) = match report {
        Report::ProtocolUnreachable => (ICMP_UNREACHABLE, 2),
        Report::PortUnreachable | Report::Blocked => (ICMP_UNREACHABLE, 3),
        Report::ReassemblyTimeout => (ICMP_TIME_EXCEEDED, 1),
    };
    let mut header = IcmpHeader { kind, code, checksum: 0.into(), rest: [0; 4] };
    header.checksum = Checksum::new().add_bytes(header.as_bytes()).add_bytes(quote).finish().into();
    header
}

/// The whole message.
pub(crate) fn message(report: Report, quote: &[u8]) -> Vec<u8> {
    let mut message = header(report, quote).as_bytes().to_vec();
    message.extend_from_slice(quote);
    message
}
