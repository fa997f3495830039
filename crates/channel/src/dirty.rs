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

    /// Server: takes marks, those of whole words until it has `limit` or more; the search begins at the word `*from` and
    /// goes round, and the next one goes on there, so that nobody's mark waits for ever. Returns how many it took. A mark
    /// set meanwhile is seen now or next time, never lost.
    pub fn take(&self, limit: usize, from: &mut usize, mut each: impl FnMut(usize)) -> usize {
        let mut taken = 0;
        while taken < limit
            && let Some(w) = self.next_word(*from)
        {
            *from = w + 1;
            self.summary(w / 64).fetch_and(!(1 << (w % 64)), Ordering::AcqRel);
            let mut bits = self.word(w).swap(0, Ordering::AcqRel);
            while bits != 0 {
                each(w * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
                taken += 1;
            }
        }
        taken
    }

    /// The first word with marks from `from` on, in a round.
    fn next_word(&self, from: usize) -> Option<usize> {
        let (half, bit) = (from / 64 % 2, from % 64);
        let beginning = !0 << bit;
        [(half, beginning), (1 - half, !0), (half, !beginning)].into_iter().find_map(|(s, mask)| {
            let words = self.summary(s).load(Ordering::Acquire) & mask;
            (words != 0).then(|| s * 64 + words.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests;
