//! ioctl on eft sockets.

use crate::socket::{Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::{datagram, fdops, held, sleeping, table, urgent};
use core::ffi::{c_int, c_ulong, c_void};
use eft_channel::socket::flag;

const SIOCOUTQNSD: c_ulong = 0x894b;
const SIOCATMARK: c_ulong = 0x8905;
const FIOASYNC: c_ulong = 0x5452;
const FIOSETOWN: c_ulong = 0x8901;
const SIOCSPGRP: c_ulong = 0x8902;

/// What eft answers; `None` leaves the call to libc.
///
/// # Safety
/// `arg` must be as for `ioctl`.
pub unsafe fn ioctl(fd: c_int, request: c_ulong, arg: *mut c_void) -> Option<Result<c_int>> {
    if matches!(request, libc::FIONBIO | FIOSETOWN | SIOCSPGRP) {
        held::part(fd);
    }
    match request {
        libc::FIONBIO => {
            if sys::plausible(arg, 4).is_ok() && table::socket(fd).is_some() {
                // SAFETY: by the caller.
                fdops::mirror_nonblocking(fd, unsafe { arg.cast::<c_int>().read_unaligned() } != 0);
            }
            None
        }
        FIOASYNC => {
            sleeping::watch(fd);
            None
        }
        FIOSETOWN | SIOCSPGRP => {
            // SAFETY: by the caller.
            let done =
                unsafe { sys::call(libc::SYS_ioctl, [fd as usize, request as usize, arg as usize, 0, 0, 0]) };
            if done.is_ok() {
                fdops::owned(fd);
            }
            Some(done.map(|n| n as c_int))
        }
        libc::FIOCLEX => {
            fdops::mirror_cloexec(fd, true);
            None
        }
        libc::FIONCLEX => {
            fdops::mirror_cloexec(fd, false);
            None
        }
        libc::FIONREAD | libc::TIOCOUTQ | SIOCOUTQNSD | SIOCATMARK => {
            let socket = match table::socket(fd)? {
                Ok(socket) => socket,
                Err(errno) => return Some(Err(errno)),
            };
            // A listener has connections, and no bytes.
            if socket.has(bit::LISTENING) && request != SIOCATMARK {
                return Some(Err(Errno(libc::EINVAL)));
            }
            let number = queue(socket, request);
            if !arg.is_null() {
                // SAFETY: by the caller.
                unsafe { arg.cast::<c_int>().write_unaligned(number as c_int) };
            }
            Some(Ok(0))
        }
        // SAFETY: by the caller.
        _ => unsafe { crate::interface_calls::ioctl(request, arg) },
    }
}

fn unacknowledged(socket: &Socket) -> usize {
    socket.page.send_end().saturating_sub(socket.page.send_released()) as usize
}

/// Whether the stream's end is sent or is to be sent, and not acknowledged, or its beginning was never: each takes a sequence
/// number.
fn has_unfinished_mark(socket: &Socket) -> bool {
    let flags = socket.page.flags();
    if flags & (flag::DEAD | flag::CONNECTED) == flag::DEAD {
        return true;
    }
    let is_asked = socket.wishes_shut_write() && flags & flag::SEND_CLOSED == 0;
    (flags & flag::CONNECTED != 0 && is_asked) || socket.page.info().unfinished != 0
}

fn queue(socket: &Socket, request: c_ulong) -> usize {
    match (request, socket.is_stream()) {
        (SIOCATMARK, stream) => (stream && urgent::is_at_mark(socket)) as usize,
        (libc::FIONREAD, true) => urgent::unread(socket),
        (libc::FIONREAD, false) => datagram::next_len(socket),
        (libc::TIOCOUTQ, true) => unacknowledged(socket) + has_unfinished_mark(socket) as usize,
        _ => unacknowledged(socket),
    }
}
