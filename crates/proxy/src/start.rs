//! Gives a program its proxy.
//!
//! The process that is about to become the program has started the proxy and has a link to it: a pair of connected Unix
//! sockets. The proxy reports that it is ready. The process sets up the filter, which gives it a listener, and sends
//! the listener's number. The proxy takes a duplicate and reports that it serves it. Only reads and writes may use the
//! link, since the filter stops all other calls until the proxy serves.

use crate::notify::Listener;
use crate::sys::{self, Errno, Result, int, long};
use crate::world::World;
use crate::{filter, target};
use std::os::fd::{AsRawFd, OwnedFd};

/// Why a program gets no proxy.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    #[error("its proxy has ended: does the stack run?")]
    Silent,
    #[error("it would inherit sockets of the stack, which only preloaded programs can use")]
    Inherits,
    #[error("another process handles its system calls already, and the kernel allows one")]
    Taken,
    #[error("the kernel does not let the proxy look into it (kernel.yama.ptrace_scope)")]
    Forbidden,
    #[error("the kernel cannot hand its system calls over (seccomp user notification, Linux 5.14): {0}")]
    Unable(String),
}

/// Two ends of a link.
pub fn link() -> std::io::Result<(OwnedFd, OwnedFd)> {
    sys::pair(libc::SOCK_STREAM).map_err(io_error)
}

fn io_error(Errno(errno): Errno) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno)
}

fn say(link: &OwnedFd, number: i32) -> Result<()> {
    let bytes = number.to_ne_bytes();
    // SAFETY: the bytes are borrowed for the call.
    match long(unsafe { libc::write(link.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) })? {
        4 => Ok(()),
        _ => Err(Errno(libc::EPIPE)),
    }
}

fn hear(link: &OwnedFd) -> Result<i32> {
    let mut bytes = [0; 4];
    // SAFETY: the buffer is borrowed for the call.
    match long(unsafe { libc::read(link.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) })? {
        4 => Ok(i32::from_ne_bytes(bytes)),
        _ => Err(Errno(libc::EPIPE)),
    }
}

/// Makes the calls of this process and its descendants go to the proxy at the other end of the link.
pub fn submit(link: &OwnedFd) -> std::result::Result<(), Trouble> {
    if hear(link).map_err(|_| Trouble::Silent)? != 0 {
        return Err(Trouble::Inherits);
    }
    let listener = filter::install().map_err(|errno| match errno {
        Errno(libc::EBUSY) => Trouble::Taken,
        errno => Trouble::Unable(io_error(errno).to_string()),
    })?;
    say(link, listener.as_raw_fd()).map_err(|_| Trouble::Silent)?;
    match hear(link) {
        Ok(0) => Ok(()),
        Ok(libc::EPERM) => Err(Trouble::Forbidden),
        Ok(errno) => Err(Trouble::Unable(io_error(Errno(errno)).to_string())),
        Err(_) => Err(Trouble::Silent),
    }
}

/// Serves the process at the other end of the link, and its descendants, to their end.
///
/// `inherited`: what the program inherits that may be sockets of the stack.
pub fn serve(link: OwnedFd, inherited: &[OwnedFd]) -> std::io::Result<()> {
    let is_eft = |fd: &OwnedFd| sys::option(fd, libc::SOL_SOCKET, libc::SO_DOMAIN, 0) != Ok(libc::AF_UNIX);
    if inherited.iter().any(is_eft) {
        return say(&link, libc::EPERM).map_err(io_error);
    }
    say(&link, 0).map_err(io_error)?;
    // Otherwise the process has given up.
    let Ok(number) = hear(&link) else { return Ok(()) };
    match begin(&link, number) {
        Ok(mut world) => {
            say(&link, 0).map_err(io_error)?;
            drop(link);
            crate::serve(&mut world);
            Ok(())
        }
        Err(errno) => {
            let _ = say(&link, errno.0);
            Err(io_error(errno))
        }
    }
}

fn begin(link: &OwnedFd, number: i32) -> Result<World> {
    let none = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let process = sys::option(link, libc::SOL_SOCKET, libc::SO_PEERCRED, none)?.pid as u32;
    target::may_access(process)?;
    let listener = target::descriptor_of_process(process, number)?;
    World::new(Listener::new(listener)?)
}

/// Makes room for two descriptors for each socket of the program, and lets no signal end the proxy before its programs.
pub fn settle() {
    // SAFETY: plain numbers, and structures of our own.
    unsafe {
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        let mut files: libc::rlimit = std::mem::zeroed();
        if int(libc::getrlimit(libc::RLIMIT_NOFILE, &mut files)).is_ok() {
            files.rlim_cur = files.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &files);
        }
        libc::prctl(libc::PR_SET_NAME, c"eft-proxy".as_ptr(), 0, 0, 0);
    }
}
