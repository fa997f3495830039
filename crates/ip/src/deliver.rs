//! Packets given to transports, and given back.
//!
//! A packet's buffer belongs to a NIC or to us; which transport has it is kept in [`crate::given`].

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::family;
use crate::given::Owner;
use crate::lane::{Lane, Undelivered};
use crate::pending::{Arrival, FromPeer, Question, Report, ToPeer};
use eft_base::errno::ENETUNREACH;
use eft_base::wire::{IPV6_NO_NEXT, PROTOCOL_TCP};
use eft_base::{PacketRef, WireAddress};
use eft_component::Context;
use eft_messages::nic::{IpToNic, NicToIp};
use eft_messages::transport::{IpToTransport, TransportToIp};
use eft_messages::{ComponentId, Role};

/// Packets that wait for room in a transport's queue, whatever the pool has left: enough for a burst of receipts to pass.
const UNDELIVERED_MAX: usize = 64;

/// How many times a transport may die while it has a packet. tcp records the input that killed it and drops that itself after
/// two deaths; this limit covers packets that it cannot identify.
const DEATHS_MAX: u8 = 4;

impl Ip {
    /// Answers messages that the gate has no room for, so that no sender waits for ever.
    pub(crate) fn refuse_early(
        &mut self,
        cx: &mut Context,
        from: ComponentId,
        message: FromPeer,
        out: &mut Out,
    ) {
        cx.count(Counter::RefusedFull);
        let errno = ENETUNREACH;
        let answer = match (from, message) {
            (nic, FromPeer::Nic(NicToIp::Received { packet, .. })) => {
                ToPeer::Nic(nic.instance, IpToNic::Done { packet })
            }
            (peer, FromPeer::Transport(TransportToIp::Send { request, .. })) => {
                ToPeer::Transport(peer, IpToTransport::Sent { request, errno })
            }
            (peer, FromPeer::Transport(TransportToIp::Route { request, .. })) => {
                ToPeer::Transport(peer, Ip::no_route(request, WireAddress::default(), errno))
            }
            _ => return,
        };
        out.push(answer);
    }

    /// Gives a packet's buffer back to its owner.
    pub(crate) fn release(&mut self, packet: PacketRef, out: &mut Out) {
        match self.given.owner(packet.pool) {
            Some(Owner::Us) => {
                self.packets.free(packet);
            }
            Some(Owner::Nic(n)) => out.push(ToPeer::Nic(n, IpToNic::Done { packet })),
            Some(Owner::Dead) => self.given.forget_dead(),
            None => {}
        }
    }

    /// Counts why a packet is dropped, and gives its buffer back.
    pub(crate) fn drop_packet(&mut self, cx: &mut Context, packet: PacketRef, why: Counter, out: &mut Out) {
        cx.count(why);
        self.release(packet, out);
    }

    /// The transport that gets a packet for this host.
    #[inline]
    pub(crate) fn receiver(&self, question: &Question) -> Option<ComponentId> {
        let peer = (question.source, question.source_port);
        self.lanes.transport_of(question.protocol, question.destination_port, peer)
    }

    /// A packet for this host that may pass.
    pub(crate) fn accept(&mut self, cx: &mut Context, a: Arrival, out: &mut Out) {
        match a.question.protocol {
            p if p == family::icmp_protocol(a.question.source) => return self.receive_icmp(cx, a, out),
            // RFC 8200 §4.7.
            IPV6_NO_NEXT if a.question.source.is_ipv6() => return self.release(a.packet, out),
            PROTOCOL_TCP if a.group => {
                return self.drop_packet(cx, a.packet, Counter::DropMartian, out);
            }
            _ => {}
        }
        let Some(peer) = self.receiver(&a.question) else {
            return self.refuse_protocol(cx, a, out);
        };
        let message = IpToTransport::Deliver {
            packet: a.packet,
            header_len: a.header_len,
            checksum_ok: a.checksum_ok,
            segment_size: a.segment_size,
            zone: a.question.zone(),
            interface: a.interface,
        };
        self.give(cx, peer, a.packet, message, !a.group, out);
    }

