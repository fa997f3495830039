//! Connects, reconnects and disconnects a socket of eft, and waits for the end of the attempt.

use super::binding::move_to_peer;
use crate::convert;
use crate::options::signatures;
use crate::socket::{Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::{control, loopback, readiness};
use core::ffi::c_int;
use eft_base::{Endpoint, WireAddress};
use eft_channel::socket::{Opt, early, flag};
use eft_messages::control::{Request, op};

/// Whether it is neither connected nor listening nor has a peer: it can still go back to the kernel.
pub(super) fn is_idle(socket: &Socket) -> bool {
    socket.page.flags() == 0 && !socket.has(bit::PEER | bit::LISTENING | bit::DEFERRED)
}

pub(super) fn disconnect(fd: c_int, socket: &Socket) -> Result<c_int> {
    if socket.is_stream() {
        // The old connection is closed with its descriptor; the number gets a fresh socket.
        convert::to_kernel(fd, socket)?;
        return Ok(0);
    }
    request_connect(socket, Endpoint::UNSPECIFIED)?;
    socket.put_bits(bit::PEER | bit::LOOPBACK_PEER, false);
    if let Some(shadow) = loopback::of(socket) {
        loopback::disconnect(socket, shadow);
    }
    Ok(0)
}

/// Asks sockets to begin the attempt, or to set the peer. Returns how many bytes of those in the send ring were taken.
pub fn request_connect(socket: &Socket, to: Endpoint) -> Result<u64> {
    control::request(
        Request {
            op: op::CONNECT,
            slot: socket.slot,
            address: WireAddress::from(to.address),
            port: to.port,
            ..Request::default()
        },
        None,
    )
    .map(|reply| reply.value)
}

pub(super) fn connect_eft(fd: c_int, socket: &'static Socket, to: Endpoint) -> Result<c_int> {
    if !socket.is_stream() {
        request_connect(socket, to)?;
        if !socket.has(bit::BOUND) {
            // The transport has bound it along the way.
            socket.set_bits(bit::BOUND | bit::WILDCARD | bit::ANY_PORT);
        }
        socket.put_bits(bit::LOOPBACK_PEER, false);
        socket.set_bits(bit::PEER);
        if let Some(shadow) = loopback::of(socket) {
            loopback::shut_out(shadow);
        }
        return Ok(0);
    }
    let flags = socket.page.flags();
    if socket.has(bit::LISTENING) || socket.has(bit::DEFERRED) {
        return Err(Errno(libc::EISCONN));
    }
    if flags & flag::DEAD != 0 {
        if let Err(errno) = socket.take_error() {
            renew(fd, socket);
            return Err(errno);
        }
        return connect_again(fd, socket, to);
    }
    if flags & flag::CONNECTED != 0 {
        if socket.has(bit::CONNECT_TOLD) {
            return Err(Errno(libc::EISCONN));
        }
        socket.set_bits(bit::CONNECT_TOLD);
        return Ok(0);
    }
    if flags & flag::CONNECTING != 0 {
        if sys::is_nonblocking(fd) {
            return Err(Errno(libc::EALREADY));
        }
        return await_connected(fd, socket);
    }
    match socket.has(bit::EARLY_CONNECT) {
        true => begin_or_defer(fd, socket, to),
        false => begin(fd, socket, to),
    }
}

fn begin(fd: c_int, socket: &Socket, to: Endpoint) -> Result<c_int> {
    stop_writing(fd, socket)?;
    match request_connect(socket, to) {
        Err(Errno(libc::EXDEV)) => connect_eft(fd, move_to_peer(fd, socket, to)?, to),
        begun => await_begun(fd, socket, begun),
    }
}

/// TCP_FASTOPEN_CONNECT: with a cookie, the attempt is deferred to the first write (RFC 7413 §4.2.1). Else it begins now,
/// and asks for a cookie.
fn begin_or_defer(fd: c_int, socket: &Socket, to: Endpoint) -> Result<c_int> {
    socket.page.set_option(Opt::FastOpenConnect, early::DEFER);
    let begun = request_connect(socket, to);
    socket.page.set_option(Opt::FastOpenConnect, early::NONE);
    if matches!(begun, Err(Errno(libc::EXDEV))) {
        return connect_eft(fd, move_to_peer(fd, socket, to)?, to);
    }
    if matches!(begun, Err(Errno(libc::EAGAIN))) {
        socket.page.set_remote(to);
        socket.set_bits(bit::DEFERRED);
        return Ok(0);
    }
    stop_writing(fd, socket)?;
    // It may have ended before the plug was there.
    crate::domain::notify(socket);
    await_begun(fd, socket, begun)
}

/// Begins a deferred connect, without data.
pub fn begin_deferred(fd: c_int, socket: &Socket) -> Result<()> {
    if !socket.has(bit::DEFERRED) {
        return Ok(());
    }
    socket.put_bits(bit::DEFERRED, false);
    match begin(fd, socket, socket.page.remote()) {
        Ok(_) | Err(Errno(libc::EINPROGRESS)) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Not writable until the attempt has ended, one way or the other.
fn stop_writing(fd: c_int, socket: &Socket) -> Result<()> {
    let _guard = socket.lock_send()?;
    readiness::plug(fd, socket);
    Ok(())
}

fn await_begun(fd: c_int, socket: &Socket, begun: Result<u64>) -> Result<c_int> {
    if let Err(errno) = begun {
        // Nothing was begun. The descriptor gets its former state back, and polls accordingly, without the plug.
        if !socket.has(bit::BOUND) {
            convert::to_kernel(fd, socket)?;
        }
        return Err(errno);
    }
    if sys::is_nonblocking(fd) {
        return Err(Errno(libc::EINPROGRESS));
    }
    await_connected(fd, socket)
}

/// The last attempt failed and the program knows: the number gets a fresh socket.
fn connect_again(fd: c_int, socket: &Socket, to: Endpoint) -> Result<c_int> {
    let (inet6, keys) = (socket.has(bit::INET6), signatures::all(&socket.page));
    let wishes = socket.page.authentication_wishes();
    convert::to_kernel(fd, socket)?;
    let (fresh, _) = convert::to_eft(fd, true, inet6, false, 0)?;
    signatures::restore(&fresh.page, &keys);
    fresh.page.set_authentication_wishes(&wishes);
    connect_eft(fd, fresh, to)
}

/// `connect` tells that the attempt failed: the socket is as a new one, as on Linux, unless it has what only eft keeps.
fn renew(fd: c_int, socket: &Socket) {
    let never = socket.page.flags() & flag::CONNECTED == 0;
    let is_keyed =
        !signatures::all(&socket.page).is_empty() || socket.page.authentication_wishes().word() != 0;
    if never && !socket.has(bit::BOUND) && !is_keyed {
        // If it cannot be had, the old one will do.
        let _ = convert::to_kernel(fd, socket);
    }
}

/// Waits for the end of an attempt.
pub fn await_connected(fd: c_int, socket: &Socket) -> Result<c_int> {
    let mut rounds = 0;
    loop {
        let flags = socket.page.flags();
        if flags & flag::DEAD != 0 {
            let errno = socket.take_error().err().unwrap_or(Errno(libc::ECONNREFUSED));
            renew(fd, socket);
            return Err(errno);
        }
        if flags & flag::CONNECTED != 0 {
            socket.set_bits(bit::CONNECT_TOLD);
            return Ok(0);
        }
        if socket.has(bit::ORPHAN) {
            return Err(Errno(libc::ENETDOWN));
        }
        match readiness::wait(fd, libc::POLLOUT, libc::SO_SNDTIMEO) {
            Ok(()) => {}
            Err(Errno(libc::EAGAIN)) => return Err(Errno(libc::EINPROGRESS)),
            Err(errno) => return Err(errno),
        }
        rounds += 1;
        if rounds > 1 {
            readiness::examine(fd, socket);
        }
    }
}
