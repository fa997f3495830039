//! Writing before a stream is connected (TCP Fast Open, RFC 7413 §4.2.1): MSG_FASTOPEN, and the first write after a `connect`
//! that TCP_FASTOPEN_CONNECT put off.
//!
//! The bytes are put into the ring first, then the transport is asked to connect. It sends them with the SYN if it has a
//! cookie for the server; if not, the program keeps them, or they go after the handshake if the call waits for that.

use crate::buffers::Buffers;
use crate::socket::{Socket, bit};
use crate::stream::{self, Source};
use crate::sys::{Errno, Result};
use crate::{convert, domain, establish, readiness, zerocopy};
use core::ffi::c_int;
use eft_base::Endpoint;
use eft_channel::socket::{Opt, early, flag};

/// More than any SYN carries.
const CHUNK: usize = 65536;

/// Whether the transport took the bytes.
#[derive(PartialEq, Eq)]
enum Begun {
    /// The transport has them.
    Taken,
    /// The attempt began without them.
    Without,
}

/// `sendto` and `sendmsg` with MSG_FASTOPEN.
pub fn send(fd: c_int, socket: &Socket, buffers: &mut Buffers, flags: c_int, to: Endpoint) -> Result<usize> {
    if flags & libc::MSG_OOB != 0 {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    let state = socket.page.flags();
    if socket.has(bit::LISTENING) || state & flag::CONNECTED != 0 {
        return Err(Errno(libc::EISCONN));
    }
    if state & flag::DEAD != 0 {
        socket.take_error()?;
        return Err(Errno(libc::EPIPE));
    }
    if state & flag::CONNECTING != 0 {
        return Err(Errno(libc::EALREADY));
    }
    let waits = !readiness::must_not_wait(fd, socket, flags);
    let (n, begun) = begin(fd, socket, buffers, waits, to)?;
    if n > 0 && (waits || begun == Begun::Taken) {
        zerocopy::sent(socket, flags);
    }
    if !waits {
        return if begun == Begun::Taken { Ok(n) } else { Err(Errno(libc::EINPROGRESS)) };
    }
    establish::await_connected(fd, socket)?;
    match buffers.left() {
        0 => Ok(n),
        _ => Ok(n + stream::send(fd, socket, buffers, flags & !(libc::MSG_FASTOPEN | libc::MSG_ZEROCOPY))
            .unwrap_or(0)),
    }
}

/// The first write of a socket whose `connect` was put off.
pub fn send_first(fd: c_int, socket: &Socket, buffers: &mut Buffers, flags: c_int) -> Result<usize> {
    send(fd, socket, buffers, flags, socket.page.remote()).map_err(|errno| match errno {
        // The cookie was forgotten meanwhile.
        Errno(libc::EINPROGRESS) => Errno(libc::EAGAIN),
        other => other,
    })
}

/// Puts bytes into the ring and connects; returns how many were taken. No other thread writes before that is known.
fn begin(
    fd: c_int,
    socket: &Socket,
    buffers: &mut Buffers,
    waits: bool,
    to: Endpoint,
) -> Result<(usize, Begun)> {
    let page = &socket.page;
    let guard = socket.lock_send()?;
    let n = buffers.fill(socket, 0, buffers.left().min(page.sendable()).min(CHUNK))?;
    page.set_send_end(n as u64);
    readiness::plug(fd, socket);
    page.set_option(Opt::FastOpenConnect, early::DATA);
    let begun = match establish::request_connect(socket, to) {
        Ok(()) => Ok(Begun::Taken),
        Err(Errno(libc::EINPROGRESS)) => Ok(Begun::Without),
        Err(errno) => Err(errno),
    };
    let kept = matches!(begun, Ok(Begun::Taken)) || (begun.is_ok() && waits);
    if !kept {
        page.set_send_end(0);
    }
    page.set_option(Opt::FastOpenConnect, early::NONE);
    drop(guard);
    domain::notify(socket);
    socket.put_bits(bit::DEFERRED, false);
    if begun.is_err() && !socket.has(bit::BOUND) {
        convert::to_kernel(fd, socket)?;
    }
    begun.map(|begun| (n, begun))
}
