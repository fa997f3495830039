//! Link addresses for packets that go out: from the neighbour table, or asked for by ARP or neighbour discovery.

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::lane::Lanes;
use crate::neighbour::{Due, Lookup};
use crate::note;
use crate::pending::{Datagram, Next, Origin, Stage, Transmission};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem::offset_of;
use core::net::IpAddr;
use core::time::Duration;
use eft_base::errno::{EHOSTUNREACH, ENOBUFS};
use eft_base::{MacAddress, RequestId};
use eft_channel::Requests;
use eft_component::Context;
use eft_messages::ComponentId;
use eft_messages::nic::FrameDescriptor;
use zerocopy::IntoBytes;

/// Of the messages that the queue to a transport holds, a fourth of as many of its packets wait for link addresses. It has headers
/// for three eighths (`eft_control::plan`).
const RESOLVING_SHARE: usize = 4;
/// So long after ip began all may wait: what transports submit again may all be for one gateway, whose address is not known yet.
const BEGINNING: Duration = Duration::from_millis(100);

/// The transport whose packet this is.
fn sender(datagrams: &Requests<Datagram>, origin: Origin) -> Option<ComponentId> {
    match origin {
        Origin::Transport { peer, .. } => Some(peer),
        Origin::Fragment(id) => datagrams.get(id).and_then(|datagram| sender(datagrams, datagram.origin)),
        Origin::Nobody => None,
    }
}

/// Whether one more packet of a transport may wait for a link address. Silent neighbours do not take all its header slots,
/// or it could send to nobody else until they are given up.
fn has_share(lanes: &Lanes, peer: ComponentId, out: &Out) -> bool {
    let resolving = lanes.get(peer).map_or(0, |lane| lane.resolving);
    out.capacity(peer).is_none_or(|capacity| resolving < capacity / RESOLVING_SHARE)
}

impl Ip {
    /// Puts the link address into a transmission's frame and submits it, or lets it wait for an answer.
    pub(crate) fn address(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        d: &mut FrameDescriptor,
        out: &mut Out,
    ) {
        let Some(&transmission) = self.transmissions.get(id) else {
            return;
        };
        let interface = transmission.hop.interface;
        let neighbour = match transmission.hop.next {
            Next::Neighbour(a) => a,
            Next::Group(mac) => return self.submit_to(cx, id, d, mac, out),
            Next::Local => return,
        };
        let (lanes, datagrams) = (&self.lanes, &self.datagrams);
        let begins = self.gate.opened_within(cx.now, BEGINNING);
        // Asked only if the address is not known.
        let may_wait = || {
            begins || sender(datagrams, transmission.origin).is_none_or(|peer| has_share(lanes, peer, out))
        };
        match self.neighbours.lookup(cx.now, (interface, neighbour), id, may_wait) {
            Lookup::Send(mac) => self.submit_to(cx, id, d, mac, out),
            Lookup::SendAndProbe(mac) => {
                self.submit_to(cx, id, d, mac, out);
                self.ask_neighbour(cx, interface, neighbour, Some(mac), out);
            }
            Lookup::Wait { ask } => {
                self.frames.write(transmission.frame, 0, d.as_bytes());
                if let Some(f) = self.transmissions.get_mut(id) {
                    f.stage = Stage::Neighbour;
                }
                let sender = sender(&self.datagrams, transmission.origin);
                if let Some(lane) = sender.and_then(|peer| self.lanes.get_mut(peer)) {
                    lane.resolving += 1;
                }
                if ask {
                    self.ask_neighbour(cx, interface, neighbour, None, out);
                }
            }
            Lookup::Unreachable => self.finish(id, EHOSTUNREACH, out),
            Lookup::NoEntry => {
                cx.count(Counter::NeighbourFull);
                self.finish(id, ENOBUFS, out);
            }
            Lookup::Full { ask } => {
                cx.count(Counter::NeighbourFull);
                // Linux tells nobody of it either (`unres_qlen_bytes`).
                self.finish(id, 0, out);
                if ask {
                    self.ask_neighbour(cx, interface, neighbour, None, out);
                }
            }
        }
    }

