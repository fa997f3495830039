//! Urgent data of streams, as on Linux: one byte at a time, read by itself (MSG_OOB) or in line (SO_OOBINLINE).
//!
//! A receive stops before the urgent byte and leaves it out. Readiness: the byte alone does not make a descriptor readable, but
//! shows as POLLPRI, which the shim adds to the kernel's answers (`crate::poll`) for sockets whose program asks for it.

use crate::buffers::Buffers;
use crate::socket::{Socket, bit};
use crate::sys::{Errno, Result};
use crate::{domain, error_watch, table};
use core::ffi::c_int;
use eft_channel::socket::{Step, wish};

/// The bytes up to `end` are about to be published; the last of them is urgent.
pub fn sends(socket: &Socket, end: u64) {
    socket.page.set_send_urgent(end);
    add_wish(socket, wish::SENDS_URGENT);
}

fn add_wish(socket: &Socket, wish: u32) {
    if socket.page.wishes() & wish == 0 {
        socket.page.add_wish(wish);
    }
}

/// What a receive from `from` on does.
#[inline]
pub fn step(socket: &Socket, from: u64) -> Step {
    socket.page.receive_step(from, socket.page.receivable(), socket.has(bit::OOB_INLINE))
}

/// Whether a receive gets bytes.
#[inline]
pub fn has_input(socket: &Socket) -> bool {
    socket.page.receivable() > 0 && step(socket, socket.page.receive_taken()).len > 0
}

/// `recv` with MSG_OOB, which never waits. What made the descriptor readable may be gone afterwards.
pub fn receive(socket: &Socket, to: &mut Buffers, flags: c_int) -> Result<usize> {
    let guard = socket.lock_receive()?;
    let page = &socket.page;
    let urgent = page.urgent().filter(|urgent| page.urgent_taken() != urgent.at + 1);
    let Some(urgent) = urgent.filter(|_| !socket.has(bit::OOB_INLINE)) else {
        return Err(Errno(libc::EINVAL));
    };
    if !urgent.arrived {
        return if socket.is_ended() { Ok(0) } else { Err(Errno(libc::EAGAIN)) };
    }
    let n = to.left().min(1);
    if flags & libc::MSG_TRUNC == 0 {
        to.touchable()?;
        to.read_receive(page, urgent.at, n);
    }
    if flags & libc::MSG_PEEK == 0 {
        let next = page.receive_taken();
        if page.urgent_taken() == next + 1 && urgent.at != next {
            // The one that was taken before is next, and is passed now: only the last one is remembered.
            page.set_receive_taken(next + 1);
            domain::notify_taken(socket);
        }
        page.set_urgent_taken(urgent.at + 1);
    }
    drop(guard);
    Ok(n)
}

/// What `recvmsg` says of a receive with MSG_OOB that returned `n` bytes.
pub fn message_flags(flags: c_int, n: usize) -> c_int {
    match (flags & libc::MSG_OOB, n) {
        (0, _) => 0,
        (oob, 0) => oob | libc::MSG_TRUNC,
        (oob, _) => oob,
    }
}

/// Whether POLLPRI is due.
#[inline]
pub fn is_pending(socket: &Socket) -> bool {
    is_watched(socket) && socket.page.urgent_byte().is_some()
}

/// SIOCATMARK: whether the next byte is urgent.
pub fn is_at_mark(socket: &Socket) -> bool {
    socket.page.urgent().is_some_and(|urgent| urgent.at == socket.page.receive_taken())
}

/// SIOCINQ: bytes up to the urgent one, if that has come and is not in line.
pub fn unread(socket: &Socket) -> usize {
    let (taken, unread) = (socket.page.receive_taken(), socket.page.receivable());
    let ahead = socket.page.urgent().map(|urgent| (urgent.at - taken) as usize);
    match ahead.filter(|ahead| *ahead < unread && !socket.has(bit::OOB_INLINE)) {
        Some(ahead) => ahead,
        None => unread,
    }
}

/// SO_OOBINLINE was switched.
pub fn set_inline(socket: &Socket, on: bool) {
    if on {
        add_wish(socket, wish::WANTS_URGENT);
    }
    // What was no input may be some now.
    domain::notify(socket);
}

/// The program waits for urgent data at `fd`, if that is a stream.
pub fn watch(fd: c_int) {
    if let Some(Ok(socket)) = table::socket(fd)
        && socket.is_stream()
    {
        add_wish(socket, wish::WANTS_URGENT);
        error_watch::watch();
    }
}

/// Whether the program has waited for urgent data of this socket.
#[inline]
pub fn is_watched(socket: &Socket) -> bool {
    let wanted = socket.is_stream() && socket.page.wishes() & wish::WANTS_URGENT != 0;
    wanted && !socket.has(bit::LISTENING)
}
