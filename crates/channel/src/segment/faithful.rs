//! Copies that are compared with what was copied, by other instructions than those that copied: a processor, or a damaged
//! instruction of the routine that copies, may do anything, and nobody looks at the bytes behind this copy.

mod compare;
mod verge;

use compare::differs;
use eft_base::protection;
use verge::Verge;

/// Bytes that are copied and compared at a time: both stay in the nearest cache.
const PIECE: usize = 4096;

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    Well,
    /// Some of it was wrong, and was copied again in another way; or bytes beside it had changed, and were put right.
    Again,
    /// It is wrong even so, or somebody changes the bytes meanwhile.
    Wrongly,
}

/// Bytes before and behind the place of a copy that nobody else changes meanwhile.
#[derive(Clone, Copy)]
pub struct Margins {
    pub before: usize,
    pub behind: usize,
}

/// Copies bytes.
///
/// # Safety
/// Both ranges are mapped, and do not overlap. Others may change them meanwhile. The margins of `to` are mapped, too.
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize, margins: Margins) -> Copied {
    // SAFETY: as the caller promises.
    unsafe {
        let quickly = |from, to, len| core::ptr::copy_nonoverlapping(from, to, len);
        copy_by(quickly, protection::is_on(), from, to, len, margins)
    }
}

/// As [`copy`]; `quickly` is what is trusted least, and is trusted if nothing `is_compared`.
unsafe fn copy_by(
    quickly: impl Fn(*const u8, *mut u8, usize),
    is_compared: bool,
    from: *const u8,
    to: *mut u8,
    len: usize,
    margins: Margins,
) -> Copied {
    if !is_compared {
        quickly(from, to, len);
    }
    if !is_compared || len == 0 {
        return Copied::Well;
    }
    // SAFETY: as the caller promises.
    let (mut before, mut behind) =
        unsafe { (Verge::before(to, margins.before), Verge::behind(to.add(len), margins.behind)) };
    // SAFETY: as above.
    unsafe {
        before.note();
        behind.note();
    }
    let mut copied = Copied::Well;
    for at in (0..len).step_by(PIECE) {
        // SAFETY: `at` lies within both ranges, and so do as many bytes from there on.
        unsafe {
            let (from, to, len) = (from.add(at), to.add(at), PIECE.min(len - at));
            quickly(from, to, len);
            if differs(from, to, len) {
                copied = Copied::Again;
                slowly(from, to, len);
                if differs(from, to, len) {
                    return Copied::Wrongly;
                }
            }
        }
    }
    for verge in [&before, &behind] {
        // SAFETY: as above.
        if unsafe { verge.has_changed() } {
            copied = Copied::Again;
            // SAFETY: as above.
            unsafe { verge.put_back() };
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

#[cfg(test)]
mod tests;