    fn refuse_protocol(&mut self, cx: &mut Context, a: Arrival, out: &mut Out) {
        if !a.group {
            self.send_error(cx, Report::ProtocolUnreachable, a.packet, a.question.zone(), out);
        }
        self.drop_packet(cx, a.packet, Counter::DropProtocol, out);
    }

    /// Hands a packet to a transport if its queue has room for packets that may be dropped. Else a few wait, and many for tcp:
    /// a whole window may arrive while it is reborn or busy, and a hole in it costs the connection a retransmission, a hole in
    /// acknowledgments a probe.
    pub(crate) fn give(
        &mut self,
        cx: &mut Context,
        peer: ComponentId,
        packet: PacketRef,
        message: IpToTransport,
        answerable: bool,
        out: &mut Out,
    ) {
        self.hand_over(cx, peer, Undelivered { packet, message, answerable, deaths: 0 }, out);
    }

    fn hand_over(&mut self, cx: &mut Context, peer: ComponentId, what: Undelivered, out: &mut Out) {
        let Some(lane) = self.lanes.get_mut(peer) else {
            return;
        };
        let waiting = lane.undelivered.len();
        if lane.undelivered.is_empty() && out.may_drop_in(peer) {
            self.given.give(what, peer);
            out.push(ToPeer::Transport(peer, what.message));
        } else if waiting < UNDELIVERED_MAX
            || peer.role == Role::Tcp && self.given.may_wait(what.packet.pool, waiting)
        {
            lane.undelivered.push_back(what);
        } else {
            self.drop_packet(cx, what.packet, Counter::DropTransportFull, out);
        }
    }

    /// Gives tcp's successor the packets again that the dead tcp had not given back, before anything newer: otherwise the peer
    /// would have to detect them as lost. A packet over which four have died is dropped. udp's successor gets nothing again,
    /// since a datagram that its predecessor had already passed on would be duplicated.
    pub(crate) fn give_again(&mut self, cx: &mut Context, peer: ComponentId, out: &mut Out) {
        let take = |lane: &mut Lane| core::mem::take(&mut lane.undelivered);
        let newer = self.lanes.get_mut(peer).map(take).unwrap_or_default();
        for what in self.given.take_all(peer) {
            let deaths = what.deaths + 1;
            if peer.role != Role::Tcp || self.given.owner(what.packet.pool) == Some(Owner::Dead) {
                self.release(what.packet, out);
            } else if deaths >= DEATHS_MAX {
                self.drop_packet(cx, what.packet, Counter::DropFatal, out);
            } else {
                cx.count(Counter::GivenAgain);
                self.hand_over(cx, peer, Undelivered { deaths, ..what }, out);
            }
        }
        if let Some(lane) = self.lanes.get_mut(peer) {
            lane.undelivered.extend(newer);
        }
    }

    /// Hands over what waited for room.
    pub(crate) fn flush_undelivered(&mut self, out: &mut Out) {
        for (peer, lane) in self.lanes.iter_mut() {
            while !lane.undelivered.is_empty()
                && out.may_drop_in(peer)
                && let Some(u) = lane.undelivered.pop_front()
            {
                self.given.give(u, peer);
                out.push(ToPeer::Transport(peer, u.message));
            }
        }
    }

    pub(crate) fn receive_done(
        &mut self,
        cx: &mut Context,
        peer: ComponentId,
        packet: PacketRef,
        out: &mut Out,
    ) {
        match self.given.take(packet, peer) {
            Some(entry) => self.release(entry.packet, out),
            None => cx.count(Counter::BadDone),
        }
    }

    /// No socket is bound to the port (RFC 1122 §4.1.3.1).
    pub(crate) fn receive_refuse(
        &mut self,
        cx: &mut Context,
        peer: ComponentId,
        packet: PacketRef,
        out: &mut Out,
    ) {
        match self.given.take(packet, peer) {
            Some(entry) => {
                if let (true, IpToTransport::Deliver { zone, .. }) = (entry.answerable, entry.message) {
                    self.send_error(cx, Report::PortUnreachable, entry.packet, zone, out);
                }
                self.release(entry.packet, out);
            }
            None => cx.count(Counter::BadDone),
        }
    }
}
