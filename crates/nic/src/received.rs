//! The frames that ip has: in order of arrival, found by slot.
//!
//! A reborn ip gets all of them again, in that order, so that its crash reorders nothing.

use alloc::vec;
use alloc::vec::Vec;
use eft_base::{PacketRef, RequestId};
use eft_channel::{Pool, Requests};
use eft_component::ReceivedFrame;

pub(crate) struct Received {
    frames: Requests<(PacketRef, ReceivedFrame)>,
    by_slot: Vec<Option<RequestId>>,
}

impl Received {
    /// `pool` has a different id in each life.
    pub fn new(pool: &Pool) -> Received {
        Received {
            frames: Requests::new(pool.slots(), pool.id().0.into()),
            by_slot: vec![None; pool.slots()],
        }
    }

    /// Remembers a frame that lies in a slot just allocated.
    pub fn insert(&mut self, packet: PacketRef, frame: ReceivedFrame) {
        // One entry per slot: the database has room because the slot was free.
        if let Ok(id) = self.frames.insert((packet, frame)) {
            self.by_slot[packet.slot as usize] = Some(id);
        }
    }

    /// ip gave the frame in `slot` back.
    pub fn remove(&mut self, slot: u32) {
        if let Some(id) = self.by_slot.get_mut(slot as usize).and_then(Option::take) {
            self.frames.remove(id);
        }
    }

    /// Begins a round. Returns at most `limit` frames that ip has had for a whole one: the message about one, or its receipt, may
    /// be lost.
    pub fn next_round(&mut self, limit: usize) -> Vec<(PacketRef, ReceivedFrame)> {
        let overdue = self.frames.next_round(limit);
        overdue.into_iter().filter_map(|id| self.frames.get(id).copied()).collect()
    }

    /// All of them are delivered again.
    pub fn renew(&mut self) {
        self.frames.renew();
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &(PacketRef, ReceivedFrame)> {
        self.frames.iter().map(|(_, f)| f)
    }

    pub fn len(&self) -> usize {
        self.frames.len()
    }
}
