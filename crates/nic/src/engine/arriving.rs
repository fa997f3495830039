//! Frames on their way from the device to ip.

use super::{Nic, RETRY};
use crate::counters::Counter;
use crate::output::ToIp;
use eft_base::PacketRef;
use eft_channel::rounds::REPEATED;
use eft_component::{Context, Device, DeviceError, Outbox, ReceivedFrame};
use eft_messages::ComponentId;
use eft_messages::nic::NicToIp;

impl<D: Device> Nic<D> {
    /// Takes frames from the device while ip's queue has room for messages that may be dropped.
    /// Other frames stay in the device, which is the better place to drop them.
    pub(super) fn take_frames(&mut self, cx: &mut Context, budget: usize, out: &mut Outbox<ToIp>) -> usize {
        for done in 0..budget {
            if !out.may_drop_in(ComponentId::IP) {
                if self.connected {
                    cx.count(Counter::HeldBack);
                    self.retry_at = Some(cx.now + RETRY);
                }
                return done;
            }
            let Some(slot) = self.pool.allocate() else {
                cx.count(Counter::NoSlot);
                return done;
            };
            match self.device.receive(&self.pool, slot) {
                Ok(frame) => self.receive_frame(cx, slot, frame, out),
                Err(e) => {
                    self.pool.free(slot);
                    match e {
                        DeviceError::WouldBlock => {}
                        DeviceError::Failed(_) => {
                            cx.count(Counter::ReceiveErrors);
                            continue;
                        }
                        DeviceError::Gone(_) => {
                            cx.count(Counter::ReceiveErrors);
                            self.link_check_at = cx.now;
                        }
                    }
                    return done;
                }
            }
        }
        budget
    }

    fn receive_frame(
        &mut self,
        cx: &mut Context,
        slot: PacketRef,
        frame: ReceivedFrame,
        out: &mut Outbox<ToIp>,
    ) {
        let packet = PacketRef { len: frame.len.min(slot.len), ..slot };
        cx.count(Counter::FramesIn);
        cx.add(Counter::BytesIn, packet.len as u64);
        if frame.segment_size > 0 {
            cx.count(Counter::LargeIn);
        }
        self.received.insert(packet, frame);
        out.push(received(packet, frame));
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

pub(super) fn received(packet: PacketRef, frame: ReceivedFrame) -> ToIp {
    ToIp(NicToIp::Received { packet, checksum_ok: frame.checksum_ok, segment_size: frame.segment_size })
}
