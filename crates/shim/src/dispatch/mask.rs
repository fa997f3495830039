//! SIGSYS, kept out of masks.

use crate::sys;
use core::ffi::c_int;

/// Bytes of a mask in the kernel.
pub const MASK_LEN: usize = 8;
/// SIGSYS in a mask.
pub const BIT: u64 = 1 << (libc::SIGSYS - 1);

/// The mask without it, if it is there.
pub fn stripped(mask: u64) -> Option<u64> {
    (mask & BIT != 0).then_some(mask & !BIT)
}

/// Changes this thread's mask; gives what it was.
pub fn change_mask(how: c_int, mask: u64) -> u64 {
    let mut before = 0u64;
    let args = [how as usize, &raw const mask as usize, &raw mut before as usize, MASK_LEN, 0, 0];
    // SAFETY: both masks are ours.
    let _ = unsafe { sys::call(libc::SYS_rt_sigprocmask, args) };
    before
}

/// Makes sure that this thread can receive SIGSYS.
pub fn unblock() {
    change_mask(libc::SIG_UNBLOCK, BIT);
}

/// Blocks all signals, SIGSYS too: no code of the program may run until they are unblocked.
pub fn block_all() {
    change_mask(libc::SIG_SETMASK, u64::MAX);
}

/// This thread's mask.
#[cfg(not(test))]
pub fn current() -> u64 {
    change_mask(libc::SIG_BLOCK, 0)
}
