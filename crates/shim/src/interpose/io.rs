//! read, write, send, receive and their relatives.

use crate::buffers::Buffers;
use crate::{errno, netlink, real, rights, sendfile, splice, sys, table, transfer};
use core::ffi::{c_int, c_uint, c_void};
use libc::{iovec, mmsghdr, msghdr, off64_t, size_t, sockaddr, socklen_t, ssize_t, timespec};

macro_rules! eft {
    ($fd:expr) => {
        table::socket($fd)
    };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, to: *mut c_void, len: size_t) -> ssize_t {
    // SAFETY: the program's call, as are all below.
    unsafe {
        let Some(socket) = eft!(fd) else {
            return real::read.get()(fd, to, len);
        };
        if len == 0 {
            // Unlike recv, it does not wait for data at all.
            return errno::long(socket.map(|_| 0));
        }
        let buffer = transfer::buffer(to, len);
        errno::long(socket.and_then(|s| transfer::receive(fd, s, Buffers::one(&buffer)?, 0)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(fd: c_int, to: *mut c_void, len: size_t, room: size_t) -> ssize_t {
    check_room(len, room);
    // SAFETY: as above.
    unsafe { read(fd, to, len) }
}

/// What the fortified variants check.
fn check_room(len: size_t, room: size_t) {
    if len > room {
        crate::sys::complain("*** buffer overflow detected ***: terminated");
        std::process::abort();
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, from: *const c_void, len: size_t) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some(socket) = eft!(fd) else {
            return match netlink::send_one(fd, from, len) {
                Some(sent) => errno::long(sent),
                None => real::write.get()(fd, from, len),
            };
        };
        let buffer = transfer::buffer(from, len);
        errno::long(socket.and_then(|s| transfer::send(fd, s, Buffers::one(&buffer)?, 0)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn readv(fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some(socket) = eft!(fd) else {
            return real::readv.get()(fd, list, count);
        };
        errno::long(socket.and_then(|s| transfer::read_vector(fd, s, list, count, 0)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some(socket) = eft!(fd) else {
            return match netlink::send(fd, list, count.max(0) as usize) {
                Some(sent) => errno::long(sent),
                None => real::writev.get()(fd, list, count),
            };
        };
        errno::long(socket.and_then(|s| transfer::write_vector(fd, s, list, count, 0)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(fd: c_int, to: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some(socket) = eft!(fd) else {
            return real::recv.get()(fd, to, len, flags);
        };
        let buffer = transfer::buffer(to, len);
        errno::long(socket.and_then(|s| transfer::receive(fd, s, Buffers::one(&buffer)?, flags)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recv_chk(
    fd: c_int,
    to: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    check_room(len, room);
    // SAFETY: as above.
    unsafe { recv(fd, to, len, flags) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    to: *mut c_void,
    len: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some(socket) = eft!(fd) else {
            let got = real::recvfrom.get()(fd, to, len, flags, address, address_len);
            if got >= 0 {
                netlink::received_from(fd, address, address_len);
            }
            return got;
        };
        let buffer = transfer::buffer(to, len);
        errno::long(socket.and_then(|s| {
            let buffers = Buffers::one(&buffer)?;
            transfer::receive_from(fd, s, buffers, flags, address, address_len)
        }))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    to: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_len: *mut socklen_t,
) -> ssize_t {
    check_room(len, room);
    // SAFETY: as above.
    unsafe { recvfrom(fd, to, len, flags, address, address_len) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some(socket) = eft!(fd) else {
            let room = if message.is_null() { 0 } else { netlink::room(fd, &*message) };
            let got = real::recvmsg.get()(fd, message, flags);
            if got >= 0 && crate::init::is_active() {
                rights::adopt(&*message);
                netlink::received(fd, &mut *message, room);
            }
            return got;
        };
        errno::long(socket.and_then(|s| {
            sys::plausible(message, size_of::<msghdr>())?;
            transfer::receive_message(fd, s, &mut *message, flags)
        }))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        if eft!(fd).is_none() {
            return real::recvmmsg.get()(fd, messages, count, flags, timeout);
        }
        let mut done = 0;
        let mut flags = flags;
        while done < count {
            let message = &mut *messages.add(done as usize);
            let got = recvmsg(fd, &mut message.msg_hdr, flags & !libc::MSG_WAITFORONE);
            if got < 0 {
                break;
            }
            message.msg_len = got as c_uint;
            done += 1;
            // Further messages only if they have come, as with WAITFORONE. Without it, but with a
            // time limit, return those that came instead of waiting for more.
            if flags & libc::MSG_WAITFORONE != 0 || !timeout.is_null() {
                flags |= libc::MSG_DONTWAIT;
            }
        }
        if done == 0 { -1 } else { done as c_int }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(fd: c_int, from: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some(socket) = eft!(fd) else {
            return match netlink::send_one(fd, from, len) {
                Some(sent) => errno::long(sent),
                None => real::send.get()(fd, from, len, flags),
            };
        };
        let buffer = transfer::buffer(from, len);
        errno::long(socket.and_then(|s| transfer::send(fd, s, Buffers::one(&buffer)?, flags)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    from: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some(socket) = transfer::decide(fd, to, to_len, flags) else {
            return match netlink::send_one(fd, from, len) {
                Some(sent) => errno::long(sent),
                None => real::sendto.get()(fd, from, len, flags, to, to_len),
            };
        };
        let buffer = transfer::buffer(from, len);
        errno::long(socket.and_then(|s| {
            let buffers = Buffers::one(&buffer)?;
            transfer::send_to(fd, s, buffers, flags, to, to_len)
        }))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        if sys::plausible(message, size_of::<msghdr>()).is_err() {
            return real::sendmsg.get()(fd, message, flags);
        }
        let (name, len) = ((*message).msg_name.cast(), (*message).msg_namelen);
        let Some(socket) = transfer::decide(fd, name, len, flags) else {
            if let Some(sent) = netlink::send(fd, (*message).msg_iov, (*message).msg_iovlen) {
                return errno::long(sent);
            }
            if let Err(refused) = rights::may_send(fd, &*message) {
                return errno::long(Err(refused));
            }
            return real::sendmsg.get()(fd, message, flags);
        };
        errno::long(socket.and_then(|s| transfer::send_message(fd, s, &*message, flags)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    // SAFETY: as above.
    unsafe {
        if matches!(table::get(fd), table::Entry::Foreign | table::Entry::Hidden) {
            return real::sendmmsg.get()(fd, messages, count, flags);
        }
        let mut done = 0;
        while done < count.min(1024) {
            let message = &mut *messages.add(done as usize);
            let sent = sendmsg(fd, &message.msg_hdr, flags);
            if sent < 0 {
                break;
            }
            message.msg_len = sent as c_uint;
            done += 1;
        }
        if done == 0 && count > 0 { -1 } else { done as c_int }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(to: c_int, from: c_int, offset: *mut off64_t, count: size_t) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        match eft!(to) {
            Some(socket) => errno::long(socket.and_then(|s| sendfile::send(to, s, from, offset, count))),
            None if eft!(from).is_some() => errno::long(Err(crate::sys::Errno(libc::EINVAL))),
            None => real::sendfile64.get()(to, from, offset, count),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(to: c_int, from: c_int, offset: *mut off64_t, count: size_t) -> ssize_t {
    // off_t has 64 bits wherever eft runs.
    // SAFETY: as above.
    unsafe { sendfile64(to, from, offset, count) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn splice(
    from: c_int,
    from_offset: *mut off64_t,
    to: c_int,
    to_offset: *mut off64_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    let (here, there) = (!from_offset.is_null(), !to_offset.is_null());
    match (eft!(from), eft!(to)) {
        // SAFETY: as above.
        (None, None) => unsafe { real::splice.get()(from, from_offset, to, to_offset, len, flags) },
        (Some(socket), None) => {
            let offsets = splice::Offsets { socket: here, pipe: there };
            errno::long(socket.and_then(|s| splice::from_stream(from, s, to, offsets, len, flags)))
        }
        (None, Some(socket)) => {
            let offsets = splice::Offsets { pipe: here, socket: there };
            errno::long(socket.and_then(|s| splice::to_stream(from, to, s, offsets, len, flags)))
        }
        // One side must be a pipe.
        (Some(_), Some(_)) => errno::long(Err(crate::sys::Errno(libc::EINVAL))),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv2(
    fd: c_int,
    list: *const iovec,
    count: c_int,
    offset: off64_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        // With offset -1 it is a readv; with another it fails on any socket.
        match eft!(fd) {
            Some(socket) if offset == -1 => {
                errno::long(socket.and_then(|s| transfer::read_vector(fd, s, list, count, flags)))
            }
            _ => real::preadv2.get()(fd, list, count, offset, flags),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev2(
    fd: c_int,
    list: *const iovec,
    count: c_int,
    offset: off64_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        match eft!(fd) {
            Some(socket) if offset == -1 => {
                errno::long(socket.and_then(|s| transfer::write_vector(fd, s, list, count, flags)))
            }
            _ => real::pwritev2.get()(fd, list, count, offset, flags),
        }
    }
}
