//! Descriptors that travel over Unix sockets (SCM_RIGHTS).

use crate::passed::each;
use crate::sys::{self, Errno, Result};
use crate::table::{self, Entry};
use crate::{held, init, looking, scan};
use core::ffi::c_int;

/// Notes which descriptors of a received message are eft sockets of the domain.
///
/// # Safety
/// As [`each`].
pub unsafe fn adopt(message: &libc::msghdr) {
    if message.msg_controllen == 0 || message.msg_control.is_null() {
        return;
    }
    let mut candidates = Vec::new();
    // SAFETY: by the caller.
    unsafe { each(message, |fd| candidates.extend(candidate(fd))) };
    scan::adopt(&candidates);
}

/// Notes whether this descriptor, which the process got by other ways than it knows, is an eft socket of the domain.
pub fn adopt_one(fd: c_int) {
    scan::adopt(&Vec::from_iter(candidate(fd)));
}

/// The number and inode of what may be an eft socket.
fn candidate(fd: c_int) -> Option<(c_int, u64)> {
    table::forget(fd);
    if scan::may_be_eft(fd)
        && let Ok((inode, _)) = sys::identity(fd)
    {
        return Some((fd, inode));
    }
    scan::adopt_undecided(fd);
    None
}

/// Whether the program may send these descriptors over the Unix socket `fd`: an eft socket means
/// nothing to a process of another domain, and would silently be a dead Unix socket there.
///
/// # Safety
/// As [`each`].
pub unsafe fn may_send(fd: c_int, message: &libc::msghdr) -> Result<()> {
    if message.msg_controllen == 0 || message.msg_control.is_null() || !init::is_active() {
        return Ok(());
    }
    let mut verdict = Ok(());
    let mut has_eft = false;
    // SAFETY: by the caller.
    unsafe {
        each(message, |sent| match table::get(sent) {
            Entry::Eft { .. } => {
                held::part(sent);
                has_eft = true;
            }
            Entry::Hidden => verdict = Err(Errno(libc::EBADF)),
            Entry::Set { .. } => looking::bar(sent),
            _ => {}
        })
    };
    verdict?;
    if has_eft && !reaches_domain(fd, !message.msg_name.is_null()) {
        sys::complain(
            "an eft socket cannot be handed to a process outside of its domain \
             (the program that `eft run` started and its descendants)",
        );
        return Err(Errno(libc::EPERM));
    }
    Ok(())
}

/// Whether the process at the other end of a Unix socket is of this domain, as far as can be seen:
/// then it holds the same domain connection. The peer is the process that connected or made the
/// pair; if it is gone, its descendants are left, and they are of the same domain as it was.
fn reaches_domain(fd: c_int, to_name: bool) -> bool {
    if to_name {
        return false;
    }
    let mut credentials = [0u8; 12];
    if sys::get_option(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut credentials).is_err() {
        return false;
    }
    let [a, b, c, d] = [0, 1, 2, 3].map(|i| credentials[i]);
    let pid = i32::from_ne_bytes([a, b, c, d]);
    if pid == sys::getpid() {
        return true;
    }
    let Ok((inode, _)) = sys::identity(crate::control::domain_fd()) else {
        return false;
    };
    let wanted = format!("socket:[{inode}]");
    match std::fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(mut fds) => fds.any(|entry| {
            entry
                .and_then(|e| std::fs::read_link(e.path()))
                .is_ok_and(|link| link.as_os_str() == wanted.as_str())
        }),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}
