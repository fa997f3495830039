//! stdin, stdout and stderr on eft sockets.
//!
//! Guarantees: while descriptor 0, 1 or 2 is an eft socket, the program's variable of that name
//! holds a stream of ours that works on it; buffered output and unread input move to the new stream
//! in order. libc's own stream comes back when the descriptor is replaced by something else. Both
//! stay usable as long as the program runs: code that remembers our stream can write to the new
//! descriptor (see `stdio`).
//!
//! Invariants: a switch neither allocates nor waits for a stream's lock (dup2 may be called in a
//! signal handler, and a reader may hold stdin's lock for ever); a vfork child never switches.
//!
//! Limits: code that remembers libc's stream from before the switch (C++'s `cout` does) gets EBADF
//! from it as long as the descriptor is a socket, since it would write past the shim; wide
//! characters that are pending at a switch are not moved.

use crate::process;
use crate::table::{self, Entry};
use crate::{errno, real, sys};
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use libc::FILE;
use std::sync::OnceLock;

unsafe extern "C" {
    static mut stdin: *mut FILE;
    static mut stdout: *mut FILE;
    static mut stderr: *mut FILE;
    fn ftrylockfile(stream: *mut FILE) -> c_int;
    fn funlockfile(stream: *mut FILE);
    fn __fpurge(stream: *mut FILE);
}

/// The beginning of glibc's `struct _IO_FILE`, which programs were compiled against (getc and putc
/// were macros over it): it cannot change.
#[repr(C)]
struct Head {
    flags: c_int,
    read_next: *mut c_char,
    read_end: *mut c_char,
    read_base: *mut c_char,
    write_base: *mut c_char,
    write_next: *mut c_char,
    write_end: *mut c_char,
}

// Bits of `flags`.
const UNBUFFERED: c_int = 0x2;
const NO_READS: c_int = 0x4;
const NO_WRITES: c_int = 0x8;
const AT_END: c_int = 0x10;
const FAILED: c_int = 0x20;
const LINE_BUFFERED: c_int = 0x200;
const WRITING: c_int = 0x800;

/// As large as libc makes the buffer of a stream on a kernel socket.
const BUFFER_LEN: usize = 4096;
/// How often another thread's short use of a stream is waited for.
const PATIENCE: usize = 1000;

struct Standard {
    /// libc's stream.
    original: AtomicPtr<FILE>,
    /// Its [`NO_READS`] and [`NO_WRITES`] when it is in use.
    barred: AtomicI32,
    /// Ours; null once the program closed it.
    ours: AtomicPtr<FILE>,
    buffer: UnsafeCell<[u8; BUFFER_LEN]>,
}

// SAFETY: the buffer is used by stdio alone, under its stream's lock.
unsafe impl Sync for Standard {}

static STANDARD: [Standard; 3] = [const {
    Standard {
        original: AtomicPtr::new(null_mut()),
        barred: AtomicI32::new(0),
        ours: AtomicPtr::new(null_mut()),
        buffer: UnsafeCell::new([0; BUFFER_LEN]),
    }
}; 3];

fn standard(fd: c_int) -> Option<&'static Standard> {
    STANDARD.get(usize::try_from(fd).ok()?)
}

fn variable(fd: c_int) -> *mut *mut FILE {
    match fd {
        0 => &raw mut stdin,
        1 => &raw mut stdout,
        _ => &raw mut stderr,
    }
}

fn is_eft(fd: c_int) -> bool {
    matches!(table::get(fd), Entry::Eft { .. })
}

