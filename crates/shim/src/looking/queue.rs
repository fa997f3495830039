//! Slots in the order in which they are reported. One thread at a time uses a queue, but another may clear it: then what it has
//! is old, and is found to be.

use crate::sys;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

pub struct Queue {
    slots: AtomicPtr<AtomicU32>,
    /// A power of two, more than there are slots.
    len: AtomicUsize,
    first: AtomicUsize,
    end: AtomicUsize,
}

impl Queue {
    pub const fn new() -> Queue {
        Queue {
            slots: AtomicPtr::new(core::ptr::null_mut()),
            len: AtomicUsize::new(0),
            first: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
        }
    }

    /// Makes room, once. False: memory is out.
    pub fn install(&self, slots: usize) -> bool {
        if self.slots.load(Ordering::Acquire).is_null() {
            let len = (slots + 1).next_power_of_two();
            self.len.store(len, Ordering::Relaxed);
            self.slots.store(sys::map_anonymous(len * size_of::<AtomicU32>()).cast(), Ordering::Release);
        }
        !self.slots.load(Ordering::Acquire).is_null()
    }

    fn place(&self, at: usize) -> &AtomicU32 {
        let at = at & self.len.load(Ordering::Relaxed).wrapping_sub(1);
        // SAFETY: within the mapping, which is never unmapped, since only an installed queue is used.
        unsafe { &*self.slots.load(Ordering::Acquire).add(at) }
    }

    pub fn len(&self) -> usize {
        self.end.load(Ordering::Relaxed).wrapping_sub(self.first.load(Ordering::Relaxed))
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Without room it is dropped: a slot that left and came back without being reported may be queued twice.
    pub fn push(&self, slot: u32) {
        let end = self.end.load(Ordering::Relaxed);
        if self.len() == self.len.load(Ordering::Relaxed) {
            return;
        }
        self.place(end).store(slot, Ordering::Relaxed);
        self.end.store(end.wrapping_add(1), Ordering::Relaxed);
    }

    pub fn pop(&self) -> Option<u32> {
        let first = self.first.load(Ordering::Relaxed);
        if first == self.end.load(Ordering::Relaxed) {
            return None;
        }
        self.first.store(first.wrapping_add(1), Ordering::Relaxed);
        Some(self.place(first).load(Ordering::Relaxed))
    }

    pub fn clear(&self) {
        self.first.store(self.end.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_out_in_order() {
        let queue = Queue::new();
        assert!(queue.install(3) && queue.is_empty());
        for round in 0..10 {
            (0..3).for_each(|i| queue.push(round + i));
            assert_eq!(queue.len(), 3);
            assert_eq!([0; 3].map(|_| queue.pop()), [0, 1, 2].map(|i| Some(round + i)));
            assert_eq!(queue.pop(), None);
        }
        (0..9).for_each(|slot| queue.push(slot));
        assert_eq!(queue.len(), 4, "no more than there is room");
        queue.clear();
        assert_eq!((queue.pop(), queue.len()), (None, 0));
    }
}
