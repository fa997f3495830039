//! Slots whose marks a thread takes, put into the order in which their input came.

use crate::sys;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Only the thread that waits in the set uses it.
pub struct Arrived {
    /// Of each slot: how far its age is from the largest, above the slot.
    all: AtomicPtr<u64>,
    len: AtomicUsize,
    room: AtomicUsize,
}

impl Arrived {
    pub const fn new() -> Arrived {
        Arrived {
            all: AtomicPtr::new(core::ptr::null_mut()),
            len: AtomicUsize::new(0),
            room: AtomicUsize::new(0),
        }
    }

    /// Makes room, once. False: memory is out.
    pub fn install(&self, slots: usize) -> bool {
        if self.all.load(Ordering::Acquire).is_null() {
            self.room.store(slots, Ordering::Relaxed);
            self.all.store(sys::map_anonymous(slots * size_of::<u64>()).cast(), Ordering::Release);
        }
        !self.all.load(Ordering::Acquire).is_null()
    }

    /// Without room it is dropped, as in the queue.
    pub fn push(&self, age: i32, slot: u32) {
        let len = self.len.load(Ordering::Relaxed);
        if len == self.room.load(Ordering::Relaxed) {
            return;
        }
        // The largest first, also among numbers below zero.
        let key = i32::MAX.wrapping_sub(age) as u32;
        // SAFETY: within the mapping, which is never unmapped; no other thread uses it.
        unsafe { *self.all.load(Ordering::Acquire).add(len) = u64::from(key) << 32 | u64::from(slot) };
        self.len.store(len + 1, Ordering::Relaxed);
    }

    /// Takes all, those that have waited longest first. Slots of one age are taken by number.
    pub fn take_in_order(&self, each: impl FnMut(u32)) {
        let len = self.len.swap(0, Ordering::Relaxed);
        if len == 0 {
            return;
        }
        // SAFETY: so many were pushed; no other thread uses them.
        let all = unsafe { core::slice::from_raw_parts_mut(self.all.load(Ordering::Acquire), len) };
        all.sort_unstable();
        all.iter().map(|entry| *entry as u32).for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(arrived: &Arrived) -> Vec<u32> {
        let mut all = Vec::new();
        arrived.take_in_order(|slot| all.push(slot));
        all
    }

    #[test]
    fn who_waited_longest_is_taken_first() {
        let arrived = Arrived::new();
        assert!(arrived.install(4) && taken(&arrived).is_empty());
        for (age, slot) in [(2, 10), (i32::MAX, 12), (2, 9), (1, 0)] {
            arrived.push(age, slot);
        }
        arrived.push(7, 7);
        assert_eq!(taken(&arrived), [12, 9, 10, 0], "and no more than there is room");
        arrived.push(1, 3);
        assert_eq!(taken(&arrived), [3]);
        for (age, slot) in [(-3, 1), (0, 4), (i32::MIN, 5), (-1, 2)] {
            arrived.push(age, slot);
        }
        assert_eq!(taken(&arrived), [4, 2, 1, 5], "what came while they were counted comes last");
    }
}
