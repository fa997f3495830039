//! From kernel socket to eft socket, and back while nothing has happened yet.
//!
//! A socket begins in the kernel. When its first address shows that it is eft's, a fresh eft
//! descriptor replaces it under the same number (and under all its duplicates in this process),
//! with its options, flags and epoll registrations. A duplicate in another process, made by a fork
//! before the decision, stays with the kernel.

use crate::family::family;
use crate::socket::{Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::table::{self, Entry};
use crate::{confined, control, epoll, limit, lock, options, process, readiness, standard};
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use eft_messages::control::{Request, op};

/// Makes an eft socket; returns its descriptor (close-on-exec) and handle. `descriptor` is not in
/// the table yet.
fn open(stream: bool) -> Result<(c_int, &'static Socket)> {
    let family = family().ok_or(Errno(libc::ENETDOWN))?;
    if !stream && !family.has_udp() {
        return Err(Errno(libc::EPROTONOSUPPORT));
    }
    let (near, far, inode) = descriptor_pair()?;
    let request = Request {
        op: op::OPEN,
        value: inode,
        args: [if stream { 1 } else { 2 }, 0, 0, 0],
        ..Request::default()
    };
    let reply = control::request(request, Some(far));
    sys::close(far);
    let opened = reply.and_then(|reply| match family.socket(reply.slot) {
        Some(socket) if socket.page.owner().is_some() && socket.is_stream() == stream => Ok(socket),
        None => Err(Errno(libc::ENOBUFS)),
        Some(_) => Err(Errno(libc::EPROTO)),
    });
    match opened {
        Ok(socket) => {
            begin(socket, inode);
            Ok((near, socket))
        }
        Err(errno) => {
            sys::close(near);
            Err(errno)
        }
    }
}

/// Both ends of an eft descriptor, the near one with the smallest send buffer, and its inode.
///
/// The far end goes to sockets at once, so it takes none of the numbers that the program may have: a
/// program that has one left can accept.
pub fn descriptor_pair() -> Result<(c_int, c_int, u64)> {
    let [near, far] = match sys::pair() {
        Err(Errno(libc::EMFILE)) => limit::with_one_more(sys::pair)?,
        pair => pair?,
    };
    let _ = sys::set_option(near, libc::SOL_SOCKET, libc::SO_SNDBUF, &1i32.to_ne_bytes());
    match sys::identity(near) {
        Ok((inode, _)) => Ok((near, far, inode)),
        Err(errno) => {
            sys::close(near);
            sys::close(far);
            Err(errno)
        }
    }
}

/// A slot's new life in this family: locks and inode. Before anybody shares it.
pub fn begin(socket: &Socket, inode: u64) {
    lock::init(&socket.page);
    socket.page.set_inode(inode);
}

/// The table entry of a socket.
pub fn entry(socket: &Socket) -> Entry {
    Entry::Eft { slot: socket.slot, incarnation: socket.page.incarnation() }
}

/// Replaces the undecided socket `fd` by an eft socket. With `keep`, the kernel socket is returned
/// too, under a hidden number.
pub fn to_eft(fd: c_int, stream: bool, inet6: bool, keep: bool) -> Result<(&'static Socket, Option<c_int>)> {
    if !table::fits(fd) {
        return Err(Errno(libc::EMFILE));
    }
    let (inode, _) = sys::identity(fd)?;
    let (near, socket) = open(stream)?;
    if inet6 {
        socket.set_bits(bit::INET6);
    }
    if !matches!(table::get(fd), Entry::Undecided { plain: true, .. }) {
        options::carry_over(fd, near, socket);
        if matches!(table::get(fd), Entry::Undecided { segment: true, .. }) {
            options::carry_segment(fd, near, socket);
        }
    }
    socket.put_bits(bit::NONBLOCKING, copy_status_flags(fd, near));
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

/// Puts `with` under `number`, keeping close-on-exec and epoll registrations.
fn replace(with: c_int, number: c_int, entry: Entry) {
    epoll::take_out(number);
    let cloexec = sys::is_cloexec(number);
    let flags = if cloexec { libc::O_CLOEXEC } else { 0 };
    if sys::dup3(with, number, flags).is_ok() {
        table::set(number, entry);
        standard::follow(number);
    }
    epoll::put_back(number);
}

/// Returns whether O_NONBLOCK is set.
fn copy_status_flags(from: c_int, to: c_int) -> bool {
    let wanted = (libc::O_NONBLOCK | libc::O_ASYNC) as usize;
    if let Ok(flags) = sys::fcntl(from, libc::F_GETFL, 0)
        && flags & wanted != 0
    {
        let _ = sys::fcntl(to, libc::F_SETFL, flags & wanted);
        return flags & libc::O_NONBLOCK as usize != 0;
    }
    false
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

/// Gives an eft socket that is not connected back to the kernel: its program turned to the loopback
/// after all. What it was bound to is bound again there.
pub fn to_kernel(fd: c_int, socket: &Socket) -> Result<()> {
    let inet6 = socket.has(bit::INET6);
    let hidden = socket.loopback.swap(-1, Ordering::AcqRel);
    let kernel = if hidden >= 0 {
        table::forget(hidden);
        hidden
    } else {
        let kernel = options::fresh(socket)?;
        options::carry_back(fd, socket, kernel);
        if socket.has(bit::BOUND) {
            let _ = crate::loopback::bind(kernel, socket.page.local().port, inet6);
        }
        kernel
    };
    let _ = sys::fcntl(kernel, libc::F_SETFL, 0);
    copy_status_flags(fd, kernel);
    for number in numbers_of(socket) {
        let stream = socket.is_stream();
        replace(
            kernel,
            number,
            Entry::Undecided { stream, inet6, plain: false, begun: false, segment: false },
        );
    }
    sys::close(kernel);
    Ok(())
}

fn numbers_of(socket: &Socket) -> impl Iterator<Item = c_int> {
    let own = entry(socket);
    table::numbers(0, c_int::MAX).filter(move |&number| table::get(number) == own)
}

/// Makes a listener or datagram socket silent whose far ends are all gone. An error if that cannot be helped.
///
/// While a stack is away, the family's custodian keeps such descriptors silent. If both were killed, the kernel says that
/// they have hung up, and a program that waits for them spins: there is nothing to accept, and nobody closes a listener for
/// that. So a call that finds nothing gets a fresh descriptor, whose far end this process keeps; each process does that
/// for itself. Its program sleeps until it is started again, and its connections are over as ever.
pub fn fall_silent(fd: c_int, socket: &Socket) -> Result<()> {
    if confined::is_confined() || !process::owns_memory() {
        return Err(Errno(libc::ENETDOWN));
    }
    if sys::poll(fd, libc::POLLIN, Some(0))? & libc::POLLHUP == 0 {
        return Ok(());
    }
    let (near, far, inode) = descriptor_pair()?;
    let kept = sys::move_high(far, true).unwrap_or(far);
    table::set(kept, Entry::Hidden);
    if socket.has(bit::LISTENING) {
        readiness::stop(near);
    }
    // The messages that the token stands for went with the old descriptor.
    socket.token.retire(|| false);
    socket.page.set_inode(inode);
    copy_status_flags(fd, near);
    for number in numbers_of(socket) {
        replace(near, number, entry(socket));
    }
    sys::close(near);
    Ok(())
}
