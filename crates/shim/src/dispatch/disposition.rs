//! What the program wants done at SIGSYS. The kernel has our handler; here is what it would have.

use super::mask::{self, MASK_LEN};
use crate::sys;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// A `sigaction` as the kernel has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    pub handler: usize,
    pub flags: u64,
    pub restorer: usize,
    pub mask: u64,
}

impl Action {
    pub const DEFAULT: Action = Action { handler: libc::SIG_DFL, flags: 0, restorer: 0, mask: 0 };

    /// What the kernel does at SIGSYS.
    pub fn in_kernel() -> Action {
        let mut action = Action::DEFAULT;
        // SAFETY: the structure is ours.
        unsafe {
            let _ = sys::call(
                libc::SYS_rt_sigaction,
                [libc::SIGSYS as usize, 0, &raw mut action as usize, MASK_LEN, 0, 0],
            );
        }
        action
    }

    /// Makes the kernel do this at SIGSYS.
    pub fn put_in_kernel(&self) {
        // SAFETY: the structure is ours.
        unsafe {
            let _ = sys::call(
                libc::SYS_rt_sigaction,
                [libc::SIGSYS as usize, &raw const *self as usize, 0, MASK_LEN, 0, 0],
            );
        }
    }
}

struct Kept {
    held: AtomicBool,
    action: UnsafeCell<Action>,
}

// SAFETY: the action is reached only in `with`, by one thread at a time.
unsafe impl Sync for Kept {}

static KEPT: Kept = Kept { held: AtomicBool::new(false), action: UnsafeCell::new(Action::DEFAULT) };

/// With every signal blocked, SIGSYS too, so that a handler cannot come to wait for the thread that it
/// interrupted. Nothing of the program's runs meanwhile.
fn with<T>(work: impl FnOnce(&mut Action) -> T) -> T {
    let before = mask::change_mask(libc::SIG_SETMASK, u64::MAX);
    while KEPT.held.swap(true, Ordering::Acquire) {
        core::hint::spin_loop();
    }
    // SAFETY: `held` is ours.
    let result = work(unsafe { &mut *KEPT.action.get() });
    KEPT.held.store(false, Ordering::Release);
    mask::change_mask(libc::SIG_SETMASK, before);
    result
}

/// In a forked child, which has one thread: the holder, if any, was left behind.
pub fn reset_lock() {
    KEPT.held.store(false, Ordering::Release);
}

pub fn get() -> Action {
    with(|kept| *kept)
}

/// Gives what was there before.
pub fn set(action: Action) -> Action {
    with(|kept| core::mem::replace(kept, action))
}

/// What to do now at a SIGSYS; one that was to be done once is forgotten.
pub fn take() -> Action {
    with(|kept| {
        let action = *kept;
        if action.flags & libc::SA_RESETHAND as u32 as u64 != 0 {
            kept.handler = libc::SIG_DFL;
        }
        action
    })
}

#[cfg(test)]
mod tests;
