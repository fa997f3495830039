//! Programs that restrict their own system calls.
//!
//! A daemon that handles untrusted input often allows only the calls that it makes itself, and is killed for any other. So in a
//! process with a filter (seccomp) the shim transfers bytes by `read` for `read`, `write` for `write`, and sleeps and wakes by
//! `futex` alone. Without a filter it makes the calls that suit it better.
//!
//! Limits: a filter that a process set up past libc is not noticed where `dispatch` is not available. Timeouts of the socket do
//! not end a wait in such a process, and a send to a connection that is over raises no SIGPIPE there. Requests to sockets
//! (connecting, accepting, options) make their usual calls: a program whose filter checks the arguments of calls, as chrony's
//! does, must have its sockets before (`acquisitionport`). The filters that systemd makes for services allow all of them.

use crate::socket::Socket;
use crate::sys::{self, Errno, Result};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

/// How long a sleeper sleeps before it checks by itself.
const PATIENCE: Duration = Duration::from_millis(250);

static CONFINED: AtomicBool = AtomicBool::new(false);

/// Whether this process has a filter.
#[inline]
pub fn is_confined() -> bool {
    CONFINED.load(Ordering::Relaxed)
}

fn begin() {
    CONFINED.store(true, Ordering::Relaxed);
    sys::ask_no_more();
}

/// Whether this call sets up a filter.
pub fn confines(number: i64, args: &[usize; 6]) -> bool {
    let first = args[0] as c_int;
    match number {
        libc::SYS_prctl => first == libc::PR_SET_SECCOMP,
        libc::SYS_seccomp => {
            matches!(first as u32, libc::SECCOMP_SET_MODE_STRICT | libc::SECCOMP_SET_MODE_FILTER)
        }
        _ => false,
    }
}

/// The program makes this call: notes whether it sets up a filter.
pub fn expect(number: i64, args: &[usize; 6]) {
    if confines(number, args) {
        begin();
    }
}

/// After exec: whether there are more filters than the one of `eft run`.
pub fn inherited() {
    let status = std::fs::read("/proc/self/status").unwrap_or_default();
    if filters(&status).is_some_and(|n| n > 1) {
        begin();
    }
}

/// How many filters a process has, as its /proc/PID/status says (since Linux 5.9).
fn filters(status: &[u8]) -> Option<u32> {
    let mut lines = status.split(|b| *b == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"Seccomp_filters:"))?;
    str::from_utf8(line).ok()?.trim().parse().ok()
}

/// Takes one message by a plain read. It is there, or about to come.
pub fn take_message(fd: c_int) -> Result<()> {
    let mut byte = 0u8;
    // SAFETY: the byte is ours.
    unsafe { sys::read_into(fd, &mut byte, 1, None).map(drop) }
}

/// Sleeps until the transport reports a change, unless `over` already.
pub fn sleep(socket: &Socket, over: impl Fn() -> bool) -> Result<()> {
    let sleepers = socket.page.sleepers();
    while !over() {
        let word = sleepers.announce_watcher();
        if over() {
            break;
        }
        if let Err(Errno(libc::EINTR)) = sys::futex_wait(sleepers.word().as_ptr(), word, PATIENCE) {
            return Err(Errno(libc::EINTR));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
