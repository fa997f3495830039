//! A pool of packet buffers: owned and written by one component, read by others.
//!
//! The free list and the generations are private to the owner. A slot is freed when the reply for
//! it comes, and only for a reference of its present generation, so a confused or hostile reader
//! cannot free a slot twice or free another's.

use crate::memory::PoolView;
use crate::segment::Segment;
use alloc::vec;
use alloc::vec::Vec;
use eft_base::{PacketRef, PoolId};

/// The owner's side of a pool.
pub struct Pool {
    id: PoolId,
    view: PoolView,
    free: Vec<u32>,
    generations: Vec<u16>,
    in_use: Vec<bool>,
}

impl Pool {
    /// Cuts `segment` into slots of `slot_size` bytes.
    pub fn new(id: PoolId, segment: Segment, slot_size: usize) -> Pool {
        let slots = segment.len() / slot_size.max(1);
        Pool {
            id,
            view: PoolView::new(segment, 0, slot_size, slots),
            free: (0..slots as u32).rev().collect(),
            generations: vec![0; slots],
            in_use: vec![false; slots],
        }
    }

    pub fn id(&self) -> PoolId {
        self.id
    }

    pub fn slot_size(&self) -> usize {
        self.view.slot_size
    }

    pub fn slots(&self) -> usize {
        self.view.slots
    }

    pub fn available(&self) -> usize {
        self.free.len()
    }

    pub fn view(&self) -> &PoolView {
        &self.view
    }

    /// Takes a slot; the reference covers all of it.
    pub fn allocate(&mut self) -> Option<PacketRef> {
        let slot = self.free.pop()?;
        let s = slot as usize;
        self.in_use[s] = true;
        self.generations[s] = self.generations[s].wrapping_add(1);
        Some(PacketRef {
            pool: self.id,
            generation: self.generations[s],
            slot,
            offset: 0,
            len: self.view.slot_size as u32,
        })
    }

    /// Whether `r` names a slot of this pool that is in use with that generation.
    pub fn owns(&self, r: PacketRef) -> bool {
        let s = r.slot as usize;
        r.pool == self.id && s < self.view.slots && self.in_use[s] && self.generations[s] == r.generation
    }

    /// Gives a slot back. False, and nothing happens, if the reference is stale or foreign.
    pub fn free(&mut self, r: PacketRef) -> bool {
        if !self.owns(r) {
            return false;
        }
        self.in_use[r.slot as usize] = false;
        self.free.push(r.slot);
        true
    }

    /// Copies bytes into an allocated slot at the reference's offset plus `at`.
    pub fn write(&self, r: PacketRef, at: usize, bytes: &[u8]) -> bool {
        if !self.owns(r) || at + bytes.len() > r.len as usize {
            return false;
        }
        match self.view.locate(r) {
            Some(offset) => self.view.segment.write(offset + at, bytes).is_ok(),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests;
