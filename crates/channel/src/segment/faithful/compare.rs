//! Comparison of two ranges, of which others may change bytes meanwhile.

/// Whether two ranges differ.
///
/// # Safety
/// Both are mapped and have `len` bytes.
#[inline]
pub unsafe fn differs(one: *const u8, other: *const u8, len: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    if eft_base::processor::has_avx2() {
        // SAFETY: as the caller promises; the processor was asked.
        return unsafe { wide::differs(one, other, len) };
    }
    // SAFETY: as the caller promises.
    unsafe { differs_by_words(one, other, len) }
}

/// The same with what every processor has.
unsafe fn differs_by_words(one: *const u8, other: *const u8, len: usize) -> bool {
    let words = len / 8;
    let mut wrong = 0;
    for word in 0..words {
        // SAFETY: the word lies within both ranges.
        wrong |= unsafe { word_at(one, word * 8) ^ word_at(other, word * 8) };
    }
    for at in words * 8..len {
        // SAFETY: as above.
        wrong |= u64::from(unsafe { *one.add(at) ^ *other.add(at) });
    }
    wrong != 0
}

#[inline(always)]
unsafe fn word_at(from: *const u8, at: usize) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { from.add(at).cast::<u64>().read_unaligned() }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::differs_by_words;
    use core::arch::x86_64::{
        __m256i, _mm256_loadu_si256, _mm256_or_si256, _mm256_setzero_si256, _mm256_testz_si256,
        _mm256_xor_si256,
    };

    /// Registers that are compared at a time: the compiler makes gathers of what is written as words.
    const AT_A_TIME: usize = 4;
    const BLOCK: usize = AT_A_TIME * size_of::<__m256i>();

    #[target_feature(enable = "avx2")]
    pub unsafe fn differs(one: *const u8, other: *const u8, len: usize) -> bool {
        // No closures here: what the library makes of them has no such registers, and calls each.
        let mut wrong = [_mm256_setzero_si256(); AT_A_TIME];
        let blocks = len / BLOCK;
        for block in 0..blocks {
            for (n, wrong) in wrong.iter_mut().enumerate() {
                let at = block * BLOCK + n * size_of::<__m256i>();
                // SAFETY: these bytes lie within both ranges, as the caller promises.
                let a = unsafe { _mm256_loadu_si256(one.add(at).cast()) };
                // SAFETY: as above.
                let b = unsafe { _mm256_loadu_si256(other.add(at).cast()) };
                *wrong = _mm256_or_si256(*wrong, _mm256_xor_si256(a, b));
            }
        }
        let [a, b, c, d] = wrong;
        let all = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
        let done = blocks * BLOCK;
        // SAFETY: as above.
        _mm256_testz_si256(all, all) == 0
            || unsafe { differs_by_words(one.add(done), other.add(done), len - done) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    type Differs = unsafe fn(*const u8, *const u8, usize) -> bool;

    #[test]
    fn ranges_that_differ_in_one_bit_differ() {
        for differs in [differs as Differs, differs_by_words] {
            let one: Vec<u8> = (0..700).map(|i| (i * 7) as u8).collect();
            for bit in 0..700 * 8 {
                let mut other = one.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                for len in [700, bit / 8 + 1] {
                    // SAFETY: both are that long.
                    assert!(unsafe { differs(one.as_ptr(), other.as_ptr(), len) }, "{bit}");
                }
                // SAFETY: as above.
                assert!(!unsafe { differs(one.as_ptr(), other.as_ptr(), bit / 8) }, "not beyond the end");
            }
        }
    }
}
