//! Sending to the loopback, over a shadow that is made when it is first needed.

use crate::buffers::Buffers;
use crate::received;
use crate::segmentation::Sent;
use crate::shadow::settle;
use crate::socket::{Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::table::{self, Entry};
use crate::{loopback, options, process, readiness};
use core::ffi::c_int;
use libc::{msghdr, sockaddr, socklen_t};

/// The shadow of a bound datagram socket, made if there is none yet.
pub fn make(fd: c_int, socket: &Socket) -> Result<c_int> {
    if let Some(hidden) = loopback::of(socket) {
        return Ok(hidden);
    }
    // A socket bound to an address of the stack does not use the loopback.
    if !socket.has(bit::WILDCARD) || !process::owns_memory() {
        return Err(Errno(libc::ENETUNREACH));
    }
    let kernel = options::fresh(socket)?;
    options::carry_back(fd, socket, kernel);
    let placed = loopback::place(socket, kernel, socket.page.local().port);
    let hidden = placed.and_then(|()| sys::move_high(kernel, true)).inspect_err(|_| sys::close(kernel))?;
    table::set(hidden, Entry::Hidden);
    if socket.has(bit::PEER) {
        loopback::shut_out(hidden);
    }
    loopback::stand_beside(socket, hidden)
}

/// Sends a datagram to the loopback: to `to`, or, if that is null, to the peer there or where the
/// beginning that is held back goes.
///
/// # Safety
/// `to` must be null or valid for `len` bytes; `control` as for `sendmsg`.
pub unsafe fn send(
    fd: c_int,
    socket: &Socket,
    buffers: &Buffers,
    flags: c_int,
    (to, len): (*const sockaddr, socklen_t),
    control: Sent,
) -> Result<usize> {
    socket.take_error()?;
    if socket.wishes_shut_write() {
        return Err(Errno(libc::EPIPE));
    }
    let shadow = make(fd, socket)?;
    // SAFETY: all zeroes is a msghdr.
    let mut message: msghdr = unsafe { core::mem::zeroed() };
    message.msg_name = to.cast_mut().cast();
    message.msg_namelen = len;
    message.msg_iov = buffers.list().as_ptr().cast_mut();
    message.msg_iovlen = buffers.list().len();
    message.msg_control = control.pointer;
    message.msg_controllen = control.len;
    let patience = if readiness::must_not_wait(fd, socket, flags) { libc::MSG_DONTWAIT } else { 0 };
    // SAFETY: by the caller.
    let sent = unsafe { sys::send_message(shadow, &message, flags | patience) };
    let more = flags & libc::MSG_MORE != 0 || socket.has(bit::DATAGRAM_CORK);
    socket.put_bits(bit::LOOPBACK_MORE, more && sent.is_ok());
    if sent.is_err() {
        // The error may be of the previous datagram; then the descriptor is not readable any more.
        settle(socket, shadow);
        received::quieten(fd, socket);
    }
    sent
}
