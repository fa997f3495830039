//! Frames that a dead predecessor had read from the device.

use super::Nic;
use super::arriving::content;
use crate::coalesce::{Arrived, finish};
use alloc::vec::Vec;
use eft_base::PacketRef;
use eft_channel::PoolView;
use eft_channel::journal::{Content, Left, left};
use eft_channel::queue::Inspection;
use eft_component::{Device, ReceivedFrame};
use eft_messages::nic::NicToIp;

impl<D: Device> Nic<D> {
    /// Takes the frames that a predecessor has left in its pool and of which ip has not heard by the `queue` from it; `None`: the ip
    /// that heard is dead, too, so those that it had not given back are also taken. They go to ip as what it does not give back.
    pub fn inherit(&mut self, pool: &PoolView, queue: Option<&Inspection>) {
        let told = queue.map(told);
        let is_told = |frame: &Left| {
            let is_it = |packet: &PacketRef| same_use(packet, &frame.slot);
            told.as_ref().is_some_and(|told| frame.passed || told.iter().any(is_it))
        };
        for frame in left(pool).into_iter().filter(|frame| !is_told(frame)) {
            let content =
                frame.content.or_else(|| Some(content(self.device.recover(pool, frame.slot)?, None)));
            let taken = content.and_then(|content| self.take_over(pool, frame.slot, content));
            self.inherited += u64::from(taken.is_some());
        }
    }

    /// Copies a frame, so that what becomes of it is as of any other.
    fn take_over(&mut self, pool: &PoolView, from: PacketRef, content: Content) -> Option<()> {
        let Content { len, checksum_ok, segment_size, joined } = content;
        // The predecessor may have gone mad.
        if len > from.len || len as usize > self.pool.slot_size() {
            return None;
        }
        let at = pool.locate(PacketRef { len, ..from })?;
        let slot = self.pool.allocate()?;
        let arrived = Arrived { slot, frame: ReceivedFrame { len, checksum_ok, segment_size } };
        let view = self.pool.view();
        // Both were checked.
        let _ = view.locate(slot).map(|to| pool.segment.copy_to(at, &view.segment, to, len as usize));
        if let Some(pushed) = joined {
            finish(&self.pool, arrived, pushed);
        }
        self.journal.begin(slot);
        self.journal.put(slot, super::arriving::content(arrived.frame, None));
        self.received.insert(arrived.packet(), arrived.frame);
        Some(())
    }
}

/// The frames of which ip has a message.
fn told(queue: &Inspection) -> Vec<PacketRef> {
    let named = |message| match NicToIp::decode(&message)? {
        NicToIp::Received { packet, .. } => Some(packet),
        _ => None,
    };
    queue.last_written().filter_map(named).collect()
}

fn same_use(a: &PacketRef, b: &PacketRef) -> bool {
    (a.pool, a.slot, a.generation) == (b.pool, b.slot, b.generation)
}
