//! System calls, made directly.
//!
//! The shim's own calls must reach neither the interposed symbols nor a cancellation point, must
//! not touch `errno`, and must be usable in a signal handler and in a vfork child. So they are made
//! here without libc. Calls on descriptors that are not eft's go to libc instead (see `real`).
//!
//! Once calls past libc are handed to `dispatch`, these are made at an instruction in libc's text, where the
//! kernel lets them through.

mod memory;

use core::ffi::c_int;
#[cfg(target_arch = "x86_64")]
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use core::time::Duration;

pub use memory::{ask_no_more, map_anonymous, map_over, map_shared, plausible, readable};

/// A Linux error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

impl Errno {
    /// As the kernel returns it.
    pub fn in_kernel(self) -> isize {
        -(self.0 as isize)
    }
}

pub type Result<T> = core::result::Result<T, Errno>;

/// Where the instruction lies that makes our system calls, and a return after it.
#[cfg(target_arch = "x86_64")]
static GATE: AtomicPtr<()> = AtomicPtr::new(own_gate as *const () as *mut ());

#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn own_gate() {
    core::arch::naked_asm!("syscall", "ret")
}

#[cfg(target_arch = "x86_64")]
pub fn gate() -> usize {
    GATE.load(Ordering::Relaxed) as usize
}

/// From now on calls are made at `address`, a `syscall; ret` that stays mapped.
#[cfg(all(target_arch = "x86_64", not(test)))]
pub fn set_gate(address: usize) {
    GATE.store(address as *mut (), Ordering::Relaxed);
}

/// # Safety
/// As the system call says.
#[cfg(target_arch = "x86_64")]
#[inline]
pub unsafe fn raw(number: i64, args: [usize; 6]) -> isize {
    let ret: isize;
    // SAFETY: the kernel's calling convention; the caller vouches for the arguments. The gate touches nothing
    // else.
    unsafe {
        core::arch::asm!(
            "call {gate}",
            gate = in(reg) gate(),
            inlateout("rax") number as isize => ret,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    ret
}

/// # Safety
/// As the system call says.
#[cfg(target_arch = "aarch64")]
#[inline]
pub unsafe fn raw(number: i64, args: [usize; 6]) -> isize {
    let ret: isize;
    // SAFETY: the kernel's calling convention; the caller vouches for the arguments.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") args[0] as isize => ret,
            in("x1") args[1],
            in("x2") args[2],
            in("x3") args[3],
            in("x4") args[4],
            in("x5") args[5],
            options(nostack)
        );
    }
    ret
}

/// Converts a result of the kernel.
pub fn check(ret: isize) -> Result<usize> {
    if ret < 0 { Err(Errno(-ret as c_int)) } else { Ok(ret as usize) }
}

/// # Safety
/// As the system call says.
pub unsafe fn call(number: i64, args: [usize; 6]) -> Result<usize> {
    // SAFETY: the caller vouches.
    check(unsafe { raw(number, args) })
}

/// A call whose arguments are plain numbers.
fn plain(number: i64, a: usize, b: usize, c: usize) -> Result<usize> {
    // SAFETY: used below only for calls that take no addresses.
    unsafe { call(number, [a, b, c, 0, 0, 0]) }
}

pub fn close(fd: c_int) {
    let _ = plain(libc::SYS_close, fd as usize, 0, 0);
}

pub fn getpid() -> i32 {
    plain(libc::SYS_getpid, 0, 0, 0).unwrap_or(0) as i32
}

/// Whether there is no process of this number.
pub fn is_gone(pid: u32) -> bool {
    plain(libc::SYS_kill, pid as usize, 0, 0) == Err(Errno(libc::ESRCH))
}

pub fn fcntl(fd: c_int, command: c_int, arg: usize) -> Result<usize> {
    plain(libc::SYS_fcntl, fd as usize, command as usize, arg)
}

pub fn dup3(from: c_int, to: c_int, flags: c_int) -> Result<c_int> {
    plain(libc::SYS_dup3, from as usize, to as usize, flags as usize).map(|fd| fd as c_int)
}

pub fn shutdown(fd: c_int, how: c_int) {
    let _ = plain(libc::SYS_shutdown, fd as usize, how as usize, 0);
}

pub fn is_nonblocking(fd: c_int) -> bool {
    fcntl(fd, libc::F_GETFL, 0).is_ok_and(|f| f as c_int & libc::O_NONBLOCK != 0)
}

pub fn is_cloexec(fd: c_int) -> bool {
    fcntl(fd, libc::F_GETFD, 0).is_ok_and(|f| f as c_int & libc::FD_CLOEXEC != 0)
}

pub fn set_cloexec(fd: c_int, on: bool) {
    let _ = fcntl(fd, libc::F_SETFD, if on { libc::FD_CLOEXEC as usize } else { 0 });
}

