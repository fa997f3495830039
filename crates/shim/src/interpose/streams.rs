//! stdio's entry points.

use crate::table::{self, Entry};
use crate::{real, stdio};
use core::ffi::{c_char, c_int, c_void};
use libc::FILE;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    // SAFETY: the program's call, as are all below.
    unsafe { stdio::fdopen(fd, mode) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fileno(stream: *mut FILE) -> c_int {
    match stdio::number(stream) {
        Some(fd) => fd,
        // SAFETY: as above.
        None => unsafe { real::fileno.get()(stream) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fileno_unlocked(stream: *mut FILE) -> c_int {
    // SAFETY: as above.
    unsafe { fileno(stream) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdprintf(fd: c_int, format: *const c_char, list: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe {
        match table::get(fd) {
            Entry::Eft { .. } => stdio::vdprintf(fd, format, list),
            _ => real::vdprintf.get()(fd, format, list),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdprintf_chk(
    fd: c_int,
    flag: c_int,
    format: *const c_char,
    list: *mut c_void,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        match table::get(fd) {
            Entry::Eft { .. } => stdio::vdprintf(fd, format, list),
            _ => real::__vdprintf_chk.get()(fd, flag, format, list),
        }
    }
}
