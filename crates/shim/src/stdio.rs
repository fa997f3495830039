//! stdio on eft sockets.
//!
//! A `FILE` reads and writes inside libc, past every interposed symbol. So a stream on an eft
//! socket is a cookie stream, whose functions are ours; `fileno` still gives the number. When the
//! number is reused for something else, the stream works on that. The standard streams: `standard`.

use crate::spin::Spin;
use crate::standard::{Close, Read};
use crate::sys::{Errno, Result};
use crate::table::{self, Entry};
use crate::{buffers::Buffers, errno, fdops, real, standard, sys, transfer};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use libc::FILE;

#[repr(C)]
struct CookieFunctions {
    read: Option<Read>,
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> isize>,
    seek: Option<unsafe extern "C" fn(*mut c_void, *mut i64, c_int) -> c_int>,
    close: Option<Close>,
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: CookieFunctions) -> *mut FILE;
}

/// Our streams and their numbers.
static STREAMS: Spin<Vec<(usize, c_int)>> = Spin::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Makes the standard streams ours where they have to be.
pub fn install() {
    standard::install(standard::Functions { open: open_with, read: cookie_read, close: fdops::close });
}

pub fn reset_lock() {
    STREAMS.reset();
}

unsafe extern "C" fn cookie_read(cookie: *mut c_void, to: *mut c_char, len: usize) -> isize {
    let fd = cookie as usize as c_int;
    let Some(socket) = table::socket(fd) else {
        // SAFETY: stdio's buffer, as are all below.
        return match table::visible(fd) {
            Ok(()) => unsafe { real::read.get()(fd, to.cast(), len) },
            Err(errno) => errno::long(Err(errno)),
        };
    };
    let buffer = transfer::buffer(to.cast(), len);
    // SAFETY: as above.
    let buffers = unsafe { Buffers::one(&buffer) };
    errno::long(socket.and_then(|s| transfer::receive(fd, s, buffers?, 0)))
}

unsafe extern "C" fn cookie_write(cookie: *mut c_void, from: *const c_char, len: usize) -> isize {
    let fd = cookie as usize as c_int;
    let sent = match table::socket(fd) {
        Some(socket) => {
            let buffer = transfer::buffer(from.cast(), len);
            // SAFETY: as above.
            let buffers = unsafe { Buffers::one(&buffer) };
            errno::long(socket.and_then(|s| transfer::send(fd, s, buffers?, 0)))
        }
        None => match table::visible(fd) {
            Ok(()) => write_all(fd, from, len),
            Err(errno) => errno::long(Err(errno)),
        },
    };
    // fopencookie's contract: 0, not -1, says that nothing could be written.
    sent.max(0)
}

/// stdio treats a short write by a cookie as a failure.
fn write_all(fd: c_int, from: *const c_char, len: usize) -> isize {
    let mut done = 0;
    while done < len {
        // SAFETY: within stdio's buffer.
        let n = unsafe { real::write.get()(fd, from.add(done).cast(), len - done) };
        if n <= 0 {
            break;
        }
        done += n as usize;
    }
    done as isize
}

/// Sockets cannot seek; a file that took the number may.
unsafe extern "C" fn cookie_seek(cookie: *mut c_void, offset: *mut i64, whence: c_int) -> c_int {
    let fd = cookie as usize as c_int;
    // SAFETY: stdio's variable.
    let at = unsafe { libc::lseek64(fd, *offset, whence) };
    if at < 0 {
        return -1;
    }
    // SAFETY: as above.
    unsafe { *offset = at };
    0
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

/// A cookie stream on a number.
///
/// # Safety
/// `mode` must be NUL-terminated; the functions must fit their contracts.
unsafe fn open_with(fd: c_int, mode: *const c_char, read: Read, close: Close) -> *mut FILE {
    let functions = CookieFunctions {
        read: Some(read),
        write: Some(cookie_write),
        seek: Some(cookie_seek),
        close: Some(close),
    };
    // SAFETY: by the caller; the cookie is a plain number.
    unsafe { fopencookie(fd as usize as *mut c_void, mode, functions) }
}

/// A stream on an eft socket.
///
/// # Safety
/// `mode` must be NUL-terminated.
pub unsafe fn open(fd: c_int, mode: *const c_char) -> *mut FILE {
    // SAFETY: by the caller; the functions are those above.
    let stream = unsafe { open_with(fd, mode, cookie_read, cookie_close) };
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
    if let Some(fd) = standard::number(stream) {
        return Some(fd);
    }
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let streams = STREAMS.lock();
    let found = streams.iter().find(|&&(s, _)| s == stream as usize);
    found.map(|&(_, fd)| fd)
}

/// `freopen` on one of our streams, whose number is `fd`: the file takes the number, and the stream
/// continues with it.
///
/// # Safety
/// As for `freopen`.
pub unsafe fn freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE, fd: c_int) -> *mut FILE {
    let is_standard = standard::number(stream).is_some();
    // SAFETY: by the caller.
    let done = unsafe {
        libc::fflush(stream);
        match open_file(path, CStr::from_ptr(mode).to_bytes(), fd) {
            Ok((reads, writes)) => {
                standard::begin_anew(stream, reads, writes);
                if is_standard {
                    standard::renew_original(fd, reads, writes);
                }
                Ok(())
            }
            Err(errno) => Err(errno),
        }
    };
    if done.is_err() {
        let _ = fdops::close(fd);
    }
    if is_standard {
        standard::follow(fd);
    }
    match done {
        Ok(()) if is_standard => standard::current(fd),
        Ok(()) => stream,
        Err(errno) => {
            errno::set(errno);
            core::ptr::null_mut()
        }
    }
}

/// Opens a file at the number `fd`; whether it can be read and written.
///
/// # Safety
/// `path` must be NUL-terminated, or null.
unsafe fn open_file(path: *const c_char, mode: &[u8], fd: c_int) -> Result<(bool, bool)> {
    if path.is_null() {
        // Another mode for the same file: there is no way to open a socket again.
        return Err(Errno(libc::ENXIO));
    }
    let has = |c: u8| mode.iter().skip(1).take_while(|&&m| m != b',').any(|&m| m == c);
    let (made, alone) = match mode.first() {
        Some(b'r') => (0, libc::O_RDONLY),
        Some(b'w') => (libc::O_CREAT | libc::O_TRUNC, libc::O_WRONLY),
        Some(b'a') => (libc::O_CREAT | libc::O_APPEND, libc::O_WRONLY),
        _ => return Err(Errno(libc::EINVAL)),
    };
    let access = if has(b'+') { libc::O_RDWR } else { alone };
    let exclusive = if has(b'x') { libc::O_EXCL } else { 0 };
    let cloexec = if has(b'e') { libc::O_CLOEXEC } else { 0 };
    // SAFETY: by the caller; the file's own number is closed after.
    unsafe {
        let file = errno::of(libc::open64(path, access | made | exclusive | cloexec, 0o666))?;
        if file != fd {
            let moved = fdops::dup_onto(file, fd, || real::dup3.get()(file, fd, cloexec));
            sys::close(file);
            moved?;
        }
    }
    Ok((access != libc::O_WRONLY, access != libc::O_RDONLY))
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
