//! What is sent again: to a successor, and to whoever does not answer.

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::pending::{Origin, Stage, ToPeer, Transmission};
use crate::verdict::tagged;
use eft_base::{PacketRef, RequestId};
use eft_channel::rounds::REPEATED;
use eft_component::Context;
use eft_messages::nic::IpToNic;
use eft_messages::{ComponentId, Role};

impl Ip {
    /// Whether this request of a transport is under way here.
    pub(crate) fn has_request(&mut self, peer: ComponentId, request: RequestId) -> bool {
        let is_it = |origin| origin == Origin::Transport { peer, request };
        let waits =
            self.lanes.get_mut(peer).is_some_and(|lane| lane.waiting.iter().any(|(r, _)| *r == request));
        waits
            || self.transmissions.iter().any(|(_, t)| is_it(t.origin))
            || self.datagrams.iter().any(|(_, d)| is_it(d.origin))
    }

    /// Repeats what nic and filter have not answered for long, and what transports have not given back: a lost answer would hold
    /// a frame, or a packet, for ever.
    pub(crate) fn repeat_requests(&mut self, cx: &mut Context, out: &mut Out) {
        if !self.rounds.expire(cx.now) {
            return;
        }
        for id in self.transmissions.next_round(REPEATED) {
            let Some(&t) = self.transmissions.get(id) else { continue };
            if !self.enter_judged_send(&t, &self.descriptor(t.frame)) {
                cx.count(Counter::DropFatal);
                continue;
            }
            match t.stage {
                Stage::Nic if out.room(ComponentId::nic(t.hop.interface)) > 0 => {
                    cx.count(Counter::Repeated);
                    out.push(t.to_nic(id));
                }
                Stage::Verdict => self.ask_again(cx, id, out),
                Stage::Nic | Stage::Neighbour | Stage::Local => {}
            }
        }
        for id in self.arrivals.next_round(REPEATED) {
            let named = self.arrivals.get(id).map(|asked| asked.named);
            match named.is_none_or(|named| self.docket.enter_again(named)) {
                true => self.ask_again(cx, tagged(id), out),
                false => cx.count(Counter::DropFatal),
            }
        }
        // Who has given a packet back ignores it and gives it back again.
        for (peer, what) in self.given.next_round(REPEATED) {
            if out.may_drop_in(peer) && self.enter_given(cx, what.packet) {
                cx.count(Counter::Repeated);
                out.push(ToPeer::Transport(peer, what.message));
            }
        }
    }

    /// A nic repeats that a frame is there: it has not got it back for long. If the frame is not here any more, the receipt was
    /// lost.
    pub(crate) fn receive_repeated(&mut self, cx: &mut Context, n: u8, packet: PacketRef, out: &mut Out) {
        cx.count(Counter::DropRepeated);
        if !self.has_packet(packet) {
            out.push(ToPeer::Nic(n, IpToNic::Done { packet }));
        }
    }

    /// Whether a nic's packet is here or with a transport.
    fn has_packet(&self, packet: PacketRef) -> bool {
        let is_it = |p: PacketRef| (p.pool, p.slot) == (packet.pool, packet.slot);
        self.given.has(packet)
            || self.arrivals.iter().any(|(_, a)| is_it(a.arrival.packet))
            || self.lanes.iter().flat_map(|l| &l.undelivered).any(|u| is_it(u.packet))
    }

    /// A nic has a successor, which gets what its predecessor did not answer.
    pub(crate) fn nic_reborn(&mut self, cx: &mut Context, n: u8, out: &mut Out) {
        self.given.owner_reborn(n);
        let there = |f: &Transmission| f.stage == Stage::Nic && f.hop.interface == n;
        for (request, transmission) in self.transmissions.iter().filter(|(_, f)| there(f)) {
            cx.count(Counter::Resubmitted);
            out.push(transmission.to_nic(request));
        }
    }

    /// Forgets the requests of a dead transport, and gives its successor the packets that came for it. Frames that the NIC
    /// has stay until it answers.
    pub(crate) fn transport_reborn(&mut self, cx: &mut Context, peer: ComponentId, out: &mut Out) {
        self.gate.forget(peer);
        self.lanes.reborn(peer);
        if peer.role == Role::Udp {
            self.groups.transport_reborn(cx.now, peer.instance);
        }
        let of_peer = |o: Origin| matches!(o, Origin::Transport { peer: p, .. } if p == peer);
        for id in self.datagrams.ids() {
            if let Some(d) = self.datagrams.get_mut(id)
                && of_peer(d.origin)
            {
                d.origin = Origin::Nobody;
            }
        }
        for id in self.transmissions.ids() {
            let Some(transmission) = self.transmissions.get_mut(id) else {
                continue;
            };
            if of_peer(transmission.origin) {
                transmission.origin = Origin::Nobody;
                if transmission.stage != Stage::Nic {
                    self.finish(id, 0, out);
                }
            }
        }
        let transmissions = &self.transmissions;
        self.local.retain(|id| transmissions.get(*id).is_some());
        self.give_again(cx, peer, out);
    }
}
