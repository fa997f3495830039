//! Neighbours' link addresses (RFC 4861 §7): asking, answering, learning.
//!
//! An entry is learned from an answer of a host that we have an entry for, or from a question to us; always about an
//! address of the link's own networks, and only if the Ethernet source is the message's sender. No message makes us give
//! up our own address, except in the second in which it is checked for duplicates ([`super::duplicates`]).

use super::address::{all_nodes, is_unicast, link_group, solicited_node};
use super::discovery::{NeighbourMessage, OVERRIDE, SOLICITED, message};
use super::header::Packet;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::neighbour::Learned;
use crate::pending::{Hop, Next};
use core::net::{IpAddr, Ipv6Addr};
use eft_base::MacAddress;
use eft_base::address::zone_of_nic;
use eft_base::wire::{ICMPV6_NEIGHBOUR_ADVERTISEMENT, ICMPV6_NEIGHBOUR_SOLICITATION};
use eft_component::Context;

impl Ip {
    /// Asks the link who has `address`, or, if `mac` is given, that one host whether it still has it (RFC 4861 §7.2.2,
    /// §7.3.3).
    pub(crate) fn ask_by_solicitation(
        &mut self,
        cx: &mut Context,
        interface: u8,
        address: Ipv6Addr,
        mac: Option<MacAddress>,
        out: &mut Out,
    ) {
        let Some(link) = self.link(interface).copied() else {
            return;
        };
        let hop = Hop::to(interface, Next::Neighbour(address.into()));
        let Some(IpAddr::V6(source)) = self.routes.source_for(hop, address.into()) else {
            return;
        };
        let destination = match mac {
            Some(_) => address,
            None => solicited_node(address, zone_of_nic(interface)),
        };
        let Some(to) = mac.or_else(|| link_group(destination)) else {
            return;
        };
        // RFC 4429 §3.3: an address that another host may have must not change others' entries.
        let tentative = self.tentatives.contains(interface, source);
        let question = NeighbourMessage { target: address, flags: 0, mac: (!tentative).then_some(link.mac) };
        let bytes = message(ICMPV6_NEIGHBOUR_SOLICITATION, question, (source, destination));
        self.send_discovery(cx, interface, to, (source, destination), &bytes, out);
    }

    /// Advertises an address of ours: to the host that asked, or to all (RFC 4861 §7.2.4, §7.2.6).
    pub(super) fn advertise(
        &mut self,
        cx: &mut Context,
        interface: u8,
        address: Ipv6Addr,
        asked_by: Option<(Ipv6Addr, MacAddress)>,
        out: &mut Out,
    ) {
        let Some(link) = self.link(interface).copied() else {
            return;
        };
        let everybody = all_nodes(zone_of_nic(interface));
        let (destination, to, solicited) = match asked_by {
            // A host that checks an address for duplicates has no address to answer to.
            Some((asker, mac)) if !asker.is_unspecified() => (asker, mac, SOLICITED),
            _ => match link_group(everybody) {
                Some(group) => (everybody, group, 0),
                None => return,
            },
        };
        let tentative = self.tentatives.contains(interface, address);
        let flags = solicited | if tentative { 0 } else { OVERRIDE };
        let answer = NeighbourMessage { target: address, flags, mac: Some(link.mac) };
        let bytes = message(ICMPV6_NEIGHBOUR_ADVERTISEMENT, answer, (address, destination));
        self.send_discovery(cx, interface, to, (address, destination), &bytes, out);
    }

    /// A host asks who has an address, or checks one for duplicates (RFC 4861 §7.2.3, RFC 4862 §5.4.3).
    pub(super) fn receive_solicitation(
        &mut self,
        cx: &mut Context,
        nic: u8,
        p: &Packet,
        from: MacAddress,
        m: NeighbourMessage,
        out: &mut Out,
    ) {
        let tries_out = p.source.is_unspecified();
        let ours = self.routes.addresses_of(nic).any(|a| a == IpAddr::V6(m.target));
        // RFC 4861 §7.1.1: a host without an address asks the solicited-node group, and gives no link address to note.
        let group = solicited_node(m.target, zone_of_nic(nic));
        if tries_out && (p.destination != group || m.mac.is_some()) {
            return cx.count(Counter::DropDiscovery);
        }
        if m.mac.is_some_and(|mac| mac != from) {
            return cx.count(Counter::DropDiscoverySpoofed);
        }
        if !ours {
            return;
        }
        if self.routes.is_ours(p.source.into()) {
            return cx.count(Counter::AddressConflicts);
        }
        if tries_out && self.tentatives.contains(nic, m.target) {
            // Both check it for duplicates: neither may have it (RFC 4862 §5.4.3).
            return self.give_up_address(cx, nic, m.target, out);
        }
        if !tries_out {
            if !self.routes.is_on_link(nic, p.source.into()) {
                return cx.count(Counter::DropDiscoverySpoofed);
            }
            if let Some(mac) = m.mac {
                let learned = Learned { mac, confirmed: false };
                let waiting = self.neighbours.learn(cx.now, nic, p.source.into(), learned);
                self.release_waiting(cx, waiting, mac, out);
            }
        }
        self.advertise(cx, nic, m.target, Some((p.source, from)), out);
    }

    /// A host advertises where an address is (RFC 4861 §7.2.5), or that it has one of ours (RFC 4862 §5.4.4).
    pub(super) fn receive_advertisement(
        &mut self,
        cx: &mut Context,
        nic: u8,
        p: &Packet,
        from: MacAddress,
        m: NeighbourMessage,
        out: &mut Out,
    ) {
        let solicited = m.flags & SOLICITED != 0;
        if !is_unicast(p.source) || (solicited && p.destination.is_multicast()) {
            return cx.count(Counter::DropDiscovery);
        }
        if self.routes.is_ours(m.target.into()) {
            if self.tentatives.contains(nic, m.target) {
                return self.give_up_address(cx, nic, m.target, out);
            }
            return cx.count(Counter::AddressConflicts);
        }
        // An answer by unicast may leave its sender's link address out.
        let mac = m.mac.unwrap_or(from);
        if mac != from || !self.routes.is_on_link(nic, m.target.into()) {
            return cx.count(Counter::DropDiscoverySpoofed);
        }
        match self.neighbours.mac(nic, m.target.into()) {
            None if !self.neighbours.knows(nic, m.target.into()) => {}
            // Another link address than the one in the entry: accepted if the override flag is set, else probed.
            Some(known) if known != mac && m.flags & OVERRIDE == 0 => {
                self.neighbours.doubt(cx.now, nic, m.target.into())
            }
            _ => {
                let learned = Learned { mac, confirmed: solicited };
                let waiting = self.neighbours.learn(cx.now, nic, m.target.into(), learned);
                self.release_waiting(cx, waiting, mac, out);
            }
        }
    }
}
