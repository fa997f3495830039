//! New threads and children, which must arm themselves (see `dispatch`).

use crate::dispatch::{self, thread};
use crate::{held, real};
use core::ffi::{c_int, c_void};
use libc::{pid_t, pthread_attr_t, pthread_t};

/// Of C11's threads.
const THRD_NOMEM: c_int = 3;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    id: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: usize,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the program's call.
    let create = |routine, argument| unsafe { real::pthread_create.get()(id, attributes, routine, argument) };
    created(routine, argument, libc::EAGAIN, create)
}

/// libc's own does not call `pthread_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_create(id: *mut pthread_t, routine: usize, argument: *mut c_void) -> c_int {
    // SAFETY: the program's call.
    created(routine, argument, THRD_NOMEM, |routine, argument| unsafe {
        real::thrd_create.get()(id, routine, argument)
    })
}

fn created(
    routine: usize,
    argument: *mut c_void,
    no_memory: c_int,
    create: impl FnOnce(usize, *mut c_void) -> c_int,
) -> c_int {
    super::ensure();
    if !dispatch::is_armed() {
        return create(routine, argument);
    }
    thread::create(routine, argument, create).unwrap_or(no_memory)
}

/// A fork that runs no fork handlers.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Fork() -> pid_t {
    held::part_all();
    // SAFETY: the program's call.
    let pid = unsafe { real::_Fork.get()() };
    if pid == 0 {
        dispatch::cloned();
    }
    pid
}

/// What is to be done before the program makes a child that borrows its memory. Gives libc's function.
extern "C" fn before_vfork() -> unsafe extern "C" fn() -> pid_t {
    held::part_all();
    real::vfork.get()
}

/// Nothing of ours is on the stack when libc's function runs, which returns twice.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> pid_t {
    core::arch::naked_asm!("sub rsp, 8", "call {before}", "add rsp, 8", "jmp rax", before = sym before_vfork)
}

/// As above.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> pid_t {
    core::arch::naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "bl {before}",
        "ldp x29, x30, [sp], #16",
        "br x0",
        before = sym before_vfork
    )
}
