//! The stack on which the handler of SIGSYS does its work.
//!
//! The kernel puts the handler on the thread's alternate stack, if there is one: where programs have stacks of
//! their own making (Go's goroutines), that is the only place with room for a signal frame. But most alternate
//! stacks are made for a last word before a crash, and too small for a `connect`. Then the work is done on the
//! stack that made the call.

use core::ffi::c_void;
use libc::{stack_t, ucontext_t};

/// What the work may need. (Go's alternate stacks have 32 KB, the smallest that are customary 8 KB.)
const ROOM: usize = 20 << 10;
/// Below the stack pointer, a function that calls nothing may keep its variables.
const RED_ZONE: usize = 128;

/// Where to do the work: `None`: here. `here` is the stack pointer now, `caller` that of the call, `alternate`
/// the thread's alternate stack, of which `room` must be left.
fn elsewhere(here: usize, caller: usize, alternate: (usize, usize), room: usize) -> Option<usize> {
    let (start, len) = alternate;
    let within = |address: usize| address.wrapping_sub(start) < len;
    if !within(here) || here - start >= room || within(caller) {
        return None;
    }
    Some((caller - RED_ZONE) & !15)
}

/// Does the work where there is room for it.
pub fn with_room(context: &ucontext_t, work: impl FnMut()) {
    on_stack(context, ROOM, work);
}

/// Does the work on the stack that made the call.
pub fn off_the_alternate(context: &ucontext_t, work: impl FnMut()) {
    on_stack(context, usize::MAX, work);
}

fn on_stack<F: FnMut()>(context: &ucontext_t, room: usize, mut work: F) {
    let here = (&raw const work).addr();
    let caller = context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize;
    let alternate = (context.uc_stack.ss_sp as usize, context.uc_stack.ss_size);
    match elsewhere(here, caller, alternate, room) {
        None => work(),
        // SAFETY: below it lies nothing that is in use: the thread is in this call. `work` outlives the call.
        Some(top) => unsafe { call_on(top, run::<F>, (&raw mut work).cast()) },
    }
}

unsafe extern "C" fn run<F: FnMut()>(work: *mut c_void) {
    // Another signal would find the alternate stack unused and overwrite our frame. The return from this one
    // puts it back.
    let none = stack_t { ss_sp: core::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: `none` is ours; `work` is that of `on_stack`.
    unsafe {
        let _ = crate::sys::call(libc::SYS_sigaltstack, [&raw const none as usize, 0, 0, 0, 0, 0]);
        (*work.cast::<F>())();
    }
}

/// Calls `function(argument)` on a stack that begins at `top`, which must be aligned as the ABI says.
#[unsafe(naked)]
unsafe extern "C" fn call_on(top: usize, function: unsafe extern "C" fn(*mut c_void), argument: *mut c_void) {
    core::arch::naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "mov rsp, rdi",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        "ret",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: (usize, usize) = (0x10000, 8192);

    #[test]
    fn a_small_alternate_stack_is_left() {
        assert_eq!(elsewhere(0x10800, 0x7f008, SMALL, ROOM), Some(0x7ef80));
    }

    #[test]
    fn a_large_one_is_not() {
        let large = (0x10000, 32 << 10);
        assert_eq!(elsewhere(0x17000, 0x7f008, large, ROOM), None);
        assert!(elsewhere(0x17000, 0x7f008, large, usize::MAX).is_some());
        // Unless other handlers have used it up.
        assert!(elsewhere(0x12000, 0x7f008, large, ROOM).is_some());
    }

    #[test]
    fn no_other_stack_to_go_to() {
        // There is no alternate one; this is not on it; or the call was made on it.
        assert_eq!(elsewhere(0x7e000, 0x7f008, (0, 0), ROOM), None);
        assert_eq!(elsewhere(0x7e000, 0x7f008, SMALL, ROOM), None);
        assert_eq!(elsewhere(0x10800, 0x11800, SMALL, ROOM), None);
    }

    #[test]
    fn work_is_done_there_and_returns() {
        let mut memory = vec![0u8; 65536];
        let top = (memory.as_mut_ptr() as usize + 65536) & !15;
        let mut seen = 0usize;
        unsafe extern "C" fn look(seen: *mut c_void) {
            let local = 0u8;
            // SAFETY: the test's variable.
            unsafe { *seen.cast::<usize>() = (&raw const local).addr() };
        }
        // SAFETY: the memory is ours, and enough.
        unsafe { call_on(top, look, (&raw mut seen).cast()) };
        assert!(seen < top && seen > top - 65536);
    }
}
