//! Frames on their way from the device to ip.

use super::{Nic, RETRY};
use crate::coalesce::{Arrived, Fate, Joined};
use crate::counters::Counter;
use crate::output::ToIp;
use eft_base::PacketRef;
use eft_channel::journal::Content;
use eft_channel::rounds::REPEATED;
use eft_component::{Context, Device, DeviceError, Outbox, ReceivedFrame};
use eft_messages::ComponentId;
use eft_messages::nic::NicToIp;

impl<D: Device> Nic<D> {
    /// Takes frames from the device while ip's queue has room for messages that may be dropped.
    /// Other frames stay in the device, which is the better place to drop them.
    pub(super) fn take_frames(&mut self, cx: &mut Context, budget: usize, out: &mut Outbox<ToIp>) -> usize {
        if out.may_drop_in(ComponentId::IP) {
            // More than half of the queue is free, so nothing of earlier turns waits outside of it.
            self.journal.pass();
        }
        let mut done = 0;
        while done < budget && self.take_frame(cx, out) {
            done += 1;
        }
        self.coalescer.close_all();
        self.deliver_closed(out);
        done
    }

    /// Whether the device may have another one.
    fn take_frame(&mut self, cx: &mut Context, out: &mut Outbox<ToIp>) -> bool {
        if !out.may_drop_in(ComponentId::IP) {
            if self.connected {
                cx.count(Counter::HeldBack);
                self.retry_at = Some(cx.now + RETRY);
            }
            return false;
        }
        let Some(slot) = self.pool.allocate() else {
            cx.count(Counter::NoSlot);
            return false;
        };
        self.journal.begin(slot);
        let why = match self.device.receive(&self.pool, slot) {
            Ok(frame) => {
                self.receive_frame(cx, Arrived { slot, frame }, out);
                return true;
            }
            Err(why) => why,
        };
        self.give_up(slot);
        if why != DeviceError::WouldBlock {
            cx.count(Counter::ReceiveErrors);
        }
        if let DeviceError::Gone(_) = why {
            self.link_check_at = cx.now;
        }
        matches!(why, DeviceError::Failed(_))
    }

    /// A slot holds nothing any more.
    fn give_up(&mut self, slot: PacketRef) {
        self.journal.forget(slot.slot);
        self.pool.free(slot);
    }

    fn receive_frame(&mut self, cx: &mut Context, arrived: Arrived, out: &mut Outbox<ToIp>) {
        self.journal.put(arrived.slot, content(arrived.frame, None));
        cx.count(Counter::FramesIn);
        cx.add(Counter::BytesIn, arrived.packet().len as u64);
        if arrived.frame.segment_size > 0 {
            cx.count(Counter::LargeIn);
        }
        let fate = match self.info.coalesce {
            true => self.coalescer.put(&self.pool, arrived),
            false => Fate::Passes,
        };
        self.deliver_closed(out);
        match fate {
            Fate::Merged(Joined { whole, pushed }) => {
                cx.count(Counter::Coalesced);
                // In this order: a successor may find its bytes twice, which tcp drops, but not nowhere.
                self.journal.put(whole.slot, content(whole.frame, Some(pushed)));
                self.give_up(arrived.slot);
            }
            Fate::Kept => {}
            Fate::Passes => self.deliver(arrived, out),
        }
    }

    fn deliver_closed(&mut self, out: &mut Outbox<ToIp>) {
        while let Some(arrived) = self.coalescer.next(&self.pool) {
            self.deliver(arrived, out);
        }
    }

    fn deliver(&mut self, arrived: Arrived, out: &mut Outbox<ToIp>) {
        let packet = arrived.packet();
        self.received.insert(packet, arrived.frame);
        out.push(received(packet, arrived.frame));
    }

    /// Repeats to ip which frames it has had for long: if a receipt was lost, or the message that the frame is there, a slot would
    /// be in use for ever.
    pub(super) fn repeat_received(&mut self, cx: &mut Context, out: &mut Outbox<ToIp>) {
        if !self.rounds.expire(cx.now) {
            return;
        }
        for (packet, frame) in self.received.next_round(REPEATED) {
            if out.may_drop_in(ComponentId::IP) {
                cx.count(Counter::Repeated);
                out.push(received(packet, frame));
            }
        }
    }
}

pub(super) fn content(frame: ReceivedFrame, joined: Option<bool>) -> Content {
    let ReceivedFrame { len, checksum_ok, segment_size } = frame;
    Content { len, checksum_ok, segment_size, joined }
}

pub(super) fn received(packet: PacketRef, frame: ReceivedFrame) -> ToIp {
    ToIp(NicToIp::Received { packet, checksum_ok: frame.checksum_ok, segment_size: frame.segment_size })
}
