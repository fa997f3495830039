//! The checksum of an item.
//!
//! It is computed twice for every item that a turn changes. Before the change, while the image is taken, the sum goes
//! over four words at a time where the processor can do that. After the change it goes word by word: words that were
//! just written are still in the store buffer, and a load of several would wait until they are in the cache. Both ways
//! give the same sum.

#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod wide;

use crate::Plain;

pub(crate) const SUM_LEN: usize = size_of::<Sum>();

pub(crate) type Sum = [u64; 2];

/// Words of a step. A change of this number changes every checksum.
const LANES: usize = 4;
/// By how many bits the sum of each lane is rotated, so that two lanes that change places change the checksum.
const TURN: u32 = 15;
/// The checksum of an item without words: zeroed memory must not have the checksum zero.
const fn nothing(words: usize) -> Sum {
    [words as u64 | 1 << 63, !0]
}

/// Two sums over lanes; the second sums up the first. A changed bit always shows in the first sum, a changed order in
/// the second. Only additions are used, so that all lanes can be added at once.
#[inline(always)]
pub(crate) fn sum_words(words: &[u64]) -> Sum {
    let (mut a, mut b) = ([0u64; LANES], [0u64; LANES]);
    let (chunks, rest) = words.as_chunks::<LANES>();
    for chunk in chunks {
        for i in 0..LANES {
            a[i] = a[i].wrapping_add(chunk[i]);
            b[i] = b[i].wrapping_add(a[i]);
        }
    }
    for (i, word) in rest.iter().enumerate() {
        a[i] = a[i].wrapping_add(*word);
        b[i] = b[i].wrapping_add(a[i]);
    }
    let mut sums = nothing(words.len());
    for i in 0..LANES {
        let turn = i as u32 * TURN;
        sums[0] = sums[0].wrapping_add(a[i].rotate_left(turn));
        sums[1] = sums[1].wrapping_add(b[i].rotate_left(turn));
    }
    sums
}

/// The checksum of an item.
#[inline(always)]
pub(crate) fn sum<T: Plain>(item: &T) -> Sum {
    sum_words(words(item))
}

/// How an item is summed and copied on this processor.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    /// Whether the processor has what [`wide`] needs.
    #[cfg(target_arch = "x86_64")]
    wide: bool,
}

impl Way {
    pub fn best() -> Way {
        Way {
            #[cfg(target_arch = "x86_64")]
            wide: wide::is_there(),
        }
    }

    /// The checksum of an item; `to` becomes a copy of the words that were summed.
    #[inline(always)]
    pub fn sum_and_copy<T: Plain>(self, item: &T, to: &mut T) -> Sum {
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            // SAFETY: `best` has asked the processor.
            return unsafe { wide::sum_and_copy(item, to) }.into();
        }
        *to = *item;
        sum(item)
    }
}

/// Words of an item.
const fn len<T: Plain>() -> usize {
    assert!(align_of::<T>() <= 8 && size_of::<T>().is_multiple_of(8));
    size_of::<T>() / 8
}

fn words<T: Plain>(item: &T) -> &[u64] {
    let first = (&raw const *item).cast::<u64>();
    assert!(first.is_aligned(), "an item lies at a word");
    // SAFETY: the item has this many words (`len`), is plain data (`Plain`), and begins at a word (checked).
    unsafe { core::slice::from_raw_parts(first, const { len::<T>() }) }
}
