//! The segments that a component has mapped, by pool id.
//!
//! Every [`PacketRef`] that comes in a message is resolved here: unknown pool, slot or range gives
//! `None`, never an access outside the mapping.

use crate::segment::Segment;
use alloc::vec::Vec;
use core::cell::Cell;
use eft_base::{PacketRef, PoolId, protection};

/// How a segment is cut into slots.
#[derive(Clone)]
pub struct PoolView {
    pub segment: Segment,
    /// Where slot 0 begins.
    pub base: usize,
    pub slot_size: usize,
    pub slots: usize,
    /// Of all that.
    sum: usize,
}

impl PoolView {
    pub fn new(segment: Segment, base: usize, slot_size: usize, slots: usize) -> PoolView {
        let mut view = PoolView { segment, base, slot_size, slots, sum: 0 };
        view.sum = view.computed();
        view
    }

    fn computed(&self) -> usize {
        self.segment.sum_of_place([self.base, self.slot_size, self.slots])
    }

    /// The offset of the referenced bytes in the segment, if they lie within one slot. Panics if this view was changed: a server ends
    /// then, and its successor begins with a right one.
    pub fn locate(&self, r: PacketRef) -> Option<usize> {
        assert!(
            !protection::is_on() || self.sum == self.computed(),
            "where a pool of packets lies was changed"
        );
        let end = (r.offset as usize).checked_add(r.len as usize)?;
        if r.slot as usize >= self.slots || end > self.slot_size {
            return None;
        }
        Some(self.base + r.slot as usize * self.slot_size + r.offset as usize)
    }
}

/// All mapped pools of one component.
#[derive(Default)]
pub struct Memory {
    pools: Vec<Option<PoolView>>,
    /// The last unknown pool that a message referred to.
    missed: Cell<Option<PoolId>>,
}

impl Memory {
    pub fn new() -> Memory {
        Memory::default()
    }

    pub fn insert(&mut self, id: PoolId, view: PoolView) {
        let i = id.0 as usize;
        if self.pools.len() <= i {
            self.pools.resize_with(i + 1, || None);
        }
        self.pools[i] = Some(view);
    }

    /// Forgets a pool; the mapping goes when its last user drops it.
    pub fn remove(&mut self, id: PoolId) -> Option<PoolView> {
        self.pools.get_mut(id.0 as usize)?.take()
    }

    pub fn view(&self, id: PoolId) -> Option<&PoolView> {
        self.pools.get(id.0 as usize)?.as_ref()
    }

    /// Segment and offset of the referenced bytes.
    pub fn resolve(&self, r: PacketRef) -> Option<(&Segment, usize)> {
        let view = self.need(r.pool)?;
        Some((&view.segment, view.locate(r)?))
    }

    /// A pool to which a message refers; noted if it is unknown.
    pub fn need(&self, id: PoolId) -> Option<&PoolView> {
        let view = self.view(id);
        if view.is_none() {
            self.missed.set(Some(id));
        }
        view
    }

    /// The last unknown pool that a message referred to since the last call.
    pub fn take_missed(&self) -> Option<PoolId> {
        self.missed.take()
    }

    /// Copies the first `to.len()` referenced bytes out. `None` if the reference is bad or shorter.
    pub fn read(&self, r: PacketRef, to: &mut [u8]) -> Option<()> {
        if (r.len as usize) < to.len() {
            return None;
        }
        let (segment, offset) = self.resolve(r)?;
        segment.read(offset, to).ok()
    }

    /// Copies all referenced bytes into `to` at `to_offset`.
    pub fn copy(&self, r: PacketRef, to: &Segment, to_offset: usize) -> Option<()> {
        let (segment, offset) = self.resolve(r)?;
        segment.copy_to(offset, to, to_offset, r.len as usize).ok()
    }

    /// Copies a value of plain bytes out.
    pub fn read_value<T: zerocopy::FromBytes + zerocopy::IntoBytes + zerocopy::FromZeros>(
        &self,
        r: PacketRef,
    ) -> Option<T> {
        let mut value = T::new_zeroed();
        // `as_mut_bytes` needs no Immutable here because we hold the value exclusively.
        self.read(r, value.as_mut_bytes())?;
        Some(value)
    }
}

#[cfg(test)]
mod tests;
