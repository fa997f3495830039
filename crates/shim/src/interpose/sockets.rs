//! socket, bind, listen, accept, connect, options.

use crate::sys::{self, Errno};
use crate::table::{self, Entry};
use crate::{accept as accepting, address, errno, establish, init, netlink, options, real, transfer};
use core::ffi::{c_int, c_void};
use libc::{sockaddr, socklen_t};

const TYPE_FLAGS: c_int = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
const IPPROTO_MPTCP: c_int = 262;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    super::ensure();
    // SAFETY: plain numbers.
    let in_kernel = || unsafe { real::socket.get()(domain, kind, protocol) };
    let inet6 = match domain {
        libc::AF_INET => false,
        libc::AF_INET6 => true,
        libc::AF_NETLINK if protocol == libc::NETLINK_ROUTE && init::is_active() => {
            return errno::int(netlink::open(kind & TYPE_FLAGS));
        }
        _ => return in_kernel(),
    };
    let stream = match (kind & !TYPE_FLAGS, protocol) {
        (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => true,
        (libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => false,
        // Raw sockets and other protocols would go past the stack; programs that prefer MPTCP fall back on
        // TCP.
        (libc::SOCK_STREAM, IPPROTO_MPTCP) => {
            return errno::int(Err(Errno(libc::EPROTONOSUPPORT)));
        }
        _ if !inet6 && init::is_active() => return errno::int(Err(Errno(libc::EPROTONOSUPPORT))),
        _ => return in_kernel(),
    };
    let fd = in_kernel();
    if fd >= 0 && init::is_active() {
        table::set(
            fd,
            Entry::Undecided { stream, inet6, plain: true, begun: false, segment: false, congestion: false },
        );
    }
    fd
}

/// The kernel's error for an address that cannot be read. If the kernel serves the call, it reports the
/// error itself.
fn readable(fd: c_int, address: *const sockaddr, len: socklen_t) -> sys::Result<()> {
    match table::get(fd) {
        Entry::Foreign | Entry::Set { .. } | Entry::Hidden => Ok(()),
        _ => sys::readable(address, address::signed_len(len)?),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the program's call, as are all below.
    errno::int(readable(fd, address, len).and_then(|()| unsafe {
        netlink::bind(fd, address, len).unwrap_or_else(|| establish::bind(fd, address, len))
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    errno::int(establish::listen(fd, backlog))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: as above.
    errno::int(readable(fd, address, len).and_then(|()| match netlink::port(fd) {
        // It is connected to the kernel anyway.
        Some(_) => Ok(0),
        None => unsafe { establish::connect(fd, address, len) },
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let Some(listener) = table::socket(fd) else {
            let accepted = real::accept4.get()(fd, address, len, flags);
            if accepted >= 0 {
                table::forget(accepted);
            }
            return accepted;
        };
        errno::int(listener.and_then(|l| accepting::accept(fd, l, address, len, flags)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: as above.
    unsafe { accept4(fd, address, len, 0) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    match table::socket(fd) {
        Some(socket) => errno::int(socket.and_then(|s| establish::shutdown(fd, s, how))),
        // SAFETY: as above.
        None => unsafe { real::shutdown.get()(fd, how) },
    }
}

/// Refuses an option of a socket that may become eft's, if eft would refuse it; with its value for
/// `setsockopt`. An IPv6-only socket stays in the kernel where the stack has no IPv6.
///
/// # Safety
/// The value must be null or valid for its length.
unsafe fn permitted(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: Option<(*const c_void, socklen_t)>,
) -> sys::Result<()> {
    let Entry::Undecided { stream, inet6, .. } = table::get(fd) else {
        return Ok(());
    };
    if inet6 && sys::v6_only(fd) && !crate::interfaces::speak_ipv6() {
        return Ok(());
    }
    let Some((value, len)) = value else {
        return options::before(stream, level, option, None);
    };
    let len = address::signed_len(len)?;
    let bytes: &[u8] = match value.is_null() || sys::readable(value, len).is_err() {
        // The kernel reports the error.
        true => return options::before(stream, level, option, None),
        // SAFETY: by the caller.
        false => unsafe { core::slice::from_raw_parts(value.cast(), len) },
    };
    options::before(stream, level, option, Some(bytes))
}

/// Whether an option of an undecided socket is about groups on the stack's devices, which makes the socket eft's.
///
/// # Safety
/// As [`permitted`].
unsafe fn wants_groups(fd: c_int, level: c_int, option: c_int, value: *const c_void, len: socklen_t) -> bool {
    let Entry::Undecided { stream: false, inet6, .. } = table::get(fd) else {
        return false;
    };
    let Ok(len) = address::signed_len(len) else { return false };
    if level == libc::IPPROTO_IPV6 && (!inet6 || !crate::interfaces::speak_ipv6())
        || value.is_null()
        || sys::readable(value, len).is_err()
    {
        return false;
    }
    // SAFETY: it can be read.
    let bytes = unsafe { core::slice::from_raw_parts(value.cast::<u8>(), len) };
    !options::multicast::is_kernels(level, option, bytes)
}

fn is_undecided_stream(fd: c_int) -> bool {
    matches!(table::get(fd), Entry::Undecided { stream: true, .. })
}

/// Whether an option of an undecided socket is a key for peers that are reached through the stack. The kernel would not tell it
/// again.
///
/// # Safety
/// As [`permitted`].
unsafe fn signs_on_the_stack(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    len: socklen_t,
) -> bool {
    if level != libc::IPPROTO_TCP || !is_undecided_stream(fd) {
        return false;
    }
    let Ok(len) = address::signed_len(len) else { return false };
    if value.is_null() || sys::readable(value, len).is_err() {
        return false;
    }
    // SAFETY: it can be read.
    let bytes = unsafe { core::slice::from_raw_parts(value.cast::<u8>(), len) };
    options::signatures::is_for_stack(level, option, bytes)
        || options::authentication::is_for_stack(level, option, bytes)
}

/// The kernel cannot keep this option for the stack, as the choice of an algorithm of congestion control that it lacks: the socket
/// becomes eft's. `None`: it is not to become eft's.
///
/// # Safety
/// As [`permitted`], which has allowed it.
unsafe fn set_what_the_kernel_lacks(
    fd: c_int,
    level: c_int,
    option: c_int,
    (value, len): (*const c_void, socklen_t),
) -> Option<sys::Result<c_int>> {
    let Entry::Undecided { stream: true, inet6, .. } = table::get(fd) else {
        return None;
    };
    let len = address::signed_len(len).ok()?;
    if value.is_null() || sys::readable(value, len).is_err() || (inet6 && sys::v6_only(fd)) {
        return None;
    }
    // SAFETY: by the caller; it is readable.
    let bytes = unsafe { core::slice::from_raw_parts(value.cast::<u8>(), len) };
    let (socket, _) = crate::convert::to_eft(fd, true, inet6, false, 0).ok()?;
    Some(options::set(fd, socket, level, option, bytes).map(|()| 0))
}

unsafe fn name(fd: c_int, to: *mut sockaddr, len: *mut socklen_t, peer: bool) -> Option<c_int> {
    // SAFETY: as above.
    if let Some(done) = unsafe { netlink::name(fd, to, len, peer) } {
        return Some(errno::int(done));
    }
    let socket = table::socket(fd)?;
    Some(errno::int(socket.and_then(|socket| {
        let endpoint = transfer::endpoint(socket, peer)?;
        if to.is_null() {
            return Err(Errno(libc::EFAULT));
        }
        sys::readable(len, size_of::<socklen_t>())?;
        let inet6 = socket.has(crate::socket::bit::INET6);
        // SAFETY: as above.
        unsafe {
            let room = *len;
            address::write(endpoint, inet6, to, len)?;
            if peer {
                crate::flow::tell(socket, to, room);
            }
        }
        Ok(0)
    })))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(fd: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: as above.
    unsafe { name(fd, to, len, false).unwrap_or_else(|| real::getsockname.get()(fd, to, len)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(fd: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: as above.
    unsafe { name(fd, to, len, true).unwrap_or_else(|| real::getpeername.get()(fd, to, len)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let Some(socket) = table::socket(fd) else {
            if level == libc::SOL_NETLINK && netlink::port(fd).is_some() {
                return 0;
            }
            if let Err(errno) = permitted(fd, level, option, Some((value, len))) {
                return errno::int(Err(errno));
            }
            if wants_groups(fd, level, option, value, len) {
                return match establish::turn_for_groups(fd) {
                    Ok(()) => setsockopt(fd, level, option, value, len),
                    Err(errno) => errno::int(Err(errno)),
                };
            }
            if signs_on_the_stack(fd, level, option, value, len)
                && let Some(taken) = set_what_the_kernel_lacks(fd, level, option, (value, len))
            {
                return errno::int(taken);
            }
            table::touched(fd);
            let done = real::setsockopt.get()(fd, level, option, value, len);
            if done < 0
                && (level, option) == (libc::IPPROTO_TCP, libc::TCP_CONGESTION)
                && let Some(taken) = set_what_the_kernel_lacks(fd, level, option, (value, len))
            {
                return errno::int(taken);
            }
            match (done, level, option) {
                (0, libc::IPPROTO_TCP, libc::TCP_MAXSEG) => table::segment_set(fd),
                (0, libc::IPPROTO_TCP, libc::TCP_CONGESTION) => table::congestion_set(fd),
                _ => {}
            }
            return done;
        };
        errno::int(socket.and_then(|socket| {
            let len = address::signed_len(len)?;
            if value.is_null() && len != 0 {
                return Err(Errno(libc::EFAULT));
            }
            sys::readable(value, len)?;
            let bytes = match value.is_null() {
                true => &[],
                false => core::slice::from_raw_parts(value.cast::<u8>(), len),
            };
            options::set(fd, socket, level, option, bytes).map(|()| 0)
        }))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let Some(socket) = table::socket(fd) else {
            if let Err(errno) = permitted(fd, level, option, None) {
                return errno::int(Err(errno));
            }
            let done = real::getsockopt.get()(fd, level, option, value, len);
            if done < 0 && options::authentication::is_absent(level, option) && is_undecided_stream(fd) {
                // The kernel may know none of it.
                return errno::int(Err(Errno(libc::ENOENT)));
            }
            return done;
        };
        errno::int(socket.and_then(|socket| {
            if value.is_null() || len.is_null() {
                return Err(Errno(libc::EFAULT));
            }
            sys::readable(len, size_of::<socklen_t>())?;
            let room = address::signed_len(*len)?.min(options::LONGEST);
            sys::readable(value, room)?;
            let first = core::slice::from_raw_parts(value.cast::<u8>(), room);
            let room = options::authentication::room(level, option, first);
            sys::readable(value, room)?;
            let to = core::slice::from_raw_parts_mut(value.cast::<u8>(), room);
            let n = options::get(fd, socket, level, option, to)?;
            *len = n as socklen_t;
            Ok(0)
        }))
    }
}
