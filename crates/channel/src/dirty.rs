//! Which sockets of a domain have changes for their transport.
//!
//! A three-level bitmap that many application threads set and one server takes. Three levels, because a
//! domain may have a hundred thousand sockets and a scan's cost must grow with the changed ones only.

use crate::segment::{OutOfBounds, Segment};
use core::iter;
use core::sync::atomic::{AtomicU64, Ordering};

/// Sockets per bitmap.
pub const DIRTY_SLOTS: usize = 64 * GROUPS * 64;
/// Words of the second level: each says which of 64 words of bits have any.
const GROUPS: usize = 64;
const GROUPS_AT: usize = 64;
const WORDS_AT: usize = GROUPS_AT + GROUPS * 8;
/// Bytes of a bitmap: the word that says which groups have any, in a line of its own, the groups, then the bits.
pub const DIRTY_LEN: usize = WORDS_AT + DIRTY_SLOTS / 8;

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

    fn at(&self, offset: usize) -> &AtomicU64 {
        self.segment.atomic_u64(self.offset + offset).expect("checked in new")
    }

    /// Which groups have marks.
    fn top(&self) -> &AtomicU64 {
        self.at(0)
    }

    /// Which words of a group have marks.
    fn group(&self, group: usize) -> &AtomicU64 {
        self.at(GROUPS_AT + group * 8)
    }

    fn word(&self, word: usize) -> &AtomicU64 {
        self.at(WORDS_AT + word * 8)
    }

    /// Application: socket `slot` has changes. Ring the doorbell after this.
    pub fn mark(&self, slot: usize) {
        if slot < DIRTY_SLOTS {
            let word = slot / 64;
            self.word(word).fetch_or(1 << (slot % 64), Ordering::AcqRel);
            self.group(word / 64).fetch_or(1 << (word % 64), Ordering::AcqRel);
            self.top().fetch_or(1 << (word / 64), Ordering::AcqRel);
        }
    }

    pub fn any(&self) -> bool {
        self.top().load(Ordering::Acquire) != 0
    }

    /// Server: takes marks in whole words until it has `limit` or more. The search begins at the word `*from` and wraps
    /// around; `*from` is then where the next search continues, so that no mark waits for ever. Returns how many it took.
    /// A mark set meanwhile is seen now or next time, never lost.
    pub fn take(&self, limit: usize, from: &mut usize, mut each: impl FnMut(usize)) -> usize {
        let mut taken = 0;
        while taken < limit
            && let Some(w) = self.next_word(*from)
        {
            *from = w + 1;
            self.group(w / 64).fetch_and(!(1 << (w % 64)), Ordering::AcqRel);
            let mut bits = self.word(w).swap(0, Ordering::AcqRel);
            while bits != 0 {
                each(w * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
                taken += 1;
            }
            self.settle(w / 64);
        }
        taken
    }

    /// Unmarks a group in the top word if it has no marks. A marking thread sets the group first: either that is seen
    /// here, or its mark in the top word comes after the one that is cleared.
    fn settle(&self, group: usize) {
        if self.group(group).load(Ordering::Acquire) == 0 {
            self.top().fetch_and(!(1 << group), Ordering::AcqRel);
            if self.group(group).load(Ordering::Acquire) != 0 {
                self.top().fetch_or(1 << group, Ordering::AcqRel);
            }
        }
    }

    /// The first word with marks from `from` on, in a round.
    fn next_word(&self, from: usize) -> Option<usize> {
        let (first, beginning) = (from / 64 % GROUPS, !0 << (from % 64));
        let top = self.top().load(Ordering::Acquire);
        if top == 0 {
            return None;
        }
        let later = (1..GROUPS).map(|i| ((first + i) % GROUPS, !0));
        let round = iter::once((first, beginning)).chain(later).chain(iter::once((first, !beginning)));
        round.filter(|(g, _)| top >> g & 1 != 0).find_map(|(g, mask)| {
            let words = self.group(g).load(Ordering::Acquire) & mask;
            if words == 0 {
                // Another round may have emptied it, or a program that marks at random.
                self.settle(g);
            }
            (words != 0).then(|| g * 64 + words.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests;
