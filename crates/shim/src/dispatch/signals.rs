//! SIGSYS, kept out of masks; and the calls that concern it, when they are made by number.

use super::PR_SET_SYSCALL_USER_DISPATCH;
use super::disposition;
pub use super::disposition::Action;
pub use super::mask::*;
use crate::sys::{self, Errno};
use core::ffi::{c_int, c_long};

/// Stores the program's action for SIGSYS, if `new` is given; returns its previous one.
pub fn action(new: Option<Action>) -> Action {
    match new {
        Some(action) => disposition::set(action),
        None => disposition::get(),
    }
}

/// Where a call has a mask that holds while it waits.
#[derive(Debug, PartialEq, Eq)]
enum Waiting {
    /// This argument points to it.
    Mask(usize),
    /// This argument points to its address and length.
    Pair(usize),
}

fn waiting(number: c_long) -> Option<Waiting> {
    match number {
        libc::SYS_rt_sigsuspend => Some(Waiting::Mask(0)),
        libc::SYS_ppoll => Some(Waiting::Mask(3)),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Some(Waiting::Mask(4)),
        libc::SYS_pselect6 => Some(Waiting::Pair(5)),
        _ => None,
    }
}

/// Handles a call that would block SIGSYS, replace our handler or switch dispatch off. `None`: it is
/// another call. The result is the kernel's.
///
/// # Safety
/// As the system call says.
pub unsafe fn by_number(number: c_long, args: [usize; 6]) -> Option<isize> {
    if !super::is_armed() {
        return None;
    }
    // SAFETY: by the caller.
    unsafe {
        match number {
            libc::SYS_rt_sigprocmask => Some(set_mask(args)),
            libc::SYS_rt_sigaction => Some(set_action(args)),
            libc::SYS_prctl if args[0] as c_int == PR_SET_SYSCALL_USER_DISPATCH => {
                Some(Errno(libc::EINVAL).in_kernel())
            }
            _ => waiting(number).map(|place| wait(number, args, place)),
        }
    }
}

// The kernel reads the program's structures, so that bad addresses give EFAULT, and its state is corrected
// afterwards.

unsafe fn set_mask(args: [usize; 6]) -> isize {
    // SAFETY: by the caller.
    let done = unsafe { sys::raw(libc::SYS_rt_sigprocmask, args) };
    unblock();
    done
}

unsafe fn set_action(args: [usize; 6]) -> isize {
    let [signal, new, old, len, ..] = args;
    let mut now = Action::DEFAULT;
    // SAFETY: by the caller; what is read and corrected is ours.
    unsafe {
        if signal == libc::SIGSYS as usize && len == MASK_LEN {
            let new = (new as *const Action).as_ref().copied();
            let before = action(new);
            if let Some(old) = (old as *mut Action).as_mut() {
                *old = before;
            }
            return 0;
        }
        let done = sys::raw(libc::SYS_rt_sigaction, args);
        if done == 0
            && new != 0
            && sys::call(libc::SYS_rt_sigaction, [signal, 0, &raw mut now as usize, MASK_LEN, 0, 0]).is_ok()
            && let Some(mask) = stripped(now.mask)
        {
            now.mask = mask;
            let _ = sys::call(libc::SYS_rt_sigaction, [signal, &raw const now as usize, 0, MASK_LEN, 0, 0]);
        }
        done
    }
}

unsafe fn wait(number: c_long, mut args: [usize; 6], place: Waiting) -> isize {
    let mut pair = [0usize; 2];
    let mask;
    // SAFETY: by the caller; the copies live for the call.
    unsafe {
        let given = match place {
            Waiting::Mask(i) => args[i],
            Waiting::Pair(i) if args[i] != 0 => {
                pair = (args[i] as *const [usize; 2]).read_unaligned();
                pair[0]
            }
            Waiting::Pair(_) => 0,
        };
        if given != 0
            && let Some(without) = stripped((given as *const u64).read_unaligned())
        {
            mask = without;
            match place {
                Waiting::Mask(i) => args[i] = &raw const mask as usize,
                Waiting::Pair(i) => {
                    pair[0] = &raw const mask as usize;
                    args[i] = &raw const pair as usize;
                }
            }
        }
        sys::raw(number, args)
    }
}

#[cfg(test)]
mod tests;
