//! stdio on eft sockets.
//!
//! A `FILE` reads and writes inside libc, past every interposed symbol. So a stream on an eft
//! socket is a cookie stream, whose functions are ours; `fileno` still gives the number.

use crate::spin::Spin;
use crate::sys::{Errno, Result};
use crate::table::{self, Entry};
use crate::{buffers::Buffers, errno, fdops, real, transfer};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use libc::FILE;

#[repr(C)]
struct CookieFunctions {
    read: Option<unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> isize>,
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> isize>,
    seek: Option<unsafe extern "C" fn(*mut c_void, *mut i64, c_int) -> c_int>,
    close: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: CookieFunctions) -> *mut FILE;
    static mut stdin: *mut FILE;
    static mut stdout: *mut FILE;
    static mut stderr: *mut FILE;
}

/// Our streams and their numbers.
static STREAMS: Spin<Vec<(usize, c_int)>> = Spin::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

pub fn reset_lock() {
    STREAMS.reset();
}

unsafe extern "C" fn cookie_read(cookie: *mut c_void, to: *mut c_char, len: usize) -> isize {
    let fd = cookie as usize as c_int;
    let buffer = transfer::buffer(to.cast(), len);
    // SAFETY: stdio's buffer.
    let buffers = unsafe { Buffers::one(&buffer) };
    errno::long(socket(fd).and_then(|s| transfer::receive(fd, s, buffers?, 0)))
}

unsafe extern "C" fn cookie_write(cookie: *mut c_void, from: *const c_char, len: usize) -> isize {
    let fd = cookie as usize as c_int;
    let buffer = transfer::buffer(from.cast(), len);
    // SAFETY: stdio's buffer.
    let buffers = unsafe { Buffers::one(&buffer) };
    // fopencookie's contract: 0, not -1, says that nothing could be written.
    errno::long(socket(fd).and_then(|s| transfer::send(fd, s, buffers?, 0))).max(0)
}

unsafe extern "C" fn cookie_close(cookie: *mut c_void) -> c_int {
    let fd = cookie as usize as c_int;
    forget(fd);
    errno::int(fdops::close(fd))
}

fn forget(fd: c_int) {
    let mut streams = STREAMS.lock();
    streams.retain(|&(_, number)| number != fd);
    COUNT.store(streams.len(), Ordering::Release);
}

fn socket(fd: c_int) -> Result<&'static crate::socket::Socket> {
    table::socket(fd).unwrap_or(Err(Errno(libc::EBADF)))
}

/// A stream on an eft socket.
///
/// # Safety
/// `mode` must be NUL-terminated.
pub unsafe fn open(fd: c_int, mode: *const c_char) -> *mut FILE {
    let functions = CookieFunctions {
        read: Some(cookie_read),
        write: Some(cookie_write),
        seek: None,
        close: Some(cookie_close),
    };
    // SAFETY: the functions fit their contracts; the cookie is a plain number.
    let stream = unsafe { fopencookie(fd as usize as *mut c_void, mode, functions) };
    if !stream.is_null() {
        let mut streams = STREAMS.lock();
        streams.push((stream as usize, fd));
        COUNT.store(streams.len(), Ordering::Release);
    }
    stream
}

/// `fdopen`.
///
/// # Safety
/// As for `fdopen`.
pub unsafe fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    // SAFETY: by the caller.
    unsafe {
        match table::get(fd) {
            Entry::Eft { .. } => open(fd, mode),
            _ => real::fdopen.get()(fd, mode),
        }
    }
}

/// The number of one of our streams.
pub fn number(stream: *mut FILE) -> Option<c_int> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let streams = STREAMS.lock();
    let found = streams.iter().find(|&&(s, _)| s == stream as usize);
    found.map(|&(_, fd)| fd)
}

/// A program started with an eft socket as its standard input or output (as inetd does) gets
/// streams that work.
pub fn adopt_standard() {
    let is_eft = |fd| matches!(table::get(fd), Entry::Eft { .. });
    // SAFETY: before main; nobody uses the streams yet.
    unsafe {
        let replace = |fd: c_int, mode: &CStr, place: *mut *mut FILE| {
            if is_eft(fd) {
                let stream = open(fd, mode.as_ptr());
                if !stream.is_null() {
                    *place = stream;
                }
            }
        };
        replace(0, c"r", &raw mut stdin);
        replace(1, c"w", &raw mut stdout);
        replace(2, c"w", &raw mut stderr);
        if is_eft(2) {
            libc::setvbuf(stderr, core::ptr::null_mut(), libc::_IONBF, 0);
        }
    }
}

/// `vdprintf` on an eft socket: formatted in memory, then sent.
///
/// # Safety
/// As for `vdprintf`; `arguments` is a `va_list` as it is passed on this architecture (a pointer on
/// x86-64 and aarch64 alike).
pub unsafe fn vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int {
    unsafe extern "C" {
        fn vasprintf(to: *mut *mut c_char, format: *const c_char, arguments: *mut c_void) -> c_int;
    }
    let mut text = core::ptr::null_mut();
    // SAFETY: by the caller.
    let len = unsafe { vasprintf(&mut text, format, arguments) };
    if len < 0 {
        return len;
    }
    let buffer = transfer::buffer(text.cast(), len as usize);
    // SAFETY: the text was just made, and is freed after.
    let sent = unsafe {
        let buffers = Buffers::one(&buffer);
        let sent = socket(fd).and_then(|s| transfer::send(fd, s, buffers?, 0));
        libc::free(text.cast());
        sent
    };
    errno::int(sent.map(|n| n as c_int))
}