/// A stream's functions, as libc calls them with the number as their cookie.
pub type Read = unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> isize;
pub type Close = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The functions of our streams, which work on any descriptor.
pub struct Functions {
    /// Opens one; the mode is NUL-terminated.
    pub open: unsafe fn(c_int, *const c_char, Read, Close) -> *mut FILE,
    pub read: Read,
    /// Closes its number.
    pub close: fn(c_int) -> sys::Result<c_int>,
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// Makes our streams before `main`; a program started with an eft socket as its standard input or
/// output (as inetd does) gets them at once.
pub fn install(functions: Functions) {
    let functions = FUNCTIONS.get_or_init(|| functions);
    for (fd, standard) in (0..).zip(&STANDARD) {
        let (mode, read) = match fd {
            0 => (c"r", read_standard as Read),
            _ => (c"w", functions.read),
        };
        // SAFETY: the mode is NUL-terminated; the variable is libc's.
        unsafe {
            let original = *variable(fd);
            if !original.is_null() {
                let barred = (*original.cast::<Head>()).flags & (NO_READS | NO_WRITES);
                standard.barred.store(barred, Ordering::Relaxed);
            }
            standard.original.store(original, Ordering::Release);
            standard.ours.store((functions.open)(fd, mode.as_ptr(), read, close_standard), Ordering::Release);
        }
        follow(fd);
    }
}

/// The number of one of our standard streams.
pub fn number(stream: *mut FILE) -> Option<c_int> {
    (0..)
        .zip(&STANDARD)
        .find(|(_, s)| !stream.is_null() && s.ours.load(Ordering::Acquire) == stream)
        .map(|(fd, _)| fd)
}

/// The stream that the program's variable now holds.
pub fn current(fd: c_int) -> *mut FILE {
    // SAFETY: a plain word.
    unsafe { variable(fd).read_volatile() }
}

/// Descriptor `fd` was replaced: its stream follows.
#[inline]
pub fn follow(fd: c_int) {
    if let Some(standard) = standard(fd) {
        let before = errno::get();
        switch(fd, standard);
        errno::set(before);
    }
}

fn switch(fd: c_int, standard: &Standard) {
    let original = standard.original.load(Ordering::Acquire);
    let ours = standard.ours.load(Ordering::Acquire);
    let now = current(fd);
    if ours.is_null() || original.is_null() {
        return;
    }
    // SAFETY: both streams are libc's and live: ours is non-null until it is closed.
    unsafe {
        if is_eft(fd) && now == original {
            // A program that closed its stdout has none on the socket either.
            if process::owns_memory() && real::fileno.get()(original) == fd {
                hand_over(original, ours, |mode| {
                    let buffer = standard.buffer.get().cast::<c_char>();
                    libc::setvbuf(ours, buffer, mode, BUFFER_LEN);
                });
                seal(original);
                variable(fd).write_volatile(ours);
            }
        } else if !is_eft(fd) && now == ours && !must_stay(fd, ours) && process::owns_memory() {
            hand_over(ours, original, |mode| {
                bar(original, standard.barred.load(Ordering::Relaxed));
                if mode != mode_of(original) {
                    libc::setvbuf(original, null_mut(), mode, 0);
                }
            });
            variable(fd).write_volatile(original);
        }
    }
}

/// Whether our stream still holds bytes that libc's cannot take over: input that was read ahead, or
/// output that cannot be written yet.
unsafe fn must_stay(fd: c_int, ours: *mut FILE) -> bool {
    // SAFETY: by the caller.
    unsafe {
        match fd {
            0 => unread(ours).1 != 0,
            _ => pending(ours).1 != 0 && sys::fcntl(fd, libc::F_GETFD, 0).is_err(),
        }
    }
}

/// Moves the buffering (by `set_mode`), the marks and the pending output of one stream to the other.
/// A stream that another thread uses for long keeps them.
unsafe fn hand_over(from: *mut FILE, to: *mut FILE, set_mode: impl FnOnce(c_int)) {
    // SAFETY: by the caller; what was locked is unlocked.
    unsafe {
        if !try_lock(from) {
            return;
        }
        if try_lock(to) {
            set_mode(mode_of(from));
            let marks = (*from.cast::<Head>()).flags & (AT_END | FAILED);
            let head = to.cast::<Head>();
            (*head).flags = (*head).flags & !(AT_END | FAILED) | marks;
            let (bytes, len) = pending(from);
            if len != 0 {
                libc::fwrite(bytes.cast(), 1, len, to);
                __fpurge(from);
            }
            funlockfile(to);
        }
        funlockfile(from);
    }
}

/// Makes libc refuse, with EBADF, reads and writes on its stream by code that remembered it.
unsafe fn seal(stream: *mut FILE) {
    // SAFETY: by the caller; what was locked is unlocked.
    unsafe {
        if try_lock(stream) {
            let head = stream.cast::<Head>();
            if pending(stream).1 == 0 {
                // No room, so that the next byte triggers the check.
                (*head).write_end = (*head).write_base;
                (*head).flags &= !WRITING;
            }
            bar(stream, NO_READS | NO_WRITES);
            funlockfile(stream);
        }
    }
}

unsafe fn bar(stream: *mut FILE, what: c_int) {
    // SAFETY: by the caller.
    unsafe {
        let head = stream.cast::<Head>();
        (*head).flags = (*head).flags & !(NO_READS | NO_WRITES) | what;
    }
}

unsafe fn try_lock(stream: *mut FILE) -> bool {
    for _ in 0..PATIENCE {
        // SAFETY: by the caller.
        if unsafe { ftrylockfile(stream) } == 0 {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

unsafe fn mode_of(stream: *mut FILE) -> c_int {
    // SAFETY: by the caller.
    match unsafe { (*stream.cast::<Head>()).flags } {
        flags if flags & UNBUFFERED != 0 => libc::_IONBF,
        flags if flags & LINE_BUFFERED != 0 => libc::_IOLBF,
        _ => libc::_IOFBF,
    }
}

/// Output that was not written yet.
unsafe fn pending(stream: *mut FILE) -> (*const c_char, usize) {
    // SAFETY: by the caller; both pointers lie in the stream's buffer, or are null.
    unsafe {
        let head = &*stream.cast::<Head>();
        (head.write_base, (head.write_next as usize).saturating_sub(head.write_base as usize))
    }
}

/// Input that was not read yet.
unsafe fn unread(stream: *mut FILE) -> (*const c_char, usize) {
    // SAFETY: as above.
    unsafe {
        let head = &*stream.cast::<Head>();
        (head.read_next, (head.read_end as usize).saturating_sub(head.read_next as usize))
    }
}

/// Makes a stream empty, for other use: `reads` and `writes` say which.
///
/// # Safety
/// `stream` must be live.
pub unsafe fn begin_anew(stream: *mut FILE, reads: bool, writes: bool) {
    // SAFETY: by the caller.
    unsafe {
        __fpurge(stream);
        libc::clearerr(stream);
        bar(stream, barred(reads, writes));
    }
}

fn barred(reads: bool, writes: bool) -> c_int {
    (if reads { 0 } else { NO_READS }) | (if writes { 0 } else { NO_WRITES })
}

/// As [`begin_anew`] for libc's stream of `fd`, unless the program closed it.
pub fn renew_original(fd: c_int, reads: bool, writes: bool) {
    let Some(standard) = standard(fd) else { return };
    let stream = standard.original.load(Ordering::Acquire);
    // SAFETY: libc's stream, which is never freed.
    unsafe {
        if real::fileno.get()(stream) == fd {
            begin_anew(stream, reads, writes);
            standard.barred.store(barred(reads, writes), Ordering::Relaxed);
        }
    }
}

/// stdin: first what libc's stream had read ahead.
unsafe extern "C" fn read_standard(cookie: *mut c_void, to: *mut c_char, len: usize) -> isize {
    let original = STANDARD[0].original.load(Ordering::Acquire);
    // SAFETY: stdio's buffer; the input lies in the original's, which is locked.
    unsafe {
        let mut n = 0;
        if unread(original).1 != 0 && ftrylockfile(original) == 0 {
            let (bytes, left) = unread(original);
            n = left.min(len);
            core::ptr::copy_nonoverlapping(bytes, to, n);
            (*original.cast::<Head>()).read_next = bytes.cast_mut().add(n);
            funlockfile(original);
        }
        match n {
            0 => FUNCTIONS.get().map_or(-1, |functions| (functions.read)(cookie, to, len)),
            n => n as isize,
        }
    }
}

/// The program closes the stream. libc frees ours, so libc's own replaces it, closed too.
unsafe extern "C" fn close_standard(cookie: *mut c_void) -> c_int {
    let fd = cookie as usize as c_int;
    let Some(standard) = standard(fd) else { return -1 };
    let ours = standard.ours.swap(null_mut(), Ordering::AcqRel);
    let original = standard.original.load(Ordering::Acquire);
    // SAFETY: libc's stream and variable.
    unsafe {
        if current(fd) == ours {
            variable(fd).write_volatile(original);
        }
        if real::fileno.get()(original) != fd {
            return FUNCTIONS.get().map_or(-1, |functions| errno::int((functions.close)(fd)));
        }
        table::forget(fd);
        libc::fclose(original)
    }
}
