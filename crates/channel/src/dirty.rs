//! Which sockets of a family have news for their transport.
//!
//! A two-level bitmap that many application threads set and one server takes. Two levels, because a
//! family may have thousands of sockets and a scan must cost what changed, not what exists.

use crate::segment::{OutOfBounds, Segment};
use core::sync::atomic::{AtomicU64, Ordering};

/// Sockets per bitmap.
pub const DIRTY_SLOTS: usize = 64 * 64 * 2;
/// Bytes of a bitmap: two summary words in a line, then the bits.
pub const DIRTY_LEN: usize = 64 + DIRTY_SLOTS / 8;

/// A view of one bitmap.
#[derive(Clone)]
pub struct Dirty {
    segment: Segment,
    offset: usize,
}

impl Dirty {
    pub fn new(segment: Segment, offset: usize) -> Result<Dirty, OutOfBounds> {
        segment.range(offset, DIRTY_LEN)?;
        segment.atomic_u64(offset)?;
        Ok(Dirty { segment, offset })
    }

    fn summary(&self, i: usize) -> &AtomicU64 {
        self.segment.atomic_u64(self.offset + i * 8).expect("checked in new")
    }

    fn word(&self, i: usize) -> &AtomicU64 {
        self.segment.atomic_u64(self.offset + 64 + i * 8).expect("checked in new")
    }

    /// Application: socket `slot` has news. Ring the doorbell after.
    pub fn mark(&self, slot: usize) {
        if slot < DIRTY_SLOTS {
            let word = slot / 64;
            self.word(word).fetch_or(1 << (slot % 64), Ordering::AcqRel);
            self.summary(word / 64).fetch_or(1 << (word % 64), Ordering::AcqRel);
        }
    }

    pub fn any(&self) -> bool {
        (0..2).any(|i| self.summary(i).load(Ordering::Acquire) != 0)
    }

    /// Server: takes all marks. A mark set meanwhile is seen now or next time, never lost.
    pub fn take(&self, mut each: impl FnMut(usize)) {
        for s in 0..2 {
            if self.summary(s).load(Ordering::Acquire) == 0 {
                continue;
            }
            let mut words = self.summary(s).swap(0, Ordering::AcqRel);
            while words != 0 {
                let w = s * 64 + words.trailing_zeros() as usize;
                words &= words - 1;
                let mut bits = self.word(w).swap(0, Ordering::AcqRel);
                while bits != 0 {
                    each(w * 64 + bits.trailing_zeros() as usize);
                    bits &= bits - 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_once() {
        let d = Dirty::new(Segment::heap(DIRTY_LEN), 0).unwrap();
        for s in [0, 63, 64, 4095, 4096, 8191] {
            d.mark(s);
            d.mark(s);
        }
        d.mark(DIRTY_SLOTS);
        let mut seen = alloc::vec::Vec::new();
        d.take(|s| seen.push(s));
        assert_eq!(seen, [0, 63, 64, 4095, 4096, 8191]);
        assert!(!d.any());
        d.take(|_| panic!("taken twice"));
    }
}
