//! The program's own action for SIGSYS. The kernel has our handler; the program's is stored here.

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

    /// Sets this action for SIGSYS in the kernel.
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

/// With every signal blocked, SIGSYS too, so that a handler cannot wait for the thread that it
/// interrupted. No code of the program runs meanwhile.
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

/// Returns the previous action.
pub fn set(action: Action) -> Action {
    with(|kept| core::mem::replace(kept, action))
}

/// The action for this SIGSYS; a one-shot action is then forgotten.
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
