//! New threads and children, which must arm themselves (see `dispatch`).

use crate::dispatch::{self, thread};
use crate::real;
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
    // SAFETY: the program's call.
    let pid = unsafe { real::_Fork.get()() };
    if pid == 0 {
        dispatch::cloned();
    }
    pid
}
