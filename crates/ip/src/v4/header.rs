//! The IPv4 header (RFC 791 §3.1): read, checked, written.

use crate::counters::Counter;
use crate::pending::Outgoing;
use core::net::Ipv4Addr;
use eft_base::PacketRef;
use eft_base::checksum::Checksum;
use eft_base::wire::{IPV4_DONT_FRAGMENT, Ipv4Header, PROTOCOL_IGMP};
use zerocopy::{FromBytes, IntoBytes};

/// Without options; ours have none, but for those of IGMP.
pub(crate) const HEADER_LEN: usize = size_of::<Ipv4Header>();
const DEFAULT_TTL: u8 = 64;
/// The router alert option (RFC 2113). IGMP messages bring it along, before them (RFC 9776 §4).
pub(crate) const ROUTER_ALERT: [u8; 4] = [148, 4, 0, 0];

const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_LOOSE_ROUTE: u8 = 131;
const OPTION_STRICT_ROUTE: u8 = 137;

/// A packet with a checked header. `packet` covers the IP packet and no padding.
pub(crate) struct Packet<'a> {
    pub header: &'a Ipv4Header,
    pub header_len: usize,
    /// The packet's first bytes, from its header on.
    pub head: &'a [u8],
    pub packet: PacketRef,
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
}

/// Checks a header against the bytes that are there. `merged`: the device made one packet of
/// several, whose length field may be 0 because it does not fit.
pub(crate) fn parse(head: &[u8], packet: PacketRef, merged: bool) -> Result<Packet<'_>, Counter> {
    let (header, _) = Ipv4Header::ref_from_prefix(head).map_err(|_| Counter::DropMalformed)?;
    let header_len = header.header_len();
    let total_len = match header.total_len.get() {
        0 if merged => packet.len,
        n => n as u32,
    };
    if header.version_ihl >> 4 != 4
        || header_len < HEADER_LEN
        || header_len > head.len()
        || total_len < header_len as u32
        || total_len > packet.len
    {
        return Err(Counter::DropMalformed);
    }
    if Checksum::new().add_bytes(&head[..header_len]).finish() != 0 {
        return Err(Counter::DropHeaderChecksum);
    }
    check_options(&head[HEADER_LEN..header_len])?;
    Ok(Packet {
        header,
        header_len,
        head: &head[..head.len().min(total_len as usize)],
        packet: PacketRef { len: total_len, ..packet },
        source: header.source.into(),
        destination: header.destination.into(),
    })
}

/// Options are ignored except source routes, which only attackers use (RFC 7126 §4.3).
fn check_options(mut options: &[u8]) -> Result<(), Counter> {
    while let Some(&kind) = options.first() {
        let len = match kind {
            OPTION_END => return Ok(()),
            OPTION_NOP => 1,
            OPTION_LOOSE_ROUTE | OPTION_STRICT_ROUTE => return Err(Counter::DropSourceRouted),
            _ => match options.get(1) {
                Some(&n) if n >= 2 => n as usize,
                _ => return Err(Counter::DropMalformed),
            },
        };
        options = options.get(len..).ok_or(Counter::DropMalformed)?;
    }
    Ok(())
}

/// The header of a packet of ours of `len` bytes, the header included.
pub(crate) fn build(
    o: &Outgoing,
    (source, destination): (Ipv4Addr, Ipv4Addr),
    len: usize,
    identification: u16,
) -> Ipv4Header {
    let options: &[u8] = if o.protocol == PROTOCOL_IGMP { &ROUTER_ALERT } else { &[] };
    let mut h = Ipv4Header {
        version_ihl: 0x45 + options.len() as u8 / 4,
        tos: o.tos,
        total_len: (len as u16).into(),
        id: identification.into(),
        flags_fragment: if o.dont_fragment { IPV4_DONT_FRAGMENT } else { 0 }.into(),
        ttl: if o.ttl == 0 { DEFAULT_TTL } else { o.ttl },
        protocol: o.protocol,
        checksum: 0.into(),
        source: source.octets(),
        destination: destination.octets(),
    };
    h.checksum = Checksum::new().add_bytes(h.as_bytes()).add_bytes(options).finish().into();
    h
}
