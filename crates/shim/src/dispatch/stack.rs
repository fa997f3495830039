//! The stack on which the handler of SIGSYS does its work.
//!
//! The kernel runs the handler on the thread's alternate stack, if there is one: where programs make their own
//! stacks (Go's goroutines), that is the only place with room for a signal frame. But most alternate stacks are
//! made for a crash report, and too small for a `connect`. Then the work is done on the stack that made the
//! call.

use super::signals;
use crate::sys;
use core::ffi::c_void;
use libc::{stack_t, ucontext_t};

/// Stack that the work may need. (Go's alternate stacks have 32 KB, the smallest common ones 8 KB.)
const ROOM: usize = 20 << 10;
/// Below the stack pointer, a function that calls nothing may keep its variables.
const RED_ZONE: usize = 128;

/// An exec lays out a whole environment on its stack.
const MUCH_ROOM: usize = 128 << 10;

/// The stack pointers in the handler and at the call, and the thread's alternate stack.
struct Place {
    here: usize,
    caller: usize,
    alternate: (usize, usize),
}

impl Place {
    fn of(context: &ucontext_t, here: usize) -> Place {
        let stack = &context.uc_stack;
        Place {
            here,
            caller: context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize,
            alternate: (stack.ss_sp as usize, stack.ss_size),
        }
    }

    fn is_alternate(&self, address: usize) -> bool {
        address.wrapping_sub(self.alternate.0) < self.alternate.1
    }

    /// The caller's stack, if the handler is on the alternate one and the call was not.
    fn callers(&self) -> Option<usize> {
        let moved = self.is_alternate(self.here) && !self.is_alternate(self.caller);
        moved.then_some((self.caller - RED_ZONE) & !15)
    }

    fn has_room(&self) -> bool {
        !self.is_alternate(self.here) || self.here - self.alternate.0 >= ROOM
    }
}

/// Does the work on a stack with enough room.
pub fn with_room(context: &ucontext_t, mut work: impl FnMut()) {
    let place = Place::of(context, (&raw const work).addr());
    match place.has_room() {
        true => work(),
        false => on(place.callers(), without_alternate(work)),
    }
}

/// As [`with_room`], for an exec.
pub fn with_much_room(context: &ucontext_t, mut work: impl FnMut()) {
    let place = Place::of(context, (&raw const work).addr());
    if !place.is_alternate(place.here) {
        return work();
    }
    let memory = sys::map_anonymous(MUCH_ROOM) as usize;
    let top = (memory != 0).then_some(memory + MUCH_ROOM);
    on(top, without_alternate(work));
    if memory != 0 {
        // SAFETY: mapped above; nothing is on it any more.
        let _ = unsafe { sys::call(libc::SYS_munmap, [memory, MUCH_ROOM, 0, 0, 0, 0]) };
    }
}

/// Does the work on the stack that made the call.
pub fn on_callers(context: &ucontext_t, work: impl FnMut()) {
    let place = Place::of(context, (&raw const work).addr());
    on(place.callers(), without_alternate(work));
}

/// As [`on_callers`], with the alternate stack still set. Signals are blocked until the handler returns: they
/// could find the stack unused and overwrite its frame.
pub fn to_change(context: &ucontext_t, work: impl FnMut()) {
    let place = Place::of(context, (&raw const work).addr());
    signals::block_all();
    on(place.callers(), work);
}

/// Does the work with the alternate stack switched off, since another signal would find it unused and overwrite
/// the handler's frame. The handler's return restores it.
fn without_alternate(mut work: impl FnMut()) -> impl FnMut() {
    move || {
        let none = stack_t { ss_sp: core::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        // SAFETY: `none` is ours. Where the thread still is on it, the kernel refuses.
        let _ = unsafe { sys::call(libc::SYS_sigaltstack, [&raw const none as usize, 0, 0, 0, 0, 0]) };
        work();
    }
}

/// Does the work on a stack that begins at `top`, or on this one.
fn on<F: FnMut()>(top: Option<usize>, mut work: F) {
    match top {
        None => work(),
        // SAFETY: below it lies nothing that is in use: the thread is in this call, or the stack is new. `work`
        // outlives the call.
        Some(top) => unsafe { call_on(top, run::<F>, (&raw mut work).cast()) },
    }
}

unsafe extern "C" fn run<F: FnMut()>(work: *mut c_void) {
    // SAFETY: that of `on`.
    unsafe { (*work.cast::<F>())() }
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
mod tests;
