//! The kernel's loopback beside a wildcard listener.
//!
//! A stream socket that is bound to the wildcard address also listens on the kernel's 127.0.0.1, so
//! that health checks and local tools reach it. That kernel listener sits under a hidden number;
//! sockets holds a duplicate and posts the eft listener's token when it becomes readable; `accept`
//! takes from both. If the port is taken there, the listener does without.
//!
//! Datagram sockets have no such twin: to and from 127/8 they speak only if that is their first
//! address, and then they are the kernel's altogether.

use crate::socket::Socket;
use crate::sys::{self, Result};
use crate::table::{self, Entry};
use crate::{address, errno, real};
use core::ffi::c_int;
use core::net::{IpAddr, Ipv4Addr};
use core::sync::atomic::Ordering;
use eft_base::Endpoint;

/// Binds a kernel socket to 127.0.0.1 (mapped, if it is an IPv6 socket).
pub fn bind(kernel: c_int, port: u16, inet6: bool) -> Result<c_int> {
    let endpoint = Endpoint::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let (storage, len) = address::to_storage(endpoint, inet6);
    // SAFETY: the address is ours.
    errno::of(unsafe { real::bind.get()(kernel, (&raw const storage).cast(), len as libc::socklen_t) })
}

/// Binds the kept kernel socket beside its eft socket; gives it up if that fails.
pub fn attach(socket: &Socket, kernel: c_int, port: u16, inet6: bool) {
    if bind(kernel, port, inet6).is_err() {
        table::forget(kernel);
        sys::close(kernel);
        return;
    }
    socket.loopback.store(kernel, Ordering::Release);
    if let Ok((inode, _)) = sys::identity(kernel) {
        socket.loopback_inode().store(inode, Ordering::Release);
    }
}

/// Listens on the hidden socket, if there is one, and returns it.
pub fn listen(socket: &Socket, backlog: c_int) -> Option<c_int> {
    let kernel = socket.loopback_fd()?;
    let _ = sys::fcntl(kernel, libc::F_SETFL, libc::O_NONBLOCK as usize);
    // SAFETY: plain numbers.
    if unsafe { real::listen.get()(kernel, backlog) } != 0 {
        return None;
    }
    Some(kernel)
}

/// After exec: whether `fd` is the hidden listener of one of `sockets` (descriptor, inode).
pub fn adopt(fd: c_int, inode: u64, sockets: &[(c_int, u64)]) -> bool {
    for &(visible, _) in sockets {
        if let Some(Ok(socket)) = table::socket(visible)
            && socket.loopback_inode().load(Ordering::Acquire) == inode
        {
            table::set(fd, Entry::Hidden);
            socket.loopback.store(fd, Ordering::Release);
            return true;
        }
    }
    false
}
