//! Messages of neighbour discovery (RFC 4861 §4): read, checked, written. What they mean is in [`super::neighbours`].
//!
//! As with ARP, the filter is not asked about them: it judges traffic between hosts, not address resolution on a link.
//! They are accepted only from the link itself, which the hop limit proves: no router passes 255 on.

use super::header::Packet;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::pending::{Hop, Next, Origin, Outgoing, Reach};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use eft_base::MacAddress;
use eft_base::address::{with_zone, zone_of_nic};
use eft_base::checksum::Checksum;
use eft_base::wire::{
    ICMPV6_NEIGHBOUR_ADVERTISEMENT, ICMPV6_NEIGHBOUR_SOLICITATION, ICMPV6_ROUTER_ADVERTISEMENT,
    ICMPV6_ROUTER_SOLICITATION, IcmpHeader, PROTOCOL_ICMPV6,
};
use eft_component::Context;
use zerocopy::{FromBytes, IntoBytes};

const REDIRECT: u8 = 137;
/// The hop limit of a packet that no router has forwarded (RFC 4861 §6.1.1).
const HOP_LIMIT: u8 = 255;
/// Longer messages are ignored; the longest honest one fits a link's least MTU.
const MESSAGE_MAX: usize = 1280;

const OPTION_SOURCE: u8 = 1;
pub(super) const OPTION_TARGET: u8 = 2;

/// Flags of an advertisement (RFC 4861 §4.4).
pub(super) const SOLICITED: u8 = 0x40;
pub(super) const OVERRIDE: u8 = 0x20;

/// A solicitation or advertisement of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeighbourMessage {
    /// In the zone of the link.
    pub target: Ipv6Addr,
    pub flags: u8,
    /// The link address that it contains.
    pub mac: Option<MacAddress>,
}

pub(super) fn is_discovery(kind: u8) -> bool {
    (ICMPV6_ROUTER_SOLICITATION..=REDIRECT).contains(&kind)
}

/// Reads a message from its ICMPv6 header on, whose checksum is right (RFC 4861 §7.1).
pub(super) fn parse(message: &[u8], zone: u16) -> Option<NeighbourMessage> {
    let (header, rest) = IcmpHeader::ref_from_prefix(message).ok()?;
    let wanted = match header.kind {
        ICMPV6_NEIGHBOUR_SOLICITATION => OPTION_SOURCE,
        ICMPV6_NEIGHBOUR_ADVERTISEMENT => OPTION_TARGET,
        _ => return None,
    };
    let (target, options) = rest.split_at_checked(16)?;
    let target = Ipv6Addr::from(<[u8; 16]>::try_from(target).ok()?);
    let target_ok = !target.is_multicast() && eft_base::address::zone(target) == 0;
    (header.code == 0 && target_ok).then_some(())?;
    Some(NeighbourMessage {
        target: with_zone(target, zone),
        flags: header.rest[0],
        mac: link_address(options, wanted)?,
    })
}

/// The link address in the option of this kind, if it is there. `None`: the options are malformed.
pub(super) fn link_address(mut options: &[u8], wanted: u8) -> Option<Option<MacAddress>> {
    let mut found = None;
    while let [kind, units, ..] = *options {
        let (option, rest) = options.split_at_checked(units as usize * 8).filter(|(o, _)| !o.is_empty())?;
        if kind == wanted && option.len() == 8 {
            found = Some(MacAddress(option[2..8].try_into().ok()?));
        }
        options = rest;
    }
    options.is_empty().then_some(found)
}

/// A message about `target`, from its ICMPv6 header on, with its checksum.
pub(super) fn message(kind: u8, m: NeighbourMessage, (source, destination): (Ipv6Addr, Ipv6Addr)) -> Vec<u8> {
    let header = IcmpHeader { kind, code: 0, checksum: 0.into(), rest: [m.flags, 0, 0, 0] };
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(&with_zone(m.target, 0).octets());
    if let Some(mac) = m.mac {
        let option = if kind == ICMPV6_NEIGHBOUR_SOLICITATION { OPTION_SOURCE } else { OPTION_TARGET };
        bytes.extend_from_slice(&[option, 1]);
        bytes.extend_from_slice(&mac.0);
    }
    with_checksum(bytes, (source, destination))
}

