//! NETLINK_ROUTE sockets: requests for interfaces, addresses and routes are answered with the stack's, as by
//! the interface ioctls and `getifaddrs`.
//!
//! Such a socket is a Unix datagram socket that is connected to itself: a request is answered by sending the
//! answer there, so that it is readable, can be peeked at and waits in order, all by the kernel. Changes are
//! refused (EOPNOTSUPP): `eft up` configures the stack. Notifications never come. The kernel serves other
//! netlink protocols.

mod answer;
mod message;

use crate::sys::{self, Errno, Result};
use crate::table::{self, Entry};
use core::ffi::{c_int, c_void};
use libc::{iovec, msghdr, sockaddr, sockaddr_nl, socklen_t};

/// Bytes of the largest request that is answered.
const REQUEST_MAX: usize = 65536;

/// `socket(AF_NETLINK, …, NETLINK_ROUTE)`; `flags` are those of the type.
pub fn open(flags: c_int) -> Result<c_int> {
    let fd = sys::socket(libc::AF_UNIX, libc::SOCK_DGRAM | flags)?;
    match to_itself(fd) {
        Ok(()) => {
            table::set(fd, Entry::Netlink { port: sys::getpid() as u32 });
            Ok(fd)
        }
        Err(errno) => {
            sys::close(fd);
            Err(errno)
        }
    }
}

fn to_itself(fd: c_int) -> Result<()> {
    // SAFETY: all zeroes is an address; the calls write what is ours.
    unsafe {
        let mut own: libc::sockaddr_un = core::mem::zeroed();
        own.sun_family = libc::AF_UNIX as u16;
        let mut len = size_of::<libc::sa_family_t>();
        let place = &raw mut own as usize;
        // Without a name the kernel chooses one.
        sys::call(libc::SYS_bind, [fd as usize, place, len, 0, 0, 0])?;
        len = size_of::<libc::sockaddr_un>();
        sys::call(libc::SYS_getsockname, [fd as usize, place, &raw mut len as usize, 0, 0, 0])?;
        sys::connect(fd, (&raw const own).cast(), len as u32 as socklen_t)
    }
}

/// The port of a netlink socket; `None` if `fd` is not one.
#[inline]
pub fn port(fd: c_int) -> Option<u32> {
    match table::get(fd) {
        Entry::Netlink { port } => Some(port),
        _ => None,
    }
}

/// `bind`, which may name the port.
///
/// # Safety
/// `address` must be null or valid for `len` bytes.
pub unsafe fn bind(fd: c_int, address: *const sockaddr, len: socklen_t) -> Option<Result<c_int>> {
    port(fd)?;
    if address.is_null() || (len as usize) < size_of::<sockaddr_nl>() {
        return Some(Err(Errno(libc::EINVAL)));
    }
    // SAFETY: by the caller.
    let asked = unsafe { address.cast::<sockaddr_nl>().read_unaligned() };
    if asked.nl_family as c_int != libc::AF_NETLINK {
        return Some(Err(Errno(libc::EINVAL)));
    }
    if asked.nl_pid != 0 {
        table::set(fd, Entry::Netlink { port: asked.nl_pid });
    }
    Some(Ok(0))
}

/// The socket's name, or (the kernel's) port 0 for its peer.
///
/// # Safety
/// As for `getsockname`.
pub unsafe fn name(fd: c_int, to: *mut sockaddr, len: *mut socklen_t, peer: bool) -> Option<Result<c_int>> {
    let own = port(fd)?;
    if to.is_null() || len.is_null() {
        return Some(Err(Errno(libc::EFAULT)));
    }
    // SAFETY: by the caller.
    unsafe { put_name(if peer { 0 } else { own }, to, len) };
    Some(Ok(0))
}

/// # Safety
/// `to` must be valid for `*len` bytes.
unsafe fn put_name(port: u32, to: *mut sockaddr, len: *mut socklen_t) {
    // SAFETY: all zeroes is an address; the rest by the caller.
    unsafe {
        let mut name: sockaddr_nl = core::mem::zeroed();
        name.nl_family = libc::AF_NETLINK as u16;
        name.nl_pid = port;
        let n = (*len as usize).min(size_of::<sockaddr_nl>());
        core::ptr::copy_nonoverlapping((&raw const name).cast::<u8>(), to.cast(), n);
        *len = size_of::<sockaddr_nl>() as socklen_t;
    }
}

/// A send of any kind: its requests are answered at once.
///
/// # Safety
/// `list` must be as for `writev`.
pub unsafe fn send(fd: c_int, list: *const iovec, count: usize) -> Option<Result<usize>> {
    let port = port(fd)?;
    // SAFETY: by the caller.
    Some(unsafe { gather(list, count) }.and_then(|request| {
        for answer in answer::to(&request, port) {
            sys::send_now(fd, &answer)?;
        }
        Ok(request.len())
    }))
}

/// # Safety
/// As [`send`].
unsafe fn gather(list: *const iovec, count: usize) -> Result<Vec<u8>> {
    sys::plausible(list, count * size_of::<iovec>())?;
    let mut bytes = Vec::new();
    for i in 0..count.min(1024) {
        // SAFETY: by the caller.
        let piece = unsafe { list.add(i).read() };
        sys::readable(piece.iov_base.cast_const(), piece.iov_len)?;
        if bytes.len() + piece.iov_len > REQUEST_MAX {
            return Err(Errno(libc::EMSGSIZE));
        }
        if piece.iov_len > 0 {
            // SAFETY: as above.
            let piece = unsafe { core::slice::from_raw_parts(piece.iov_base.cast::<u8>(), piece.iov_len) };
            bytes.extend_from_slice(piece);
        }
    }
    Ok(bytes)
}

/// As [`send`], of one buffer.
///
/// # Safety
/// `from` must be valid for `len` bytes.
pub unsafe fn send_one(fd: c_int, from: *const c_void, len: usize) -> Option<Result<usize>> {
    port(fd)?;
    let one = iovec { iov_base: from.cast_mut(), iov_len: len };
    // SAFETY: by the caller.
    unsafe { send(fd, &one, 1) }
}

/// The kernel has received the message from the Unix socket: writes the sender's name, which is the
/// kernel's.
///
/// # Safety
/// As for `recvfrom`.
pub unsafe fn received_from(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) {
    if port(fd).is_some() && !address.is_null() && !len.is_null() {
        // SAFETY: by the caller. The kernel has written the length of another name.
        unsafe {
            *len = size_of::<sockaddr_nl>() as socklen_t;
            put_name(0, address, len);
        }
    }
}

/// The room for a name that a program gives to `recvmsg`. It is read for netlink descriptors only.
pub fn room(fd: c_int, message: &msghdr) -> socklen_t {
    if port(fd).is_some() { message.msg_namelen } else { 0 }
}

/// As [`received_from`], for `recvmsg`; `room` is the program's room for the name.
///
/// # Safety
/// As for `recvmsg`.
pub unsafe fn received(fd: c_int, message: &mut msghdr, room: socklen_t) {
    if port(fd).is_some() && !message.msg_name.is_null() {
        message.msg_namelen = room;
        // SAFETY: by the caller.
        unsafe { put_name(0, message.msg_name.cast(), &mut message.msg_namelen) };
    }
}