/// Inode and mode of a descriptor.
pub fn identity(fd: c_int) -> Result<(u64, u32)> {
    // SAFETY: all zeroes is a stat.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: `stat` is ours.
    unsafe { call(libc::SYS_fstat, [fd as usize, &raw mut stat as usize, 0, 0, 0, 0])? };
    Ok((stat.st_ino, stat.st_mode))
}

/// Whether a descriptor is free.
pub fn descriptor_free() -> Result<()> {
    plain(libc::SYS_eventfd2, 0, libc::EFD_CLOEXEC as usize, 0).map(|fd| close(fd as c_int))
}

/// A SEQPACKET pair, close-on-exec.
pub fn pair() -> Result<[c_int; 2]> {
    let mut fds = [-1; 2];
    // SAFETY: `fds` is ours.
    unsafe {
        call(
            libc::SYS_socketpair,
            [
                libc::AF_UNIX as usize,
                (libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC) as usize,
                0,
                fds.as_mut_ptr() as usize,
                0,
                0,
            ],
        )?
    };
    Ok(fds)
}

pub fn socket(domain: c_int, kind: c_int) -> Result<c_int> {
    plain(libc::SYS_socket, domain as usize, kind as usize, 0).map(|fd| fd as c_int)
}

/// Sends bytes without waiting.
pub fn send_now(fd: c_int, bytes: &[u8]) -> Result<usize> {
    // SAFETY: the bytes are valid for the call.
    unsafe {
        call(
            libc::SYS_sendto,
            [
                fd as usize,
                bytes.as_ptr() as usize,
                bytes.len(),
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as usize,
                0,
                0,
            ],
        )
    }
}

/// `sendmsg`; no cancellation point.
///
/// # Safety
/// As the system call says.
pub unsafe fn send_message(fd: c_int, message: &libc::msghdr, flags: c_int) -> Result<usize> {
    // SAFETY: by the caller.
    unsafe { call(libc::SYS_sendmsg, [fd as usize, &raw const *message as usize, flags as usize, 0, 0, 0]) }
}

/// `recvmsg`; no cancellation point.
///
/// # Safety
/// As the system call says.
pub unsafe fn receive_message(fd: c_int, message: &mut libc::msghdr, flags: c_int) -> Result<usize> {
    // SAFETY: by the caller.
    unsafe { call(libc::SYS_recvmsg, [fd as usize, &raw mut *message as usize, flags as usize, 0, 0, 0]) }
}

/// # Safety
/// `address` must be valid for `len` bytes.
pub unsafe fn connect(fd: c_int, address: *const libc::sockaddr, len: libc::socklen_t) -> Result<()> {
    // SAFETY: by the caller.
    unsafe { call(libc::SYS_connect, [fd as usize, address as usize, len as usize, 0, 0, 0]).map(drop) }
}

/// Takes one message without reading it. The buffer is empty: if the number belongs to a foreign stream by
/// now, no byte of it is lost.
pub fn take_message(fd: c_int) -> Result<()> {
    // SAFETY: no buffer is passed.
    unsafe { call(libc::SYS_recvfrom, [fd as usize, 0, 0, libc::MSG_DONTWAIT as usize, 0, 0]).map(drop) }
}

/// Waits for events of one descriptor; no cancellation point. Returns the events.
pub fn poll(fd: c_int, events: i16, timeout_ms: Option<u64>) -> Result<i16> {
    let mut poll = libc::pollfd { fd, events, revents: 0 };
    let timeout = timeout_ms.map(|ms| libc::timespec {
        tv_sec: (ms / 1000) as libc::time_t,
        tv_nsec: (ms % 1000 * 1_000_000) as _,
    });
    let timeout_ptr = timeout.as_ref().map_or(0, |t| t as *const _ as usize);
    // SAFETY: both structures are ours; no signal mask.
    unsafe { call(libc::SYS_ppoll, [&raw mut poll as usize, 1, timeout_ptr, 0, 0, 0])? };
    Ok(poll.revents)
}

pub fn get_option(fd: c_int, level: c_int, name: c_int, to: &mut [u8]) -> Result<usize> {
    let mut len = to.len() as libc::socklen_t;
    // SAFETY: buffer and length are ours.
    unsafe {
        call(
            libc::SYS_getsockopt,
            [fd as usize, level as usize, name as usize, to.as_mut_ptr() as usize, &raw mut len as usize, 0],
        )?
    };
    Ok(len as usize)
}

/// Whether an AF_INET6 socket is for IPv6 alone.
pub fn v6_only(fd: c_int) -> bool {
    get_option_int(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY).is_ok_and(|v| v != 0)
}

pub fn get_option_int(fd: c_int, level: c_int, name: c_int) -> Result<c_int> {
    let mut bytes = [0; 4];
    get_option(fd, level, name, &mut bytes)?;
    Ok(c_int::from_ne_bytes(bytes))
}

