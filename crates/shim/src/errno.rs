//! Conversion of results to the return values of C functions.

use crate::sys::{Errno, Result};
use core::ffi::c_int;

/// Sets the calling thread's `errno`.
pub fn set(errno: Errno) {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = errno.0 }
}

pub fn get() -> Errno {
    // SAFETY: as above.
    Errno(unsafe { *libc::__errno_location() })
}

/// `-1` and `errno`, or the value.
pub fn long(result: Result<usize>) -> isize {
    match result {
        Ok(value) => value as isize,
        Err(errno) => {
            set(errno);
            -1
        }
    }
}

/// As [`long`], for functions that return an int.
pub fn int(result: Result<c_int>) -> c_int {
    match result {
        Ok(value) => value,
        Err(errno) => {
            set(errno);
            -1
        }
    }
}

/// The result of a libc function.
pub fn of(ret: c_int) -> Result<c_int> {
    if ret < 0 { Err(get()) } else { Ok(ret) }
}
