//! The ICMP error that ended a stream's attempt to connect. Over IPv4 Linux puts it into the socket's error queue, asked for
//! (IP_RECVERR) or not, and `poll` says POLLERR until it is taken.

use crate::buffers::Buffers;
use crate::readiness;
use crate::received::Received;
use crate::socket::Socket;
use crate::sys::{Errno, Result};
use core::ffi::c_int;
use eft_base::Endpoint;
use eft_channel::socket::{DatagramHeader, QUOTE_MAX, STAMPED};

/// Whether there is one that was not taken.
#[inline]
pub fn is_pending(socket: &Socket) -> bool {
    socket.is_stream() && socket.page.has_errors() && crate::stamps::flags_of(socket) == 0
}

/// Takes the oldest error of a stream or a datagram socket: the quoted payload into the buffers, the destination as the sender.
/// Never waits.
pub fn take_error(fd: c_int, socket: &Socket, to: &mut Buffers) -> Result<Received> {
    to.touchable()?;
    let page = &socket.page;
    let _guard =
        socket.lock_receive().map_err(|e| readiness::reentered(fd, socket, libc::MSG_DONTWAIT, e))?;
    if !page.has_errors() {
        return Err(Errno(libc::EAGAIN));
    }
    let taken = page.errors_taken();
    let mut quote = [0; QUOTE_MAX];
    let error = match socket.is_stream() {
        true => page.read_refusal(&mut quote),
        false => page.read_error(taken, &mut quote),
    };
    let next = taken.wrapping_add(1);
    page.set_errors_taken(next);
    // As on Linux, the pending error becomes the one that is now first in the queue.
    let pending = match page.has_errors() {
        true => page.read_error(next, &mut [0; QUOTE_MAX]).errno,
        false => 0,
    };
    page.set_error(if pending == STAMPED { 0 } else { pending });
    let quote = &quote[..error.len as usize];
    Ok(Received {
        len: quote.len(),
        copied: to.put(quote),
        from: Endpoint::new(error.destination.into(), error.port),
        header: DatagramHeader {
            local: error.local,
            ttl: error.ttl,
            tos: error.tos,
            ..DatagramHeader::default()
        },
        at: 0,
        error: Some(error),
    })
}
