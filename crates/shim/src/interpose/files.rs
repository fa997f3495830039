//! open and fopen, for the name service files.

use crate::names::files;
use crate::{errno, real};
use core::ffi::{c_char, c_int};
use libc::FILE;

// The mode is a word in a register, whether the caller passed one or not.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: usize) -> c_int {
    // SAFETY: the program's call, as are all below.
    unsafe {
        match files::open(path, flags) {
            Some(opened) => errno::int(opened),
            None => real::open.get()(path, flags, mode),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: usize) -> c_int {
    // SAFETY: as above.
    unsafe {
        match files::open(path, flags) {
            Some(opened) => errno::int(opened),
            None => real::open64.get()(path, flags, mode),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(at: c_int, path: *const c_char, flags: c_int, mode: usize) -> c_int {
    // SAFETY: as above.
    unsafe {
        match files::open(path, flags) {
            Some(opened) => errno::int(opened),
            None => real::openat.get()(at, path, flags, mode),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(at: c_int, path: *const c_char, flags: c_int, mode: usize) -> c_int {
    // SAFETY: as above.
    unsafe {
        match files::open(path, flags) {
            Some(opened) => errno::int(opened),
            None => real::openat64.get()(at, path, flags, mode),
        }
    }
}

/// What the fortified variants call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __open_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: as above.
    unsafe { open(path, flags, 0) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __open64_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: as above.
    unsafe { open64(path, flags, 0) }
}

/// A stream on such a file.
unsafe fn stream(path: *const c_char, mode: *const c_char) -> Option<*mut FILE> {
    // SAFETY: as above. Only for reading alone: `r`, and no `+` after it.
    unsafe {
        if mode.is_null() || *mode != b'r' as c_char || !libc::strchr(mode, b'+' as c_int).is_null() {
            return None;
        }
        let cloexec = if libc::strchr(mode, b'e' as c_int).is_null() { 0 } else { libc::O_CLOEXEC };
        let fd = files::open(path, libc::O_RDONLY | cloexec)?.ok()?;
        Some(real::fdopen.get()(fd, mode))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: as above.
    unsafe { stream(path, mode).unwrap_or_else(|| real::fopen.get()(path, mode)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: as above.
    unsafe { stream(path, mode).unwrap_or_else(|| real::fopen64.get()(path, mode)) }
}
