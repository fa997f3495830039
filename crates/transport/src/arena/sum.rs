//! The checksum of an item.

pub(super) const SUM_LEN: usize = size_of::<Sum>();

pub(super) type Sum = [u64; 2];

/// Two sums over lanes, the second of the first: a changed bit always shows in the first, a change of order in the
/// second. Additions only, so that a compiler makes vectors of them.
#[inline(always)]
pub(super) fn sum(words: &[u64]) -> Sum {
    const LANES: usize = 4;
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
    // Zeroed memory must not have the sum zero.
    let mut sums = [words.len() as u64 | 1 << 63, !0];
    for i in 0..LANES {
        let turn = i as u32 * 15;
        sums[0] = sums[0].wrapping_add(a[i].rotate_left(turn));
        sums[1] = sums[1].wrapping_add(b[i].rotate_left(turn));
    }
    sums
}
