//! What comes in: udp's list of groups, and what routers and other hosts say.

use super::wire::{self, Message, QUERY6, REPORT6_V1};
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::note;
use crate::pending::ToPeer;
use crate::v6::address::is_link_local;
use core::net::IpAddr;
use eft_base::address::without_zone;
use eft_base::{PacketRef, WireAddress};
use eft_component::Context;
use eft_messages::ComponentId;
use eft_messages::transport::IpToTransport;

/// Longer messages are ignored: the longest query fits an Ethernet frame.
const MESSAGE_MAX: usize = 1500;
/// The most that an MLD message's header says about itself (RFC 9777 §5): these messages are not forwarded.
const HOP_LIMIT: u8 = 1;

/// A message that came in, from its IGMP or ICMPv6 header on.
pub(crate) struct Heard {
    pub interface: u8,
    pub packet: PacketRef,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub hops: u8,
}

/// Whether an ICMPv6 message of this type belongs to MLD.
pub(crate) fn is_listener_discovery(kind: u8) -> bool {
    (QUERY6..=REPORT6_V1 + 1).contains(&kind) || kind == 143
}

impl Ip {
    /// A step of the list of groups of an instance of udp.
    pub(crate) fn receive_group(
        &mut self,
        cx: &mut Context,
        peer: ComponentId,
        (order, step): (u32, u8),
        (interface, group): (u8, WireAddress),
        source: WireAddress,
        out: &mut Out,
    ) {
        let place = (interface, group.into());
        // One that has killed two predecessors is left out.
        if self.enter(cx, note::step(step, place, source))
            && !self.groups.step(cx.now, peer.instance, (order, step), place, source.into())
        {
            cx.count(Counter::RefusedGroup);
        }
        out.push(ToPeer::Transport(peer, IpToTransport::Grouped { order }));
    }

    /// The caller keeps the packet's buffer.
    pub(crate) fn receive_membership(&mut self, cx: &mut Context, heard: Heard) {
        cx.count(Counter::MembershipIn);
        let Heard { interface, packet, source, destination, hops } = heard;
        let mut bytes = [0; MESSAGE_MAX];
        let message = match self.read_head(cx.memory, packet, &mut bytes) {
            Some(message) if message.len() == packet.len as usize => message,
            _ => return cx.count(Counter::DropMembership),
        };
        // RFC 9777 §6.2: from the link itself. A router without an address may ask by IGMP (RFC 9776 §4.2.13).
        let from_link = match source {
            IpAddr::V6(a) => hops == HOP_LIMIT && (is_link_local(a) || a.is_unspecified()),
            IpAddr::V4(_) => true,
        };
        if !from_link || !wire::is_sound(message, source, destination) {
            return cx.count(Counter::DropMembership);
        }
        let place = (interface, source.is_ipv6());
        match wire::parse(source.is_ipv6(), message) {
            Some(Message::Query(query)) if !source.is_unspecified() || source.is_ipv4() => {
                self.groups.hear(cx.now, cx.random, place, query)
            }
            Some(Message::Report(group)) => self.groups.hear_report(cx.now, place, without_zone(group)),
            Some(Message::Query(_)) | None => cx.count(Counter::DropMembership),
            Some(Message::Other) => {}
        }
    }
}
