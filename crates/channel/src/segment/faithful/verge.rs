//! What lies beside the place of a copy. A damaged routine can copy all that it should, and write beside it: decrement a byte
//! before it, say, where an address was a memory operand's. Bytes that a stream's program has not taken yet lie there.

use super::compare::differs;
use super::slowly;
use core::mem::MaybeUninit;

/// Bytes on each side: an address whose lowest byte alone is wrong stays within them.
const LEN: usize = 256;

/// Eight bytes at any address.
#[derive(Clone, Copy)]
#[repr(C, packed)]
#[allow(dead_code, reason = "its bytes are compared")]
struct Word(u64);

/// Bytes beside a copy, as they were before it.
pub struct Verge {
    at: *mut u8,
    len: usize,
    bytes: [MaybeUninit<Word>; LEN / 8],
}

impl Verge {
    /// What lies before `to`, where `margin` bytes are nobody else's.
    ///
    /// # Safety
    /// They are mapped, also for the calls below.
    #[inline(always)]
    pub unsafe fn before(to: *mut u8, margin: usize) -> Verge {
        let len = margin.min(LEN) / 8 * 8;
        // SAFETY: as the caller promises.
        Verge { at: unsafe { to.sub(len) }, len, bytes: [MaybeUninit::uninit(); LEN / 8] }
    }

    /// The same from `end` on.
    ///
    /// # Safety
    /// As [`Verge::before`].
    #[inline(always)]
    pub unsafe fn behind(end: *mut u8, margin: usize) -> Verge {
        Verge { at: end, len: margin.min(LEN) / 8 * 8, bytes: [MaybeUninit::uninit(); LEN / 8] }
    }

    /// Notes how it is. Not when it is made, since what is made is moved; and never by a call of the library, which may be what is
    /// damaged.
    ///
    /// # Safety
    /// As [`Verge::before`].
    #[inline]
    pub unsafe fn note(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if self.len == LEN && eft_base::processor::has_avx2() {
            // SAFETY: both are that long; the processor was asked.
            return unsafe { wide::copy(self.at, self.bytes.as_mut_ptr().cast()) };
        }
        for (n, word) in self.bytes[..self.len / 8].iter_mut().enumerate() {
            // SAFETY: the word lies within the bytes that the caller promises.
            word.write(unsafe { self.at.cast::<Word>().add(n).read_volatile() });
        }
    }

    /// # Safety
    /// As [`Verge::before`].
    #[inline]
    pub unsafe fn has_changed(&self) -> bool {
        // SAFETY: as many bytes were noted, and are mapped.
        unsafe { differs(self.bytes.as_ptr().cast(), self.at, self.len) }
    }

    /// # Safety
    /// As [`Verge::before`].
    pub unsafe fn put_back(&self) {
        // SAFETY: as above.
        unsafe { slowly(self.bytes.as_ptr().cast(), self.at, self.len) }
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::LEN;
    use core::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};

    /// Copies all of a verge. Without a loop, of which the compiler would make a call of the library.
    #[target_feature(enable = "avx2")]
    pub unsafe fn copy(from: *const u8, to: *mut u8) {
        const EACH: usize = size_of::<__m256i>();
        const { assert!(LEN == 8 * EACH) };
        let copy = |n: usize| {
            // SAFETY: as many bytes are mapped on both sides, as the caller promises.
            unsafe {
                _mm256_storeu_si256(to.add(n * EACH).cast(), _mm256_loadu_si256(from.add(n * EACH).cast()))
            }
        };
        copy(0);
        copy(1);
        copy(2);
        copy(3);
        copy(4);
        copy(5);
        copy(6);
        copy(7);
    }
}
