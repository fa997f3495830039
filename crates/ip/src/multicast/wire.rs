//! Messages of IGMP and MLD. Version 3 of the one and 2 of the other differ in the length of addresses and in numbers only
//! (RFC 9776 §4, RFC 9777 §5).

use super::querier::Version;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use eft_base::checksum::Checksum;
use eft_base::wire::PROTOCOL_ICMPV6;

pub(super) const QUERY4: u8 = 0x11;
pub(super) const REPORT4_V1: u8 = 0x12;
pub(super) const REPORT4_V2: u8 = 0x16;
const LEAVE4: u8 = 0x17;
const REPORT4_V3: u8 = 0x22;

pub(super) const QUERY6: u8 = 130;
pub(super) const REPORT6_V1: u8 = 131;
const DONE6: u8 = 132;
const REPORT6_V2: u8 = 143;

/// Before the records of a report, in both.
const REPORT_HEAD: usize = 8;

/// What a record says (RFC 9776 §4.2.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    IsInclude = 1,
    IsExclude,
    ToInclude,
    ToExclude,
    Allow,
    Block,
}

/// A group record of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub kind: Kind,
    pub group: IpAddr,
    pub sources: Vec<IpAddr>,
}

/// A query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Query {
    pub version: Version,
    /// `None`: about all groups.
    pub group: Option<IpAddr>,
    pub sources: Vec<IpAddr>,
    /// How long an answer may wait.
    pub delay: Duration,
    /// 0: it does not say.
    pub robustness: u8,
    pub interval: Duration,
}

/// What routers say that hosts listen to, and hosts to each other.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    Query(Query),
    /// Of an older version, about one group.
    Report(IpAddr),
    /// For routers.
    Other,
}

/// Reads a message, whose checksum is right.
pub(super) fn parse(ipv6: bool, message: &[u8]) -> Option<Message> {
    let kind = *message.first()?;
    match (ipv6, kind) {
        (false, QUERY4) => query4(message).map(Message::Query),
        (true, QUERY6) => query6(message).map(Message::Query),
        (false, REPORT4_V1 | REPORT4_V2) => Some(Message::Report(address(message.get(4..8)?)?)),
        (true, REPORT6_V1) => Some(Message::Report(address(message.get(8..24)?)?)),
        _ => Some(Message::Other),
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
        _ => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()),
    }
}

/// RFC 9776 §7.1: the version shows in the length and in the second byte.
fn query4(message: &[u8]) -> Option<Query> {
    let code = u64::from(*message.get(1)?);
    let about = address(message.get(4..8)?)?;
    let tenths = |n: u64| Duration::from_millis(n * 100);
    let (version, delay) = match (message.len(), code) {
        (8, 0) => (Version::First, tenths(100)),
        (8, code) => (Version::Second, tenths(code)),
        (12.., code) => (Version::Third, tenths(float(code, 3, 4))),
        _ => return None,
    };
    finish(version, about, delay, message.get(8..), 4)
}

/// RFC 9777 §8.1.
fn query6(message: &[u8]) -> Option<Query> {
    let code = u64::from(u16::from_be_bytes([*message.get(4)?, *message.get(5)?]));
    let about = address(message.get(8..24)?)?;
    let (version, delay) = match message.len() {
        24 => (Version::Second, Duration::from_millis(code)),
        28.. => (Version::Third, Duration::from_millis(float(code, 3, 12))),
        _ => return None,
    };
    finish(version, about, delay, message.get(24..), 16)
}

/// `rest` follows the group's address.
fn finish(
    version: Version,
    about: IpAddr,
    delay: Duration,
    rest: Option<&[u8]>,
    address_len: usize,
) -> Option<Query> {
    let group = (!about.is_unspecified()).then_some(about);
    if group.is_some_and(|g| !g.is_multicast()) {
        return None;
    }
    let mut query =
        Query { version, group, sources: Vec::new(), delay, robustness: 0, interval: Duration::ZERO };
    if version == Version::Third {
        let (&[flags, interval, high, low], sources) = rest?.split_first_chunk()?;
        query.robustness = flags & 7;
        query.interval = Duration::from_secs(float(interval.into(), 3, 4));
        let len = usize::from(u16::from_be_bytes([high, low])) * address_len;
        query.sources = sources.get(..len)?.chunks_exact(address_len).filter_map(address).collect();
        // RFC 9776 §4.1.9: sources are of one group.
        if group.is_none() && !query.sources.is_empty() {
            return None;
        }
    }
    Some(query)
}

