//! stdio's entry points.

use crate::table::{self, Entry};
use crate::{errno, real, standard, stdio};
use core::ffi::{c_char, c_int, c_void};
use libc::FILE;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    // SAFETY: the program's call, as are all below.
    unsafe { stdio::fdopen(fd, mode) }
}

type Freopen = unsafe extern "C" fn(*const c_char, *const c_char, *mut FILE) -> *mut FILE;

unsafe fn reopen(path: *const c_char, mode: *const c_char, stream: *mut FILE, in_libc: Freopen) -> *mut FILE {
    // SAFETY: as above.
    unsafe {
        if let Some(fd) = stdio::number(stream) {
            return stdio::freopen(path, mode, stream, fd);
        }
        let before = errno::get();
        let fd = real::fileno.get()(stream);
        errno::set(before);
        let reopened = in_libc(path, mode, stream);
        // Whatever the number was, libc has closed it.
        table::forget(fd);
        standard::follow(fd);
        reopened
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
    // SAFETY: as above.
    unsafe { reopen(path, mode, stream, real::freopen.get()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
    // SAFETY: as above.
    unsafe { reopen(path, mode, stream, real::freopen64.get()) }
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
