//! Packets to the host's own addresses are looped back here: one copy into our own pool, no checksum,
//! no segmentation.
//!
//! If the receiving transport's queue is full they wait, in order: the transport always drains its
//! queue, so this ends. Copies of packets to groups do not wait: they are dropped.

use crate::LOCAL_INTERFACE;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::family;
use crate::pending::{Arrival, ETHERNET_LEN, Question, Reach, Stage, Transmission};
use eft_base::errno::{EINVAL, ENOBUFS, EPROTONOSUPPORT};
use eft_base::wire::{PROTOCOL_TCP, PROTOCOL_UDP};
use eft_base::{PacketRef, RequestId};
use eft_component::Context;
use eft_messages::nic::FrameDescriptor;
use zerocopy::IntoBytes;

impl Ip {
    pub(crate) fn depart_local(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        d: &FrameDescriptor,
        out: &mut Out,
    ) {
        let Some(&transmission) = self.transmissions.get(id) else {
            return;
        };
        if is_transport(transmission.question.protocol) && self.receiver(&transmission.question).is_none() {
            cx.count(Counter::DropProtocol);
            return self.finish(id, EPROTONOSUPPORT, out);
        }
        if self.local.is_empty() && self.has_local_room(&transmission, out) {
            return self.turn_round(cx, id, &transmission, d, out);
        }
        if self.local.len() >= self.frames.slots() / 2 {
            cx.count(Counter::RefusedFull);
            return self.finish(id, ENOBUFS, out);
        }
        self.frames.write(transmission.frame, 0, d.as_bytes());
        if let Some(f) = self.transmissions.get_mut(id) {
            f.stage = Stage::Local;
        }
        self.local.push_back(id);
    }

    fn has_local_room(&self, transmission: &Transmission, out: &Out) -> bool {
        let to = self.receiver(&transmission.question);
        self.packets.available() > 0 && to.is_none_or(|p| out.may_drop_in(p))
    }

    /// Loops packets back that waited for room.
    pub(crate) fn flush_local(&mut self, cx: &mut Context, out: &mut Out) {
        while let Some(&id) = self.local.front()
            && let Some(&transmission) = self.transmissions.get(id)
            && self.has_local_room(&transmission, out)
        {
            let d = self.descriptor(transmission.frame);
            self.local.pop_front();
            if !self.enter_judged_send(&transmission, &d) {
                cx.count(Counter::DropFatal);
                self.finish(id, 0, out);
                continue;
            }
            self.turn_round(cx, id, &transmission, &d, out);
        }
    }

    fn turn_round(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        transmission: &Transmission,
        d: &FrameDescriptor,
        out: &mut Out,
    ) {
        if !d.is_as_sealed() {
            return self.drop_damaged(cx, id, out);
        }
        let Some(slot) = self.packets.allocate() else {
            cx.count(Counter::DropNoSlot);
            return self.finish(id, ENOBUFS, out);
        };
        let Some(packet) = self.copy_packet(cx, slot, d) else {
            self.packets.free(slot);
            cx.count(Counter::RefusedSend);
            return self.finish(id, EINVAL, out);
        };
        self.finish(id, 0, out);
        cx.count(Counter::LocalPackets);
        cx.add(Counter::LocalBytes, packet.len as u64);
        // The filter judged it on its way out; it is not judged again.
        self.accept(cx, arrival(packet, transmission, LOCAL_INTERFACE), out);
    }

    /// A packet to a group leaves: this host gets a copy if it is to and is a member (RFC 1112 §6.1). True: nobody else gets it.
    pub(crate) fn depart_to_group(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        transmission: &Transmission,
        d: &FrameDescriptor,
        out: &mut Out,
    ) -> bool {
        let Question { source, destination, .. } = transmission.question;
        let interface = transmission.hop.interface;
        let member = !destination.is_multicast() || self.groups.admit(interface, destination, source);
        if transmission.reach != Reach::Link && member && d.is_as_sealed() {
            match self.packets.allocate() {
                None => cx.count(Counter::DropNoSlot),
                Some(slot) => match self.copy_packet(cx, slot, d) {
                    None => {
                        self.packets.free(slot);
                    }
                    Some(packet) => {
                        cx.count(Counter::LocalPackets);
                        cx.add(Counter::LocalBytes, packet.len as u64);
                        let arrival = Arrival { group: true, ..arrival(packet, transmission, interface) };
                        // The filter judged it on its way out; it is not judged again.
                        self.accept(cx, arrival, out);
                    }
                },
            }
        }
        let here_alone = transmission.reach == Reach::Host;
        if here_alone {
            self.finish(id, 0, out);
        }
        here_alone
    }

    /// Copies a described packet, from its IP header on, to the start of a slot of ours.
    fn copy_packet(&self, cx: &Context, slot: PacketRef, d: &FrameDescriptor) -> Option<PacketRef> {
        let headers = &d.header[ETHERNET_LEN..d.header_len as usize];
        let mut len = headers.len();
        if !self.packets.write(slot, 0, headers) {
            return None;
        }
        let view = self.packets.view();
        let start = view.locate(slot)?;
        for r in &d.payload[..d.payload_count as usize] {
            if len + r.len as usize > slot.len as usize {
                return None;
            }
            let (segment, offset) = self.resolve(cx.memory, *r)?;
            segment.copy_to(offset, &view.segment, start + len, r.len as usize).ok()?;
            len += r.len as usize;
        }
        Some(PacketRef { len: len as u32, ..slot })
    }
}

/// A packet of ours that comes back to us.
fn arrival(packet: PacketRef, transmission: &Transmission, interface: u8) -> Arrival {
    Arrival {
        packet,
        interface,
        header_len: family::header_len(transmission.question.source) as u16,
        checksum_ok: true,
        segment_size: transmission.segment_size,
        group: false,
        question: transmission.question,
    }
}

/// Whether a transport gets packets of this protocol; ICMP stays here.
fn is_transport(protocol: u8) -> bool {
    matches!(protocol, PROTOCOL_TCP | PROTOCOL_UDP)
}