/// A message about nothing but its sender, whose link address is `mac`.
pub(super) fn bare_message(kind: u8, mac: Option<MacAddress>, ends: (Ipv6Addr, Ipv6Addr)) -> Vec<u8> {
    let header = IcmpHeader { kind, code: 0, checksum: 0.into(), rest: [0; 4] };
    let mut bytes = header.as_bytes().to_vec();
    if let Some(mac) = mac {
        bytes.extend_from_slice(&[OPTION_SOURCE, 1]);
        bytes.extend_from_slice(&mac.0);
    }
    with_checksum(bytes, ends)
}

fn with_checksum(mut bytes: Vec<u8>, (source, destination): (Ipv6Addr, Ipv6Addr)) -> Vec<u8> {
    let sum = Checksum::new()
        .add_pseudo_header(source.into(), destination.into(), PROTOCOL_ICMPV6, bytes.len() as u32)
        .add_bytes(&bytes)
        .finish();
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

impl Ip {
    /// Sends a message to a neighbour whose link address is known, or to a group.
    pub(super) fn send_discovery(
        &mut self,
        cx: &mut Context,
        interface: u8,
        to: MacAddress,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        message: &[u8],
        out: &mut Out,
    ) {
        let outgoing = Outgoing {
            source: source.into(),
            destination: destination.into(),
            protocol: PROTOCOL_ICMPV6,
            ttl: HOP_LIMIT,
            tos: 0,
            dont_fragment: false,
            header: message,
            payload: &[],
            segment_size: 0,
            checksum_offset: None,
            seal: 0,
            ordered: true,
            reach: Reach::Link,
            label: None,
        };
        let hop = Hop::to(interface, Next::Group(to));
        match self.launch(cx, Origin::Nobody, hop, outgoing, None, out) {
            Ok(()) => cx.count(Counter::DiscoveryOut),
            Err((why, _)) => cx.count(why),
        }
    }

    /// The caller keeps the packet's buffer.
    pub(super) fn receive_discovery(
        &mut self,
        cx: &mut Context,
        nic: u8,
        p: &Packet,
        from: MacAddress,
        out: &mut Out,
    ) {
        cx.count(Counter::DiscoveryIn);
        let mut bytes = [0; MESSAGE_MAX];
        let all = p.packet.skip(p.chain.len as u32);
        let message = match self.read_head(cx.memory, all, &mut bytes) {
            Some(message) if message.len() == all.len as usize => message,
            _ => return cx.count(Counter::DropDiscovery),
        };
        let ends: (IpAddr, IpAddr) = (p.source.into(), p.destination.into());
        let sum = Checksum::new().add_pseudo_header(ends.0, ends.1, PROTOCOL_ICMPV6, all.len);
        if p.header.hop_limit != HOP_LIMIT || sum.add_bytes(message).finish() != 0 {
            return cx.count(Counter::DropDiscovery);
        }
        if !self.is_neighbours_mac(nic, from) {
            // Our own frame, returned by a bridge.
            return cx.count(Counter::DropDiscovery);
        }
        let parsed = parse(message, zone_of_nic(nic));
        match (message.first(), parsed) {
            (Some(&ICMPV6_NEIGHBOUR_SOLICITATION), Some(m)) => {
                self.receive_solicitation(cx, nic, p, from, m, out)
            }
            (Some(&ICMPV6_NEIGHBOUR_ADVERTISEMENT), Some(m)) => {
                self.receive_advertisement(cx, nic, p, from, m, out)
            }
            (Some(&ICMPV6_ROUTER_ADVERTISEMENT), _) => self.receive_router(cx, nic, p.source, message, out),
            (Some(&REDIRECT), _) => self.receive_redirect(cx, nic, p, from, message, out),
            // We are not a router.
            (Some(&ICMPV6_ROUTER_SOLICITATION), _) => {}
            _ => cx.count(Counter::DropDiscovery),
        }
    }
}

#[cfg(test)]
mod tests;