    /// A transmission waits for its link address no longer.
    pub(crate) fn resolved(&mut self, transmission: &Transmission) {
        if transmission.stage == Stage::Neighbour
            && let Some(lane) =
                sender(&self.datagrams, transmission.origin).and_then(|peer| self.lanes.get_mut(peer))
        {
            lane.resolving -= 1;
        }
    }

    fn submit_to(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        d: &mut FrameDescriptor,
        mac: MacAddress,
        out: &mut Out,
    ) {
        d.header[..6].copy_from_slice(&mac.0);
        if let Some(f) = self.transmissions.get(id) {
            self.frames.write(f.frame, 0, d.as_bytes());
            self.submit(cx, id, out);
        }
    }

    /// Submits what waited for `mac`, in order.
    pub(crate) fn release_waiting(
        &mut self,
        cx: &mut Context,
        waiting: VecDeque<RequestId>,
        mac: MacAddress,
        out: &mut Out,
    ) {
        for id in waiting {
            if let Some(&f) = self.transmissions.get(id) {
                self.resolved(&f);
                let header = offset_of!(FrameDescriptor, header);
                self.frames.write(f.frame, header, &mac.0);
                self.submit(cx, id, out);
            }
        }
    }

    pub(crate) fn expire_neighbours(&mut self, cx: &mut Context, out: &mut Out) {
        for due in self.neighbours.expire(cx.now) {
            let (interface, address, which) = match due {
                Due::Ask { interface, address, mac } => (interface, address, mac.is_some() as u8),
                Due::GiveUp { interface, address, .. } => (interface, address, 2),
            };
            if !self.enter(cx, note::neighbour(interface, address, which)) {
                self.forget_neighbour(interface, address, due, out);
                continue;
            }
            match due {
                Due::Ask { mac, .. } => self.ask_neighbour(cx, interface, address, mac, out),
                Due::GiveUp { waiting, .. } => {
                    cx.count(Counter::NeighbourTimeouts);
                    self.routes.redirects.forget(interface, address);
                    for id in waiting {
                        self.finish(id, EHOSTUNREACH, out);
                    }
                }
            }
        }
    }

    /// What is due about a neighbour has killed two predecessors: its packets count as lost, and the next one begins anew.
    fn forget_neighbour(&mut self, interface: u8, address: IpAddr, due: Due, out: &mut Out) {
        let mut waiting = self.neighbours.forget_one(interface, address);
        if let Due::GiveUp { waiting: mut silent, .. } = due {
            waiting.append(&mut silent);
        }
        waiting.into_iter().for_each(|id| self.finish(id, 0, out));
    }

    /// Asks the link who has `address`, or, if `mac` is given, that one host whether it still has it (RFC 1122 §2.3.2.1).
    fn ask_neighbour(
        &mut self,
        cx: &mut Context,
        interface: u8,
        address: IpAddr,
        mac: Option<MacAddress>,
        out: &mut Out,
    ) {
        match address {
            IpAddr::V4(address) => self.ask_by_arp(cx, interface, address, mac, out),
            IpAddr::V6(address) => self.ask_by_solicitation(cx, interface, address, mac, out),
        }
    }

    /// Announces addresses of ours on the link, so that neighbours refresh their entries; asks first whether IPv6 ones are free.
    pub(crate) fn announce(
        &mut self,
        cx: &mut Context,
        interface: u8,
        addresses: Vec<IpAddr>,
        out: &mut Out,
    ) {
        let Some(link) = self.link(interface).copied() else {
            return;
        };
        for a in addresses {
            match a {
                IpAddr::V4(a) => self.announce_by_arp(cx, interface, &link, a, out),
                IpAddr::V6(a) => self.try_out(cx, interface, a, out),
            }
        }
    }
}
