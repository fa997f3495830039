//! What packetdrill asks of a socket past its table, for the numbers that scripts check: `getsockopt` by its name. This object
//! is preloaded, too, and before libeft.so, so that such a call waits for the servers as any other does.

use crate::settle::settle;
use core::ffi::{c_int, c_void};
use libc::socklen_t;
use std::sync::OnceLock;

type Ask = unsafe extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;

static NEXT: OnceLock<Ask> = OnceLock::new();

/// libeft.so's.
fn next() -> Ask {
    *NEXT.get_or_init(|| {
        // SAFETY: a string; the symbol has this type, by C's headers.
        unsafe {
            let symbol = libc::dlsym(libc::RTLD_NEXT, c"getsockopt".as_ptr());
            assert!(!symbol.is_null(), "libc has getsockopt");
            core::mem::transmute::<*mut c_void, Ask>(symbol)
        }
    })
}

/// # Safety
/// As for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    settle();
    // SAFETY: by the caller.
    unsafe { next()(fd, level, name, value, len) }
}
