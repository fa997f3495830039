//! System calls that a program makes past libc, by instructions of its own (Syscall User Dispatch).
//!
//! The kernel lets system calls through that lie in libc's text, and turns all others of the thread into SIGSYS. The
//! handler does for such a call what the interposed `syscall` does: it is slow, but correct on eft's descriptors as
//! on others. The shim's own calls go through a gate in libc's text (`sys`), so neither it nor libc is ever
//! interrupted. The dynamic linker and the vDSO are, where they enter the kernel; their calls are made unchanged.
//!
//! Guarantee: the calls of every thread made by `pthread_create`, `thrd_create` or a `clone` past libc are seen, and
//! those of every forked child. The kernel does not pass the state on: each thread and child arms itself.
//!
//! Invariant: SIGSYS is never blocked while code outside libc runs, since the kernel then kills a process that makes
//! such a call. So it is taken out of every mask that the program sets (`signals`, as libc does with its own
//! signals), and a handler that the program sets for it is only remembered (`disposition`).
//!
//! Where the kernel cannot do this, nothing here changes anything: such calls then are not seen, and the
//! limits in the head of the library hold.

#[cfg(not(test))]
mod clone;
mod disposition;
#[cfg(not(test))]
mod handler;
mod mask;
mod route;
pub mod signals;
mod stack;
mod text;
#[cfg(not(test))]
pub mod thread;

use crate::sys;
use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicUsize, Ordering};

pub const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;
const PR_SYS_DISPATCH_ON: usize = 1;
/// `si_code` of a SIGSYS by which the kernel hands a call over.
#[cfg(not(test))]
const SYS_USER_DISPATCH: c_int = 2;

/// The text whose calls the kernel lets through. No length: nothing is armed.
static START: AtomicUsize = AtomicUsize::new(0);
static LEN: AtomicUsize = AtomicUsize::new(0);

/// Whether calls past libc are seen in this process.
#[inline]
pub fn is_armed() -> bool {
    LEN.load(Ordering::Acquire) != 0
}

/// Arms the calling thread, if the process is. Touches no memory of libc's: a thread that was cloned by hand
/// may have none.
pub fn arm() {
    let len = LEN.load(Ordering::Acquire);
    if len != 0 {
        signals::unblock();
        let _ = dispatch(START.load(Ordering::Relaxed), len);
    }
}

/// Arms a process that got a copy of its parent's memory; the kernel does not pass the state on.
pub fn begin() {
    disposition::reset_lock();
    arm();
}

/// Arms a child or a thread that a `clone` past libc's wrapper made. A child that borrows its parent's memory (as
/// after vfork) is left alone.
pub extern "C" fn cloned() {
    if is_armed() && crate::process::owns_memory() {
        arm();
    }
}

fn dispatch(start: usize, len: usize) -> sys::Result<usize> {
    // No selector byte: calls outside the range are always handed over.
    let args = [PR_SET_SYSCALL_USER_DISPATCH as usize, PR_SYS_DISPATCH_ON, start, len, 0, 0];
    // SAFETY: takes no addresses that it writes to.
    unsafe { sys::call(libc::SYS_prctl, args) }
}

/// Makes a system call that the program asked for by number, if it concerns eft; `None` for all others. The result is
/// that of libc's function.
pub type Calls = unsafe fn(c_long, [usize; 6]) -> Option<isize>;

/// Arms the process and its only thread, if kernel and libc support it.
#[cfg(not(test))]
pub fn install(calls: Calls) {
    let Some(libc_text) = text::of_libc() else { return };
    let before = disposition::Action::in_kernel();
    if !handler::install(calls) || !libc_text.range.contains(&disposition::Action::in_kernel().restorer) {
        // The handler could not return.
        before.put_in_kernel();
        return;
    }
    disposition::set(before);
    sys::set_gate(libc_text.gate);
    signals::unblock();
    if dispatch(libc_text.range.start, libc_text.range.len()).is_ok() {
        START.store(libc_text.range.start, Ordering::Relaxed);
        LEN.store(libc_text.range.len(), Ordering::Release);
    } else {
        before.put_in_kernel();
    }
}

/// Unit tests make their own calls.
#[cfg(test)]
pub fn install(_calls: Calls) {}
