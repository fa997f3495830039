//! From kernel socket to eft socket, and back while nothing has happened yet.
//!
//! A socket begins in the kernel. When its first address shows that it is eft's, a fresh eft
//! descriptor replaces it under the same number (and under all its duplicates in this process),
//! with its options, flags and epoll registrations. A duplicate in another process, made by a fork
//! before the decision, stays with the kernel.

use crate::descriptor::{begin, copy_owner, copy_status_flags, entry, numbers_of, replace};
use crate::domain::domain;
use crate::loopback::Taken;
use crate::socket::{Hidden, Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::table::{self, Entry};
use crate::{control, loopback, options, owner, pair};
use core::ffi::c_int;
use eft_base::{Endpoint, WireAddress};
use eft_channel::socket::{Opt, flag};
use eft_messages::control::{Request, op};

/// Makes an eft socket that is to be bound to this port (0: to none yet, or to any), and to be connected from there to `peer`, if it
/// is known; returns its descriptor (close-on-exec) and handle. `descriptor` is not in the table yet.
fn open(stream: bool, (port, peer): (u16, Option<Endpoint>)) -> Result<(c_int, &'static Socket)> {
    let domain = domain().ok_or(Errno(libc::ENETDOWN))?;
    if !stream && !domain.has_udp() {
        return Err(Errno(libc::EPROTONOSUPPORT));
    }
    let (near, far, inode) = pair::make()?;
    let request = Request {
        op: op::OPEN,
        port,
        value: inode,
        address: peer.map_or(WireAddress::default(), |peer| peer.address.into()),
        args: [if stream { 1 } else { 2 }, peer.map_or(0, |peer| peer.port.into()), 0, 0],
        ..Request::default()
    };
    let reply = control::request(request, Some(far));
    sys::close(far);
    let opened = reply.and_then(|reply| match domain.socket(reply.slot) {
        Some(socket) if socket.page.owner().is_some() && socket.is_stream() == stream => Ok(socket),
        None => Err(Errno(libc::ENOBUFS)),
        Some(_) => Err(Errno(libc::EPROTO)),
    });
    match opened {
        Ok(socket) => {
            begin(socket);
            socket.page.set_inode(inode);
            Ok((near, socket))
        }
        Err(errno) => {
            sys::close(near);
            Err(errno)
        }
    }
}

/// Replaces the undecided socket `fd` by an eft socket that is to be bound to this port (0: to none yet, or to any). With `keep`,
/// the kernel socket is returned too, under a hidden number.
pub fn to_eft(
    fd: c_int,
    stream: bool,
    inet6: bool,
    keep: bool,
    port: u16,
) -> Result<(&'static Socket, Option<c_int>)> {
    to_eft_for(fd, stream, inet6, keep, (port, None))
}

/// As [`to_eft`], for a socket that is to be connected to a peer, if it is known.
pub fn to_eft_for(
    fd: c_int,
    stream: bool,
    inet6: bool,
    keep: bool,
    use_of: (u16, Option<Endpoint>),
) -> Result<(&'static Socket, Option<c_int>)> {
    if !table::fits(fd) {
        return Err(Errno(libc::EMFILE));
    }
    let (inode, _) = sys::identity(fd)?;
    let (near, socket) = open(stream, use_of)?;
    if inet6 {
        socket.set_bits(bit::INET6);
        socket.put_bits(bit::V6ONLY, sys::v6_only(fd));
    }
    if !matches!(table::get(fd), Entry::Undecided { plain: true, .. }) {
        options::carry_over(fd, near, socket);
        if copy_owner(fd, near) {
            owner::tell(near, socket);
        }
        if matches!(table::get(fd), Entry::Undecided { segment: true, .. }) {
            options::carry_segment(fd, near, socket);
        }
        if matches!(table::get(fd), Entry::Undecided { congestion: true, .. }) {
            options::carry_congestion(fd, near, socket);
        }
    }
    let flags = copy_status_flags(fd, near);
    socket.put_bits(bit::NONBLOCKING, flags & libc::O_NONBLOCK != 0);
    socket.put_bits(bit::WATCHED, flags & libc::O_ASYNC != 0);
    let kept = keep.then(|| hide_copy(fd)).flatten();
    for number in table::numbers(0, c_int::MAX) {
        let same = || number == fd || sys::identity(number).is_ok_and(|(i, _)| i == inode);
        if matches!(table::get(number), Entry::Undecided { .. }) && same() {
            replace(near, number, entry(socket));
        }
    }
    sys::close(near);
    Ok((socket, kept))
}

/// A second descriptor of `fd` under a hidden number, close-on-exec as `fd` is.
fn hide_copy(fd: c_int) -> Option<c_int> {
    let copy = sys::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3).ok()? as c_int;
    match sys::move_high(copy, sys::is_cloexec(fd)) {
        Ok(hidden) => {
            table::set(hidden, Entry::Hidden);
            Some(hidden)
        }
        Err(_) => {
            sys::close(copy);
            None
        }
    }
}

/// Gives an unconnected eft socket back to the kernel, since its program uses the loopback after
/// all. Its address is bound again there.
pub fn to_kernel(fd: c_int, socket: &Socket) -> Result<()> {
    let inet6 = socket.has(bit::INET6);
    // The kernel's own wildcard hears what the second one did.
    socket.take_loopback(Hidden::Second).into_iter().for_each(loopback::give_up);
    let kernel = if let Some(hidden) = socket.take_loopback(Hidden::First) {
        table::forget(hidden);
        hidden
    } else {
        let kernel = options::fresh(socket)?;
        options::carry_back(fd, socket, kernel);
        if socket.has(bit::BOUND) {
            let _ = loopback::bind(kernel, socket.page.local().port, inet6, Taken::Wait);
        }
        kernel
    };
    let _ = sys::fcntl(kernel, libc::F_SETFL, 0);
    copy_status_flags(fd, kernel);
    copy_owner(fd, kernel);
    if socket.is_stream() && socket.page.flags() & flag::CONNECTED != 0 {
        // AF_UNSPEC dissolves a connection: its close is a reset, as Linux's is.
        socket.page.set_option(Opt::Linger, 1);
    }
    for number in numbers_of(socket) {
        let stream = socket.is_stream();
        replace(
            kernel,
            number,
            Entry::Undecided { stream, inet6, plain: false, begun: false, segment: false, congestion: false },
        );
    }
    sys::close(kernel);
    Ok(())
}
