//! The IPv6 header and the extension headers that may follow it (RFC 8200 §3, §4): read, checked, written.

use crate::counters::Counter;
use crate::pending::{Outgoing, Report};
use core::net::Ipv6Addr;
use eft_base::PacketRef;
use eft_base::address::with_zone;
use eft_base::wire::{
    IPV6_DESTINATION, IPV6_FRAGMENT, IPV6_HOP_BY_HOP, IPV6_ROUTING, Ipv6Fragment, Ipv6Header,
};
use zerocopy::FromBytes;

pub(crate) const HEADER_LEN: usize = size_of::<Ipv6Header>();
/// A longer chain of headers is not followed (RFC 8504 §5.3 lets a host set a limit).
pub(crate) const HEADERS_MAX: usize = 128;
/// A packet's first bytes: all headers, and a transport header without options.
pub(crate) const HEAD_LEN: usize = HEADERS_MAX + 20;
const FRAGMENT_LEN: usize = size_of::<Ipv6Fragment>();
const DEFAULT_HOP_LIMIT: u8 = 64;

const OPTION_PAD1: u8 = 0;
const OPTION_PADN: u8 = 1;
const OPTION_ROUTER_ALERT: u8 = 5;

/// What a parameter problem is about (RFC 4443 §3.4).
const CODE_FIELD: u8 = 0;
const CODE_NEXT_HEADER: u8 = 1;
const CODE_OPTION: u8 = 2;

/// What comes after the IPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub protocol: u8,
    /// Where the field that names the protocol lies.
    pub named_at: usize,
    /// Bytes of all headers before the transport's; for a fragment that is not the first, before its data.
    pub len: usize,
    /// Where a fragment's header lies. An atomic fragment (RFC 6946) counts as no fragment.
    pub fragment_at: Option<usize>,
}

/// Why a packet is dropped, and the error that its sender gets, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub Counter, pub Option<Report>);

impl From<Counter> for Refused {
    fn from(why: Counter) -> Self {
        Refused(why, None)
    }
}

fn problem(why: Counter, code: u8, pointer: usize) -> Refused {
    Refused(why, Some(Report::ParameterProblem { code, pointer: pointer as u32 }))
}

/// A packet with checked headers. `packet` covers the IP packet and no padding.
pub(crate) struct Packet<'a> {
    pub header: &'a Ipv6Header,
    pub chain: Chain,
    /// The packet's first bytes, from its header on.
    pub head: &'a [u8],
    pub packet: PacketRef,
    /// In the zone of the link that it came by.
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
}

/// Whether a header of this kind is followed by another.
pub(crate) fn is_extension(next: u8) -> bool {
    matches!(next, IPV6_HOP_BY_HOP | IPV6_ROUTING | IPV6_FRAGMENT | IPV6_DESTINATION)
}

/// Checks the headers against the bytes that are there. `merged`: the device made one packet of
/// several, whose length field may be 0 because it does not fit.
pub(crate) fn parse(head: &[u8], packet: PacketRef, merged: bool, zone: u16) -> Result<Packet<'_>, Refused> {
    let (header, _) = Ipv6Header::ref_from_prefix(head).map_err(|_| Counter::DropMalformed)?;
    let total_len = match header.payload_len.get() {
        0 if merged => packet.len,
        n => n as u32 + HEADER_LEN as u32,
    };
    if header.version() != 6 || total_len > packet.len {
        return Err(Counter::DropMalformed.into());
    }
    let head = &head[..head.len().min(total_len as usize)];
    Ok(Packet {
        header,
        chain: walk(head)?,
        head,
        packet: PacketRef { len: total_len, ..packet },
        source: with_zone(header.source.into(), zone),
        destination: with_zone(header.destination.into(), zone),
    })
}

