//! The send and receive calls on eft sockets, for both kinds, as the symbols need them.

use crate::address::{self, Target};
use crate::buffers::Buffers;
use crate::received::Received;
use crate::segmentation::Sent;
use crate::shadow_send;
use crate::socket::{Socket, bit};
use crate::sys::{Errno, Result};
use crate::table::{self, Entry};
use crate::{
    ancillary, convert, datagram, early, error_queue, establish, flow, refusal, stream, urgent, zerocopy,
};
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use eft_base::Endpoint;
use libc::{iovec, msghdr, sockaddr, socklen_t};

/// Sends what `buffers` hold.
pub fn send(fd: c_int, socket: &Socket, mut buffers: Buffers, flags: c_int) -> Result<usize> {
    match socket.is_stream() {
        true if socket.has(bit::DEFERRED) => early::send_first(fd, socket, &mut buffers, flags),
        true => stream::send(fd, socket, &mut buffers, flags),
        // SAFETY: no address, no control data.
        false => unsafe { send_datagram(fd, socket, buffers, flags, (core::ptr::null(), 0), Sent::NONE) },
    }
}

/// The path of a datagram.
enum Way {
    /// Over the stack: to this endpoint, or to the peer.
    Stack(Option<Endpoint>),
    /// Over the kernel's loopback: to the address that came with the call, or to the peer there.
    Shadow { addressed: bool },
}

/// The path for an address. A datagram that is held back goes to the destination of its first part, whatever address comes with
/// the rest.
///
/// # Safety
/// `to` must be null or valid for `len` bytes.
unsafe fn way(socket: &Socket, to: *const sockaddr, len: socklen_t) -> Result<Way> {
    let unaddressed = match socket.has(bit::LOOPBACK_PEER) {
        true => Way::Shadow { addressed: false },
        false => Way::Stack(None),
    };
    if socket.has(bit::LOOPBACK_MORE) {
        return Ok(Way::Shadow { addressed: false });
    }
    let begun = socket.pending().load(Ordering::Relaxed) != 0;
    if to.is_null() || len == 0 {
        return Ok(if begun { Way::Stack(None) } else { unaddressed });
    }
    // SAFETY: by the caller.
    match unsafe { address::read_destination(to, len, socket.has(bit::INET6)) }? {
        Target::Eft(to) if !to.address.is_unspecified() => {
            address::suits(to, socket.has(bit::INET6), socket.has(bit::V6ONLY))?;
            Ok(Way::Stack(Some(to)))
        }
        _ if begun => Ok(Way::Stack(None)),
        Target::Unspecified => Ok(unaddressed),
        // The kernel treats the wildcard address as its own, on the loopback.
        Target::Eft(_) | Target::Loopback => Ok(Way::Shadow { addressed: true }),
        Target::Kernel => Err(Errno(libc::ENETUNREACH)),
    }
}

/// Sends one datagram.
///
/// # Safety
/// The address must be null or valid for its length, `control` as for `sendmsg`.
unsafe fn send_datagram(
    fd: c_int,
    socket: &Socket,
    mut buffers: Buffers,
    flags: c_int,
    (address, len): (*const sockaddr, socklen_t),
    control: Sent,
) -> Result<usize> {
    // SAFETY: by the caller.
    let sent = match unsafe { way(socket, address, len) }? {
        Way::Stack(to) => {
            if to.is_some() {
                establish::bind_any(socket)?;
            }
            if to.is_some() && !socket.has(bit::PEER) {
                // SAFETY: by the caller.
                unsafe { flow::choose(socket, address, len) };
            }
            // SAFETY: by the caller.
            unsafe { datagram::send(fd, socket, &mut buffers, to, flags, control) }
        }
        Way::Shadow { addressed } => {
            establish::bind_any(socket)?;
            let to = if addressed { (address, len) } else { (core::ptr::null(), 0) };
            // SAFETY: by the caller.
            unsafe { shadow_send::send(fd, socket, &buffers, flags, to, control) }
        }
    }?;
    zerocopy::sent(socket, flags);
    Ok(sent)
}

/// Receives into `buffers`, without the sender's address.
pub fn receive(fd: c_int, socket: &Socket, mut buffers: Buffers, flags: c_int) -> Result<usize> {
    if socket.is_stream() {
        return stream::receive(fd, socket, &mut buffers, flags);
    }
    let received = datagram::receive(fd, socket, &mut buffers, flags)?;
    Ok(received.returned(flags))
}

/// `readv`, and `preadv2` without an offset: `flags` are its RWF flags.
///
/// # Safety
/// `list` and `count` must be as for `readv`.
pub unsafe fn read_vector(
    fd: c_int,
    socket: &Socket,
    list: *const iovec,
    count: c_int,
    flags: c_int,
) -> Result<usize> {
    // SAFETY: by the caller.
    match unsafe { vector(list, count, flags) }? {
        Some((buffers, flags)) => receive(fd, socket, buffers, flags),
        None => Ok(0),
    }
}

