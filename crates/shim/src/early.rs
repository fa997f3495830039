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

/// How much of the bytes the transport took.
enum Begun {
    Taken(usize),
    /// The attempt began without them.
    Without,
}

/// `sendto` and `sendmsg` with MSG_FASTOPEN.
pub fn send(fd: c_int, socket: &Socket, buffers: &mut Buffers, flags: c_int, to: Endpoint) -> Result<usize> {
    if flags & libc::MSG_OOB != 0 {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    let state = socket.page.flags();
    if socket.has(bit::LISTENING) || (state & flag::CONNECTED != 0 && socket.has(bit::CONNECT_TOLD)) {
        return Err(Errno(libc::EISCONN));
    }
    if state & flag::CONNECTED != 0 {
        // As Linux does, the first one after the handshake tells of its success, and sends.
        socket.set_bits(bit::CONNECT_TOLD);
        return stream::send(fd, socket, buffers, flags & !libc::MSG_FASTOPEN);
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
    if n > 0 && (waits || matches!(begun, Begun::Taken(_))) {
        zerocopy::sent(socket, flags);
    }
    if !waits {
        return match begun {
            Begun::Taken(taken) => Ok(taken),
            Begun::Without => Err(Errno(libc::EINPROGRESS)),
        };
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
    let is_empty = buffers.left() == 0;
    send(fd, socket, buffers, flags, socket.page.remote()).map_err(|errno| match errno {
        // The cookie was forgotten meanwhile.
        Errno(libc::EINPROGRESS) if !is_empty => Errno(libc::EAGAIN),
        other => other,
    })
}

/// Puts bytes into the ring and connects; returns how many were put there, and how many were taken. A call that does not wait
/// leaves there what goes with the SYN, as on Linux. No other thread writes before that is known.
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
    page.set_option(Opt::FastOpenConnect, if waits { early::DATA } else { early::FITTING });
    let begun = match establish::request_connect(socket, to) {
        // Without bytes it is a connect.
        Ok(_) if n == 0 => Ok(Begun::Without),
        // Transports of before do not say how much: they take all.
        Ok(0) => Ok(Begun::Taken(n)),
        Ok(taken) => Ok(Begun::Taken(n.min(taken as usize))),
        Err(Errno(libc::EINPROGRESS)) => Ok(Begun::Without),
        Err(errno) => Err(errno),
    };
    let kept = match begun {
        Ok(_) if waits => n,
        Ok(Begun::Taken(taken)) => taken,
        _ => 0,
    };
    page.set_send_end(kept as u64);
    page.set_option(Opt::FastOpenConnect, early::NONE);
    drop(guard);
    domain::notify(socket);
    socket.put_bits(bit::DEFERRED, false);
    if begun.is_err() && !socket.has(bit::BOUND) {
        convert::to_kernel(fd, socket)?;
    }
    begun.map(|begun| (n, begun))
}
