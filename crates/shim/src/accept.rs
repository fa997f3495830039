//! accept: from the listener's ring, then from the hidden kernel listener.

use crate::descriptor;
use crate::socket::{Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::table;
use crate::{
    address, beside, control, domain, errno, fdops, held, looking, loopback, options, pair, readiness, real,
};
use core::ffi::c_int;
use eft_base::Endpoint;
use eft_channel::socket::AcceptRecord;
use eft_messages::control::{Request, op};
use libc::{sockaddr, socklen_t};
use zerocopy::IntoBytes;

/// What an accepted connection gets.
enum Descriptor {
    Own {
        near: c_int,
        far: c_int,
        inode: u64,
    },
    /// A number alone (`crate::held`).
    Held {
        near: c_int,
        holder: u64,
    },
}

impl Descriptor {
    fn make(flags: c_int) -> Result<Descriptor> {
        match held::number(flags) {
            Some((near, holder)) => Ok(Descriptor::Held { near, holder }),
            None => pair::make().map(|(near, far, inode)| Descriptor::Own { near, far, inode }),
        }
    }

    fn near(&self) -> c_int {
        match *self {
            Descriptor::Own { near, .. } | Descriptor::Held { near, .. } => near,
        }
    }

    /// Once sockets was told, if it was.
    fn close_far(&self) {
        if let Descriptor::Own { far, .. } = self {
            sys::close(*far);
        }
    }

    /// Gives it the flags that the program asked for.
    fn finish(self, flags: c_int) -> c_int {
        if let Descriptor::Own { near, .. } = self {
            if flags & libc::SOCK_CLOEXEC == 0 {
                sys::set_cloexec(near, false);
            }
            if flags & libc::SOCK_NONBLOCK != 0 {
                let _ = sys::fcntl(near, libc::F_SETFL, libc::O_NONBLOCK as usize);
                fdops::mirror_nonblocking(near, true);
            }
        }
        self.near()
    }
}

/// `accept4` on an eft listener.
///
/// # Safety
/// `address` and `len` must be as for `accept4`.
pub unsafe fn accept(
    fd: c_int,
    listener: &Socket,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> Result<c_int> {
    if flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
        return Err(Errno(libc::EINVAL));
    }
    if !listener.is_stream() {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    let mut rounds = 0;
    loop {
        if !listener.has(bit::LISTENING) || listener.wishes_shut_read() {
            return Err(Errno(libc::EINVAL));
        }
        // SAFETY: by the caller.
        if let Some(accepted) = unsafe { accept_one(fd, listener, address, len, flags) }? {
            readiness::found_something(listener);
            return Ok(accepted);
        }
        if listener.has(bit::ORPHAN) {
            descriptor::fall_silent(fd, listener)?;
        }
        if readiness::must_not_wait(fd, listener, 0) {
            readiness::found_nothing(fd, listener);
            return Err(Errno(libc::EAGAIN));
        }
        if rounds == 0 {
            // The kernel takes the descriptor first, and does not wait without one.
            sys::descriptor_free()?;
        }
        looking::part(listener);
        readiness::wait(fd, libc::POLLIN, libc::SO_RCVTIMEO)?;
        rounds += 1;
        if rounds % 8 == 0 {
            readiness::examine(fd, listener);
        }
    }
}

/// Takes a connection from either listener, if there is one, and keeps the descriptor's readiness
/// right.
///
/// # Safety
/// As [`accept`].
unsafe fn accept_one(
    fd: c_int,
    listener: &Socket,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> Result<Option<c_int>> {
    let inet6 = listener.has(bit::INET6);
    while let Some(queue) = beside::waiting(listener) {
        // The descriptor first: without one the connection stays in the queue, as in the kernel's.
        let descriptor = Descriptor::make(flags)?;
        let attached = match pop(fd, listener, queue) {
            Ok(Some(record)) => attach(listener, &record, &descriptor),
            Ok(None) => Ok(None),
            Err(errno) => Err(errno),
        };
        descriptor.close_far();
        let Ok(Some(remote)) = attached else {
            sys::close(descriptor.near());
            attached?;
            continue;
        };
        let accepted = descriptor.finish(flags);
        retire(fd, listener);
        // SAFETY: by the caller.
        if let Err(errno) = unsafe { address::write(remote, inet6, address, len) } {
            // The connection is dropped, as in the kernel.
            table::forget(accepted);
            sys::close(accepted);
            return Err(errno);
        }
        return Ok(Some(accepted));
    }
    // SAFETY: by the caller.
    if let Some(accepted) = unsafe { accept_kernel(listener, address, len, flags) }? {
        retire(fd, listener);
        return Ok(Some(accepted));
    }
    retire(fd, listener);
    Ok(None)
}

/// Gives up the token of each listener that has no more.
fn retire(fd: c_int, first: &Socket) {
    for listener in beside::all(first) {
        // The kernel's have the first one's.
        let waiting = || {
            beside::has_record(listener)
                || loopback::all(listener).any(|k| sys::poll(k, libc::POLLIN, Some(0)).is_ok_and(|e| e != 0))
        };
        if listener.token.is_posted() && !waiting() {
            readiness::retire(fd, listener, waiting);
        } else {
            readiness::took_a_part(fd, listener);
        }
    }
}

/// Takes a record from the ring of one of the listeners of `first`, whose lock is that of all.
fn pop(fd: c_int, first: &Socket, queue: &Socket) -> Result<Option<AcceptRecord>> {
    let guard = first.lock_receive().map_err(|e| readiness::reentered(fd, first, 0, e))?;
    let page = &queue.page;
    let size = size_of::<AcceptRecord>();
    if page.receivable() < size {
        return Ok(None);
    }
    let mut record = AcceptRecord::default();
    let taken = page.receive_taken();
    page.read_receive(taken, record.as_mut_bytes());
    page.set_receive_taken(taken.wrapping_add(size as u64));
    drop(guard);
    crate::domain::notify_taken(queue);
    Ok(Some(record))
}

/// Gives a connection its descriptor and returns the peer. `None` if the record is stale.
fn attach(listener: &Socket, record: &AcceptRecord, descriptor: &Descriptor) -> Result<Option<Endpoint>> {
    let near = descriptor.near();
    if !table::fits(near) {
        return Err(Errno(libc::EMFILE));
    }
    let domain = domain::domain().ok_or(Errno(libc::ENETDOWN))?;
    let socket = domain.socket(record.slot).ok_or(Errno(libc::ENOMEM))?;
    if socket.page.incarnation() != record.incarnation || !socket.is_stream() {
        return Ok(None);
    }
    descriptor::begin(socket);
    // Its descriptor is new, and has no time limits.
    let own = bit::CONNECT_TOLD | bit::BOUND | bit::PATIENT;
    socket.set_bits(own | listener.bits() & (bit::INET6 | bit::V6ONLY));
    options::inherit(listener, socket);
    // Without a stack the connection is over, and the next one is tried.
    let told = tell(socket, record, descriptor);
    if domain.is_away() {
        return Ok(None);
    }
    told?;
    table::set(near, descriptor::entry(socket));
    crate::standard::follow(near);
    Ok(Some(Endpoint::new(record.remote.into(), record.remote_port)))
}

/// Tells the stack that the connection is taken.
fn tell(socket: &Socket, record: &AcceptRecord, descriptor: &Descriptor) -> Result<()> {
    match *descriptor {
        Descriptor::Own { far, inode, .. } => {
            socket.page.set_inode(inode);
            let request = Request {
                op: op::ACCEPTED,
                slot: record.slot,
                value: inode,
                args: [record.incarnation, 0, 0, 0],
                ..Request::default()
            };
            control::tell(request, Some(far))
        }
        Descriptor::Held { holder, .. } => {
            socket.page.hold(holder);
            Ok(())
        }
    }
}

/// Takes a connection of a hidden listener, if there is one. Without a free descriptor it stays in
/// the queue.
///
/// # Safety
/// As [`accept`].
unsafe fn accept_kernel(
    listener: &Socket,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> Result<Option<c_int>> {
    for hidden in loopback::all(listener) {
        let before = errno::get();
        // SAFETY: by the caller.
        let accepted = unsafe { real::accept4.get()(hidden, address, len, flags) };
        if accepted >= 0 {
            table::forget(accepted);
            return Ok(Some(accepted));
        }
        let errno = errno::get();
        errno::set(before);
        // The kernel reports EMFILE even if no connection waits.
        let none_waits = || sys::poll(hidden, libc::POLLIN, Some(0)) == Ok(0);
        if matches!(errno, Errno(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)) && !none_waits()
        {
            return Err(errno);
        }
    }
    Ok(None)
}