pub fn set_option(fd: c_int, level: c_int, name: c_int, value: &[u8]) -> Result<()> {
    // SAFETY: the bytes are valid for the call.
    unsafe {
        call(
            libc::SYS_setsockopt,
            [fd as usize, level as usize, name as usize, value.as_ptr() as usize, value.len(), 0],
        )
        .map(drop)
    }
}

static MAY_ASK: AtomicBool = AtomicBool::new(true);

pub fn write(fd: c_int, bytes: &[u8]) -> Result<usize> {
    // SAFETY: the bytes are valid for the call.
    unsafe { call(libc::SYS_write, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) }
}

/// A socket timeout in milliseconds; `None`: for ever.
pub fn timeout_of(fd: c_int, name: c_int) -> Option<c_int> {
    let mut bytes = [0; 16];
    get_option(fd, libc::SOL_SOCKET, name, &mut bytes).ok()?;
    let [seconds, micros] =
        [&bytes[..8], &bytes[8..]].map(|b| i64::from_ne_bytes(b.try_into().unwrap_or([0; 8])).max(0));
    match seconds.saturating_mul(1000).saturating_add((micros + 999) / 1000) {
        0 => None,
        ms => Some(ms.min(c_int::MAX as i64) as c_int),
    }
}

/// Wakes one waiter on a futex that processes share.
pub fn futex_wake(word: *const u32) {
    // SAFETY: FUTEX_WAKE does not access the word.
    unsafe {
        let _ = call(libc::SYS_futex, [word as usize, libc::FUTEX_WAKE as usize, 1, 0, 0, 0]);
    }
}

/// Wakes all waiters on a futex that processes share.
pub fn futex_wake_all(word: *const u32) {
    // SAFETY: FUTEX_WAKE does not access the word.
    unsafe {
        let all = i32::MAX as usize;
        let _ = call(libc::SYS_futex, [word as usize, libc::FUTEX_WAKE as usize, all, 0, 0, 0]);
    }
}

/// Wakes the waiters of an eventfd. A full one has rung already.
pub fn ring_eventfd(fd: c_int) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: the bytes are there.
    unsafe {
        let _ = call(libc::SYS_write, [fd as usize, one.as_ptr() as usize, one.len(), 0, 0, 0]);
    }
}

/// Sleeps while `word`, which processes share, has `value`; no longer than `limit`.
pub fn futex_wait(word: *const u32, value: u32, limit: Duration) -> Result<()> {
    let limit =
        libc::timespec { tv_sec: limit.as_secs() as libc::time_t, tv_nsec: limit.subsec_nanos() as _ };
    let (operation, limit) = (libc::FUTEX_WAIT as usize, &raw const limit as usize);
    // SAFETY: the kernel reads the word, which faults no worse than a read of ours would.
    unsafe { call(libc::SYS_futex, [word as usize, operation, value as usize, limit, 0, 0]).map(drop) }
}

/// Reads a file (or pipe) into memory: at `offset` if given, else at its position.
///
/// # Safety
/// `to` must be valid for `len` bytes of writing.
pub unsafe fn read_into(fd: c_int, to: *mut u8, len: usize, offset: Option<i64>) -> Result<usize> {
    // SAFETY: by the caller.
    unsafe {
        match offset {
            Some(at) => call(libc::SYS_pread64, [fd as usize, to as usize, len, at as usize, 0, 0]),
            None => call(libc::SYS_read, [fd as usize, to as usize, len, 0, 0, 0]),
        }
    }
}

/// The limit of open files, before it is set if asked.
pub fn open_files(set: Option<&libc::rlimit64>) -> Result<libc::rlimit64> {
    let new = set.map_or(0, |limit| &raw const *limit as usize);
    // SAFETY: all zeroes is an rlimit.
    let mut old: libc::rlimit64 = unsafe { core::mem::zeroed() };
    // SAFETY: both are ours.
    unsafe {
        call(libc::SYS_prlimit64, [0, libc::RLIMIT_NOFILE as usize, new, &raw mut old as usize, 0, 0])?
    };
    Ok(old)
}

/// Moves a descriptor of the shim's own to a high number, out of the way of programs.
pub fn move_high(fd: c_int, cloexec: bool) -> Result<c_int> {
    let highest = open_files(None).map_or(1024, |limit| limit.rlim_cur);
    let low = highest.min(65536).saturating_sub(64) as usize;
    let command = if cloexec { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    let moved = fcntl(fd, command, low).or_else(|_| fcntl(fd, command, 3))?;
    close(fd);
    Ok(moved as c_int)
}

/// Writes a line to stderr, whatever state the program is in.
pub fn complain(line: &str) {
    let mut buffer = [0u8; 512];
    let mut len = 0;
    for part in ["eft: ", line, "\n"] {
        let n = part.len().min(buffer.len() - len);
        buffer[len..len + n].copy_from_slice(&part.as_bytes()[..n]);
        len += n;
    }
    // SAFETY: the buffer is ours.
    unsafe {
        let _ = call(libc::SYS_write, [2, buffer.as_ptr() as usize, len, 0, 0, 0]);
    }
}