/// `writev`, and `pwritev2` without an offset.
///
/// # Safety
/// `list` and `count` must be as for `writev`.
pub unsafe fn write_vector(
    fd: c_int,
    socket: &Socket,
    list: *const iovec,
    count: c_int,
    flags: c_int,
) -> Result<usize> {
    // SAFETY: by the caller.
    match unsafe { vector(list, count, flags) }? {
        Some((buffers, flags)) => send(fd, socket, buffers, flags),
        None => Ok(0),
    }
}

/// The buffers of a vectored read or write, and RWF flags as MSG flags. `None` if there are no bytes
/// to move: then nothing is done, not even an empty datagram sent.
///
/// # Safety
/// As for `readv`.
unsafe fn vector<'a>(list: *const iovec, count: c_int, flags: c_int) -> Result<Option<(Buffers<'a>, c_int)>> {
    // These have no meaning for sockets, except NOWAIT.
    const KNOWN: c_int =
        libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC | libc::RWF_NOWAIT | libc::RWF_APPEND;
    let count = usize::try_from(count).map_err(|_| Errno(libc::EINVAL))?;
    // SAFETY: by the caller.
    let buffers = unsafe { Buffers::new(list, count) }.map_err(|errno| match errno {
        // For messages, too many buffers give another errno.
        Errno(libc::EMSGSIZE) => Errno(libc::EINVAL),
        other => other,
    })?;
    if buffers.left() == 0 {
        return Ok(None);
    }
    if flags & !KNOWN != 0 {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    let nowait = flags & libc::RWF_NOWAIT != 0;
    Ok(Some((buffers, if nowait { libc::MSG_DONTWAIT } else { 0 })))
}

/// Sends on a stream, which ignores the address unless it is to be connected by this call.
///
/// # Safety
/// `to` must be null or valid for `len` bytes.
unsafe fn send_stream(
    fd: c_int,
    socket: &Socket,
    mut buffers: Buffers,
    flags: c_int,
    (to, len): (*const sockaddr, socklen_t),
) -> Result<usize> {
    if flags & libc::MSG_FASTOPEN == 0 || to.is_null() {
        return send(fd, socket, buffers, flags);
    }
    // SAFETY: by the caller.
    match unsafe { address::read(to, len) }? {
        Target::Eft(to) if !to.address.is_unspecified() => {
            address::suits(to, socket.has(bit::INET6), socket.has(bit::V6ONLY))?;
            early::send(fd, socket, &mut buffers, flags, to)
        }
        // A socket that is not eft's is connected only by `connect`.
        _ => Err(Errno(libc::EOPNOTSUPP)),
    }
}

/// `sendto` with an address.
///
/// # Safety
/// `to` must be null or valid for `len` bytes.
pub unsafe fn send_to(
    fd: c_int,
    socket: &Socket,
    buffers: Buffers,
    flags: c_int,
    to: *const sockaddr,
    len: socklen_t,
) -> Result<usize> {
    if socket.is_stream() {
        // SAFETY: by the caller.
        return unsafe { send_stream(fd, socket, buffers, flags, (to, len)) };
    }
    // SAFETY: by the caller.
    unsafe { send_datagram(fd, socket, buffers, flags, (to, len), Sent::NONE) }
}

/// `recvfrom`.
///
/// # Safety
/// `address` and `len` must be as for `recvfrom`.
pub unsafe fn receive_from(
    fd: c_int,
    socket: &Socket,
    mut buffers: Buffers,
    flags: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> Result<usize> {
    if socket.is_stream() {
        let n = stream::receive(fd, socket, &mut buffers, flags)?;
        // A stream returns no address.
        if !address.is_null() && !len.is_null() {
            // SAFETY: by the caller.
            unsafe { *len = 0 };
        }
        return Ok(n);
    }
    let received = datagram::receive(fd, socket, &mut buffers, flags)?;
    // SAFETY: by the caller.
    unsafe { address::write(received.from, socket.has(bit::INET6), address, len)? };
    Ok(received.returned(flags))
}

/// `sendmsg`.
///
/// # Safety
/// `message` must be as for `sendmsg`.
pub unsafe fn send_message(fd: c_int, socket: &Socket, message: &msghdr, flags: c_int) -> Result<usize> {
    // SAFETY: by the caller.
    unsafe {
        let buffers = Buffers::new(message.msg_iov, message.msg_iovlen)?;
        let to = (message.msg_name.cast_const().cast(), message.msg_namelen);
        if socket.is_stream() {
            return send_stream(fd, socket, buffers, flags, to);
        }
        let control = Sent { pointer: message.msg_control, len: message.msg_controllen };
        send_datagram(fd, socket, buffers, flags, to, control)
    }
}

/// `recvmsg`.
///
/// # Safety
/// `message` must be as for `recvmsg`.
pub unsafe fn receive_message(
    fd: c_int,
    socket: &Socket,
    message: &mut msghdr,
    flags: c_int,
) -> Result<usize> {
    // SAFETY: by the caller.
    let mut buffers = unsafe { Buffers::new(message.msg_iov, message.msg_iovlen)? };
    let queue = flags & libc::MSG_ERRQUEUE != 0;
    if queue && refusal::is_pending(socket) {
        let received = refusal::take_error(fd, socket, &mut buffers)?;
        // SAFETY: by the caller.
        return unsafe { receive_whole(socket, &received, message, flags) };
    }
    if socket.is_stream() && queue {
        let notice = stream::take_notice(fd, socket)?;
        message.msg_namelen = 0;
        // SAFETY: by the caller.
        unsafe { ancillary::write_notice(socket, &notice, message) };
        return Ok(0);
    }
    if queue && let Some(notice) = error_queue::take_notice(fd, socket) {
        message.msg_namelen = 0;
        // SAFETY: by the caller.
        unsafe { ancillary::write_notice(socket, &notice, message) };
        return Ok(0);
    }
    if socket.is_stream() {
        let n = stream::receive(fd, socket, &mut buffers, flags)?;
        message.msg_namelen = 0;
        // SAFETY: by the caller.
        unsafe { ancillary::write_left(socket, message) };
        message.msg_flags |= urgent::message_flags(flags, n);
        return Ok(n);
    }
    let received = datagram::receive(fd, socket, &mut buffers, flags)?;
    // SAFETY: by the caller.
    unsafe { receive_whole(socket, &received, message, flags) }
}

/// Tells of a datagram or an error.
///
/// # Safety
/// `message` must be as for `recvmsg`.
unsafe fn receive_whole(
    socket: &Socket,
    received: &Received,
    message: &mut msghdr,
    flags: c_int,
) -> Result<usize> {
    // SAFETY: by the caller.
    unsafe {
        address::write(
            received.from,
            socket.has(bit::INET6),
            message.msg_name.cast(),
            &mut message.msg_namelen,
        )?;
        ancillary::write(socket, received, message);
    }
    if received.copied < received.len {
        message.msg_flags |= libc::MSG_TRUNC;
    }
    Ok(received.returned(flags))
}

/// The eft socket at `fd`, or `None` for the real call. A datagram socket that is still undecided is decided here, by the
/// address that it first sends to, and so is a stream that MSG_FASTOPEN connects. On the kernel's network that is refused, as
/// by a kernel without Fast Open, and programs connect instead.
///
/// # Safety
/// `to` must be null or valid for `len` bytes.
pub unsafe fn decide(
    fd: c_int,
    to: *const sockaddr,
    len: socklen_t,
    flags: c_int,
) -> Option<Result<&'static Socket>> {
    match table::get(fd) {
        Entry::Undecided { stream: true, inet6, .. } if flags & libc::MSG_FASTOPEN != 0 => {
            // SAFETY: by the caller.
            match unsafe { address::read(to, len) } {
                Ok(Target::Eft(to)) if !to.address.is_unspecified() && establish::belongs(fd, inet6, to) => {
                    Some(convert::to_eft(fd, true, inet6, false, 0).map(|(socket, _)| socket))
                }
                _ => Some(Err(Errno(libc::EOPNOTSUPP))),
            }
        }
        Entry::Undecided { stream: false, inet6, begun, .. } if !to.is_null() => {
            // SAFETY: by the caller.
            match unsafe { address::read_destination(to, len, inet6) } {
                Ok(Target::Eft(to)) if !to.address.is_unspecified() && establish::belongs(fd, inet6, to) => {
                    return Some(establish::turn_to_stack(fd, inet6, begun));
                }
                Ok(Target::Loopback | Target::Eft(_)) => table::begun(fd),
                Ok(Target::Kernel) => table::forget(fd),
                _ => {}
            }
            None
        }
        Entry::Eft { .. } => table::socket(fd),
        _ => None,
    }
}

/// One buffer as a list.
pub fn buffer(pointer: *const core::ffi::c_void, len: usize) -> iovec {
    iovec { iov_base: pointer.cast_mut(), iov_len: len }
}

/// The endpoint for `getsockname` and `getpeername`.
pub fn endpoint(socket: &Socket, peer: bool) -> Result<Endpoint> {
    if !peer {
        return Ok(socket.page.local());
    }
    match socket.is_connected() {
        true => Ok(socket.page.remote()),
        false => Err(Errno(libc::ENOTCONN)),
    }
}