/// A number in the floating-point form of the maximum response code and the querier's interval (RFC 9776 §4.1.1, RFC 9777
/// §5.1.3): its highest bit says so; then an exponent and a mantissa of these many bits.
fn float(code: u64, exponent_bits: u32, mantissa_bits: u32) -> u64 {
    let highest = 1 << (exponent_bits + mantissa_bits);
    if code < highest {
        return code;
    }
    let mantissa = code & ((1 << mantissa_bits) - 1) | 1 << mantissa_bits;
    let exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1);
    mantissa << (exponent + 3)
}

/// The records as messages of at most `len_max` bytes each (RFC 9776 §4.2.16).
pub(super) fn reports(ipv6: bool, records: &[Record], len_max: usize) -> Vec<Vec<u8>> {
    let address_len = if ipv6 { 16 } else { 4 };
    let head = 4 + address_len;
    let sources_max = (len_max.saturating_sub(REPORT_HEAD + head) / address_len).max(1);
    let mut all: Vec<(Vec<u8>, u16)> = Vec::new();
    for record in records {
        // A list that is too long is cut if it says what is excluded, and else goes on in another message.
        let whole = matches!(record.kind, Kind::IsExclude | Kind::ToExclude) || record.sources.is_empty();
        let chunks: Vec<&[IpAddr]> = match whole {
            true => alloc::vec![&record.sources[..record.sources.len().min(sources_max)]],
            false => record.sources.chunks(sources_max).collect(),
        };
        for sources in chunks {
            let len = head + sources.len() * address_len;
            if all.last().is_none_or(|(bytes, _)| bytes.len() + len > len_max) {
                let kind = if ipv6 { REPORT6_V2 } else { REPORT4_V3 };
                all.push((alloc::vec![kind, 0, 0, 0, 0, 0, 0, 0], 0));
            }
            if let Some((bytes, count)) = all.last_mut() {
                *count += 1;
                bytes.extend_from_slice(&[record.kind as u8, 0]);
                bytes.extend_from_slice(&(sources.len() as u16).to_be_bytes());
                put(bytes, record.group);
                sources.iter().for_each(|s| put(bytes, *s));
            }
        }
    }
    let finished = all.into_iter().map(|(mut bytes, count)| {
        bytes[6..8].copy_from_slice(&count.to_be_bytes());
        bytes
    });
    finished.collect()
}

/// A report of an older version, or, if `leaves`, what says that there is no member any more.
pub(super) fn older(version: Version, group: IpAddr, leaves: bool) -> Vec<u8> {
    let kind = match (group, leaves, version) {
        (IpAddr::V4(_), true, _) => LEAVE4,
        (IpAddr::V4(_), false, Version::First) => REPORT4_V1,
        (IpAddr::V4(_), false, _) => REPORT4_V2,
        (IpAddr::V6(_), true, _) => DONE6,
        (IpAddr::V6(_), false, _) => REPORT6_V1,
    };
    let mut bytes = alloc::vec![kind, 0, 0, 0];
    if group.is_ipv6() {
        bytes.extend_from_slice(&[0; 4]);
    }
    put(&mut bytes, group);
    bytes
}

fn put(bytes: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(a) => bytes.extend_from_slice(&a.octets()),
        IpAddr::V6(a) => bytes.extend_from_slice(&a.octets()),
    }
}

/// Writes the checksum; ICMPv6's includes a pseudo-header.
pub(super) fn sum(message: &mut [u8], source: IpAddr, destination: IpAddr) {
    let mut sum = Checksum::new();
    if source.is_ipv6() {
        sum = sum.add_pseudo_header(source, destination, PROTOCOL_ICMPV6, message.len() as u32);
    }
    let sum = sum.add_bytes(message).finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// Whether a message's checksum is right.
pub(super) fn is_sound(message: &[u8], source: IpAddr, destination: IpAddr) -> bool {
    let mut sum = Checksum::new();
    if source.is_ipv6() {
        sum = sum.add_pseudo_header(source, destination, PROTOCOL_ICMPV6, message.len() as u32);
    }
    sum.add_bytes(message).finish() == 0
}

#[cfg(test)]
mod tests;
