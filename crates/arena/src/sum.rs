//! The checksum of an item.
//!
//! It is computed twice for every item that a turn changes: before the change, while the image is taken, and after it. It goes
//! over four words at a time where the processor can do that. A load of four words that were just written waits until they
//! have left the store buffer; that takes less than going over them one by one. Both ways give the same sum.

mod flip;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod wide;

use crate::Plain;

pub(crate) use flip::{Flip, find};

pub(crate) const SUM_LEN: usize = size_of::<Sum>();

pub(crate) type Sum = [u64; 2];

/// The same, as it is handed over in registers: an array would go through memory.
pub(crate) type Pair = (u64, u64);

/// Words of a step. A change of this number changes every checksum.
const LANES: usize = 4;
/// By how many bits each of the two sums of a lane is rotated, times the lane's index: so two lanes that change places change
/// the checksum, and a changed bit of one lane changes it unlike any bit of another.
const TURNS: [u32; 2] = [15, 23];
/// The same with the first kind of sums, which does not say in which lane a bit has changed.
const TURNS_1: [u32; 2] = [15, 15];
/// The checksum of an item without words: zeroed memory must not have the checksum zero.
#[inline]
const fn nothing(words: usize) -> Sum {
    [words as u64 | 1 << 63, !0]
}

/// Two sums over lanes; the second sums up the first. A changed bit always shows in the first sum, a changed order in
/// the second. All lanes can be added at once. `step` is what the second sum takes of the first.
#[inline(always)]
fn sum_lanes(words: &[u64], turns: [u32; 2], step: impl Fn(u64) -> u64) -> Sum {
    let (mut a, mut b) = ([0u64; LANES], [0u64; LANES]);
    let (chunks, rest) = words.as_chunks::<LANES>();
    for chunk in chunks {
        for i in 0..LANES {
            a[i] = a[i].wrapping_add(chunk[i]);
            b[i] = b[i].wrapping_add(step(a[i]));
        }
    }
    for (i, word) in rest.iter().enumerate() {
        a[i] = a[i].wrapping_add(*word);
        b[i] = b[i].wrapping_add(step(a[i]));
    }
    let mut sums = nothing(words.len());
    for i in 0..LANES {
        sums[0] = sums[0].wrapping_add(a[i].rotate_left(i as u32 * turns[0]));
        sums[1] = sums[1].wrapping_add(b[i].rotate_left(i as u32 * turns[1]));
    }
    sums
}

/// How the items of a layout are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// As eft 0.1 did at first. Damage is detected.
    First,
    /// A single changed bit is found, too.
    Second,
}

impl Sums {
    #[inline(always)]
    pub(crate) fn of_words(self, words: &[u64]) -> Sum {
        match self {
            Sums::First => sum_lanes(words, TURNS_1, |a| a),
            // With its halves exchanged, too: so the place of a bit shows at whichever end of a word it is.
            Sums::Second => sum_lanes(words, TURNS, |a| a.wrapping_add(a.rotate_left(32))),
        }
    }

    #[inline(always)]
    pub(crate) fn of<T: Plain>(self, item: &T) -> Sum {
        self.of_words(words(item))
    }
}

/// How an item is summed and copied on this processor.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    sums: Sums,
    /// Whether the processor has what [`wide`] needs.
    #[cfg(target_arch = "x86_64")]
    wide: bool,
}

impl Way {
    pub fn best(sums: Sums) -> Way {
        Way {
            sums,
            #[cfg(target_arch = "x86_64")]
            wide: sums == Sums::Second && eft_base::processor::has_avx2(),
        }
    }

    /// The checksum of an item.
    #[inline(always)]
    pub fn sum<T: Plain>(self, item: &T) -> Pair {
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            // SAFETY: `best` has asked the processor.
            return unsafe { wide::sum(item) };
        }
        self.by_words(item)
    }

    /// Apart, so that whoever does not need it has no registers to save for it.
    #[inline(never)]
    fn by_words<T: Plain>(self, item: &T) -> Pair {
        self.sums.of(item).into()
    }

    /// The checksum of an item; `to` becomes a copy of the words that were summed.
    #[inline(always)]
    pub fn sum_and_copy<T: Plain>(self, item: &T, to: &mut T) -> Pair {
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            // SAFETY: `best` has asked the processor.
            return unsafe { wide::sum_and_copy(item, to) };
        }
        *to = *item;
        self.by_words(item)
    }
}

/// Words of an item.
const fn len<T: Plain>() -> usize {
    assert!(align_of::<T>() <= 8 && size_of::<T>().is_multiple_of(8));
    size_of::<T>() / 8
}

pub(crate) fn words<T: Plain>(item: &T) -> &[u64] {
    let first = (&raw const *item).cast::<u64>();
    assert!(first.is_aligned(), "an item lies at a word");
    // SAFETY: the item has this many words (`len`), is plain data (`Plain`), and begins at a word (checked).
    unsafe { core::slice::from_raw_parts(first, const { len::<T>() }) }
}

pub(crate) fn words_mut<T: Plain>(item: &mut T) -> &mut [u64] {
    let first = (&raw mut *item).cast::<u64>();
    assert!(first.is_aligned(), "an item lies at a word");
    // SAFETY: as above; any words are an item (`Plain`), and the item is borrowed exclusively.
    unsafe { core::slice::from_raw_parts_mut(first, const { len::<T>() }) }
}