/// Follows the headers from the IPv6 header on (RFC 8200 §4.1).
pub(crate) fn walk(head: &[u8]) -> Result<Chain, Refused> {
    let (header, _) = Ipv6Header::ref_from_prefix(head).map_err(|_| Counter::DropMalformed)?;
    let mut chain = Chain {
        protocol: header.next_header,
        named_at: core::mem::offset_of!(Ipv6Header, next_header),
        len: HEADER_LEN,
        fragment_at: None,
    };
    while is_extension(chain.protocol) {
        let at = chain.len;
        let &[next, units, ..] = head.get(at..at + 8).ok_or(Counter::DropMalformed)? else {
            return Err(Counter::DropMalformed.into());
        };
        let len = match chain.protocol {
            IPV6_FRAGMENT => FRAGMENT_LEN,
            _ => (units as usize + 1) * 8,
        };
        if at + len > HEADERS_MAX {
            return Err(Counter::DropMalformed.into());
        }
        let body = head.get(at..at + len).ok_or(Counter::DropMalformed)?;
        match chain.protocol {
            // It comes first or not at all.
            IPV6_HOP_BY_HOP if at != HEADER_LEN => {
                return Err(problem(Counter::DropMalformed, CODE_NEXT_HEADER, chain.named_at));
            }
            // RFC 8200 §4.3, §4.6.
            IPV6_HOP_BY_HOP | IPV6_DESTINATION => check_options(body, at)?,
            // RFC 8200 §4.4, RFC 5095: we do not forward.
            IPV6_ROUTING if body[3] != 0 => {
                return Err(problem(Counter::DropSourceRouted, CODE_FIELD, at + 2));
            }
            IPV6_FRAGMENT => match (u16::from_be_bytes([body[2], body[3]]), chain.fragment_at) {
                (_, Some(_)) => return Err(Counter::DropFragment.into()),
                (offset_more, None) => {
                    // RFC 6946: an atomic fragment needs no other fragments.
                    chain.fragment_at = (offset_more & !0b110 != 0).then_some(at);
                    if offset_more >> 3 != 0 {
                        return Ok(Chain { protocol: next, named_at: at, len: at + len, ..chain });
                    }
                }
            },
            _ => {}
        }
        chain = Chain { protocol: next, named_at: at, len: at + len, ..chain };
    }
    Ok(chain)
}

/// Unknown options are treated as their highest two bits say (RFC 8200 §4.2).
fn check_options(header: &[u8], at: usize) -> Result<(), Refused> {
    let mut i = 2;
    while i < header.len() {
        let kind = header[i];
        let len = match (kind, header.get(i + 1)) {
            (OPTION_PAD1, _) => 1,
            (_, Some(&n)) => n as usize + 2,
            (_, None) => return Err(Counter::DropMalformed.into()),
        };
        if i + len > header.len() {
            return Err(Counter::DropMalformed.into());
        }
        match (kind, kind >> 6) {
            (OPTION_PAD1 | OPTION_PADN | OPTION_ROUTER_ALERT, _) | (_, 0b00) => {}
            (_, 0b01) => return Err(Counter::DropMalformed.into()),
            // The caller suppresses errors about multicast packets; §4.2 requires that for 0b11 alone.
            _ => return Err(problem(Counter::DropMalformed, CODE_OPTION, at + i)),
        }
        i += len;
    }
    Ok(())
}

/// The error about an unknown protocol (RFC 8200 §4): it points to the field that names it.
pub(crate) fn unknown_protocol(head: &[u8]) -> Option<Report> {
    let chain = walk(head).ok()?;
    Some(Report::ParameterProblem { code: CODE_NEXT_HEADER, pointer: chain.named_at as u32 })
}

/// The header of a packet of ours of `len` bytes, the header included, with this flow label.
pub(crate) fn build(
    o: &Outgoing,
    (source, destination): (Ipv6Addr, Ipv6Addr),
    len: usize,
    flow: u32,
) -> Ipv6Header {
    Ipv6Header {
        // The traffic class is what IP_TOS is to IPv4 (RFC 8200 §7).
        version_class_flow: (6 << 28 | (o.tos as u32) << 20 | flow).into(),
        payload_len: ((len - HEADER_LEN) as u16).into(),
        next_header: o.protocol,
        hop_limit: if o.ttl == 0 { DEFAULT_HOP_LIMIT } else { o.ttl },
        source: with_zone(source, 0).octets(),
        destination: with_zone(destination, 0).octets(),
    }
}

#[cfg(test)]
mod tests;
