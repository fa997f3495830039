//! Copies that are compared with what was copied, by other instructions than those that copied: a processor, or a damaged
//! instruction of the routine that copies, may do anything, and nobody looks at the bytes behind this copy.

use eft_base::protection;

/// Bytes that are copied and compared at a time: both stay in the nearest cache.
const PIECE: usize = 4096;
/// Bytes that are compared at a time.
const BLOCK: usize = 64;

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    Well,
    /// Some of it was wrong, and was copied again in another way.
    Again,
    /// It is wrong even so, or somebody changes the bytes meanwhile.
    Wrongly,
}

/// Copies bytes.
///
/// # Safety
/// Both ranges are mapped, and do not overlap. Others may change them meanwhile.
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) -> Copied {
    // SAFETY: as the caller promises.
    unsafe {
        let quickly = |from, to, len| core::ptr::copy_nonoverlapping(from, to, len);
        copy_by(quickly, protection::is_on(), from, to, len)
    }
}

/// As [`copy`]; `quickly` is what is trusted least, and is trusted if nothing `is_compared`.
unsafe fn copy_by(
    quickly: impl Fn(*const u8, *mut u8, usize),
    is_compared: bool,
    from: *const u8,
    to: *mut u8,
    len: usize,
) -> Copied {
    let mut copied = Copied::Well;
    for at in (0..len).step_by(PIECE) {
        // SAFETY: `at` lies within both ranges, and so do as many bytes from there on.
        unsafe {
            let (from, to, len) = (from.add(at), to.add(at), PIECE.min(len - at));
            quickly(from, to, len);
            if is_compared && differs(from, to, len) {
                copied = Copied::Again;
                slowly(from, to, len);
                if differs(from, to, len) {
                    return Copied::Wrongly;
                }
            }
        }
    }
    copied
}

/// Byte by byte; never a call of the library, since each access is one.
#[cold]
#[inline(never)]
unsafe fn slowly(from: *const u8, to: *mut u8, len: usize) {
    for at in 0..len {
        // SAFETY: as the caller promises.
        unsafe { to.add(at).write_volatile(from.add(at).read_volatile()) };
    }
}

/// Whether two ranges differ.
#[inline(never)]
unsafe fn differs(one: *const u8, other: *const u8, len: usize) -> bool {
    let blocks = len / BLOCK;
    let mut wrong = [0u64; BLOCK / 8];
    for block in 0..blocks {
        for (word, wrong) in wrong.iter_mut().enumerate() {
            let at = block * BLOCK + word * 8;
            // SAFETY: the word lies within both ranges.
            *wrong |= unsafe { word_at(one, at) ^ word_at(other, at) };
        }
    }
    let mut rest = 0;
    for at in blocks * BLOCK..len {
        // SAFETY: as above.
        rest |= unsafe { *one.add(at) ^ *other.add(at) };
    }
    wrong.iter().fold(0, |all, word| all | word) != 0 || rest != 0
}

#[inline(always)]
unsafe fn word_at(from: *const u8, at: usize) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { from.add(at).cast::<u64>().read_unaligned() }
}

#[cfg(test)]
mod tests;
