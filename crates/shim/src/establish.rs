//! bind, listen and connect: they decide whether a socket is eft's or the kernel's.

mod binding;
mod connecting;

use crate::address::{self, Target};
use crate::convert;
use crate::shadow_send;
use crate::socket::{Hidden, Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::table::{self, Entry};
use crate::{beside, confined, control, domain, errno, held, interfaces, looking, loopback, readiness, real};
pub use binding::bind_any;
use binding::{bind_eft, bind_fresh, bind_opened};
pub use connecting::{await_connected, begin_deferred, request_connect};
use connecting::{connect_eft, disconnect, is_idle};
use core::ffi::c_int;
use eft_base::Endpoint;
use eft_base::address::without_zone;
use eft_channel::socket::{flag, wish};
use eft_messages::control::{Request, op};
use libc::{sockaddr, socklen_t};

/// `bind`.
///
/// # Safety
/// `address` must be null or valid for `len` bytes.
pub unsafe fn bind(fd: c_int, address: *const sockaddr, len: socklen_t) -> Result<c_int> {
    // SAFETY: by the caller.
    let in_kernel = || errno::of(unsafe { real::bind.get()(fd, address, len) });
    match table::get(fd) {
        Entry::Undecided { stream, inet6, .. } => {
            // SAFETY: by the caller.
            match unsafe { named(address, len, inet6) } {
                Ok(Target::Eft(to)) if belongs(fd, inet6, to) => {
                    bind_fresh(fd, stream, inet6, to).map(|()| 0)
                }
                _ => {
                    let done = in_kernel()?;
                    table::forget(fd);
                    Ok(done)
                }
            }
        }
        Entry::Eft { .. } => {
            let Some(socket) = table::socket(fd).transpose()? else {
                return in_kernel();
            };
            // SAFETY: by the caller.
            match unsafe { named(address, len, socket.has(bit::INET6)) }? {
                // An IPv4 socket is refused an address of another host first, as on Linux.
                Target::Eft(to) if socket.has(bit::BOUND) && is_foreign(socket, to) => {
                    Err(Errno(libc::EADDRNOTAVAIL))
                }
                _ if socket.has(bit::BOUND) => Err(Errno(libc::EINVAL)),
                Target::Eft(to) => {
                    let (inet6, v6_only) = (socket.has(bit::INET6), socket.has(bit::V6ONLY));
                    // An address of the wrong IP version is invalid, not unreachable.
                    address::suits(to, inet6, v6_only).map_err(|errno| match errno {
                        Errno(libc::ENETUNREACH) => Errno(libc::EINVAL),
                        other => other,
                    })?;
                    let socket = bind_opened(fd, socket, to)?;
                    if !socket.is_stream() && to.address.is_unspecified() {
                        let _ = shadow_send::make(fd, socket);
                    }
                    Ok(0)
                }
                Target::Loopback if socket.page.flags() == 0 => {
                    convert::to_kernel(fd, socket)?;
                    in_kernel()
                }
                _ => Err(Errno(libc::EADDRNOTAVAIL)),
            }
        }
        _ => in_kernel(),
    }
}

/// Whether nobody can bind here: the stack does not have the address. Link-local ones are not judged.
fn is_foreign(socket: &Socket, to: Endpoint) -> bool {
    let ours = |interface: &interfaces::Interface| interface.address == to.address;
    !socket.has(bit::INET6)
        && address::suits(to, false, false).is_ok()
        && !socket.has(bit::FREE_BIND)
        && !to.address.is_unspecified()
        && !to.address.is_multicast()
        && without_zone(to.address) == to.address
        && !interfaces::is_broadcast(to.address)
        && !interfaces::all().iter().any(ours)
}

/// The address that a program binds to. AF_UNSPEC is allowed with the wildcard address only.
///
/// # Safety
/// `address` must be null or valid for `len` bytes.
unsafe fn named(address: *const sockaddr, len: socklen_t, inet6: bool) -> Result<Target> {
    // SAFETY: by the caller.
    unsafe { address::is_of_family(address, len, inet6)? };
    // SAFETY: by the caller.
    let (plain, named) = unsafe { (address::read(address, len)?, address::read_named(address, len, inet6)?) };
    match (plain, named) {
        (Target::Unspecified, Target::Eft(to)) if to.address.is_unspecified() => Ok(named),
        _ => Ok(plain),
    }
}

/// Whether this address makes an undecided socket eft's. Else the kernel serves it, or reports the error: an IPv6-only
/// socket stays in the kernel where the stack has no IPv6.
pub fn belongs(fd: c_int, inet6: bool, to: Endpoint) -> bool {
    match (inet6, to.address.is_ipv6()) {
        (false, ipv6) => !ipv6,
        (true, false) => !sys::v6_only(fd),
        (true, true) => interfaces::speak_ipv6() || !sys::v6_only(fd),
    }
}

/// Makes an undecided datagram socket eft's, unbound; if it has already sent on the loopback, its kernel socket becomes
/// its shadow there, with the same port if that is free.
pub fn turn_to_stack(fd: c_int, inet6: bool, begun: bool) -> Result<&'static Socket> {
    let port = if begun { address::of_socket(fd, false).map_or(0, |e| e.port) } else { 0 };
    let (socket, kernel) = convert::to_eft(fd, false, inet6, begun, port)?;
    if let Some(kernel) = kernel {
        let same = bind_eft(socket, Endpoint::new(address::wildcard(inet6), port), 0);
        if let Err(errno) = same.map(drop).or_else(|_| bind_any(socket)) {
            loopback::give_up(kernel);
            return Err(errno);
        }
        socket.set_bits(bit::ANY_PORT);
        loopback::move_beside(socket, kernel);
    } else if inet6 {
        // Else the transport would take the wildcard of the IP version of the first datagram.
        bind_any(socket)?;
    }
    Ok(socket)
}

/// Makes an undecided datagram socket eft's, unbound, since it is to deal with groups on the stack.
pub fn turn_for_groups(fd: c_int) -> Result<()> {
    let Entry::Undecided { inet6, begun, .. } = table::get(fd) else {
        return Ok(());
    };
    if begun {
        return turn_to_stack(fd, inet6, begun).map(drop);
    }
    convert::to_eft(fd, false, inet6, false, 0).map(drop)
}

/// `listen`.
pub fn listen(fd: c_int, backlog: c_int) -> Result<c_int> {
    // SAFETY: plain numbers.
    let in_kernel = || errno::of(unsafe { real::listen.get()(fd, backlog) });
    if let Entry::Undecided { stream: true, inet6, .. } = table::get(fd) {
        let any = Endpoint::new(address::wildcard(inet6), 0);
        if !belongs(fd, inet6, any) {
            let done = in_kernel()?;
            table::forget(fd);
            return Ok(done);
        }
        bind_fresh(fd, true, inet6, any)?;
    }
    let Some(socket) = table::socket(fd).transpose()? else {
        return in_kernel();
    };
    if !socket.is_stream() {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    if socket.page.flags() & (flag::CONNECTED | flag::CONNECTING | flag::DEAD) != 0 {
        return Err(Errno(libc::EINVAL));
    }
    bind_any(socket)?;
    looking::part(socket);
    let hidden = loopback::listen(socket, Hidden::First, backlog);
    control::request(
        Request {
            op: op::LISTEN,
            slot: socket.slot,
            args: [backlog.max(0) as u32, binding::reuse_of(socket).into(), 0, 0],
            ..Request::default()
        },
        hidden,
    )?;
    loopback::stand_second(socket, backlog);
    socket.set_bits(bit::LISTENING);
    beside::agree(socket);
    // A listener is never writable: the plug stays.
    if let Ok(_guard) = socket.lock_send() {
        readiness::plug(fd, socket);
    }
    Ok(0)
}

/// `connect`. Without a stack no address is reachable.
///
/// # Safety
/// `address` must be null or valid for `len` bytes.
pub unsafe fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> Result<c_int> {
    // SAFETY: by the caller.
    unsafe { begin_connect(fd, address, len) }.map_err(|errno| match errno {
        Errno(libc::ENETDOWN) => Errno(libc::ENETUNREACH),
        other => other,
    })
}

/// The address that a program connects to. A stream of AF_INET6 takes no `sockaddr_in`; a datagram socket does.
///
/// # Safety
/// As [`connect`].
unsafe fn peer(address: *const sockaddr, len: socklen_t, is_stream6: bool) -> Result<Target> {
    // SAFETY: by the caller.
    unsafe {
        address::is_of_family(address, len, is_stream6)?;
        address::read(address, len)
    }
}

/// # Safety
/// As [`connect`].
unsafe fn begin_connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> Result<c_int> {
    // SAFETY: by the caller.
    let in_kernel = || errno::of(unsafe { real::connect.get()(fd, address, len) });
    match table::get(fd) {
        Entry::Undecided { stream, inet6, begun, .. } => {
            // SAFETY: by the caller.
            match unsafe { peer(address, len, inet6 && stream) } {
                Ok(Target::Eft(to)) if !to.address.is_unspecified() && belongs(fd, inet6, to) => {
                    let socket = match stream {
                        true => convert::to_eft(fd, stream, inet6, false, 0)?.0,
                        false => turn_to_stack(fd, inet6, begun)?,
                    };
                    // SAFETY: by the caller.
                    unsafe { crate::flow::choose(socket, address, len) };
                    connect_eft(fd, socket, to)
                }
                Ok(Target::Unspecified) | Err(_) => in_kernel(),
                Ok(Target::Loopback | Target::Eft(_)) if !stream => {
                    table::begun(fd);
                    in_kernel()
                }
                Ok(_) => {
                    let done = in_kernel();
                    if matches!(done, Ok(_) | Err(Errno(libc::EINPROGRESS | libc::EINTR))) {
                        table::forget(fd);
                    }
                    done
                }
            }
        }
        Entry::Eft { .. } => {
            let Some(socket) = table::socket(fd).transpose()? else {
                return in_kernel();
            };
            // SAFETY: by the caller.
            match unsafe { peer(address, len, socket.has(bit::INET6) && socket.is_stream()) }? {
                Target::Eft(to) if !to.address.is_unspecified() => {
                    address::suits(to, socket.has(bit::INET6), socket.has(bit::V6ONLY))?;
                    // SAFETY: by the caller.
                    unsafe { crate::flow::choose(socket, address, len) };
                    connect_eft(fd, socket, to)
                }
                // SAFETY: by the caller.
                Target::Eft(_) | Target::Loopback if !socket.is_stream() => unsafe {
                    connect_shadow(fd, socket, address, len)
                },
                Target::Eft(_) | Target::Loopback if is_idle(socket) => {
                    convert::to_kernel(fd, socket)?;
                    let done = in_kernel();
                    table::forget(fd);
                    done
                }
                Target::Unspecified => disconnect(fd, socket),
                _ if socket.page.flags() & (flag::CONNECTED | flag::CONNECTING) != 0 => {
                    Err(Errno(libc::EISCONN))
                }
                _ => Err(Errno(libc::ENETUNREACH)),
            }
        }
        _ => in_kernel(),
    }
}

/// Connects a datagram socket to a peer on the kernel's loopback. The transport is told, so that nothing is received from
/// the stack meanwhile.
///
/// # Safety
/// `address` must be valid for `len` bytes.
unsafe fn connect_shadow(
    fd: c_int,
    socket: &Socket,
    address: *const sockaddr,
    len: socklen_t,
) -> Result<c_int> {
    bind_any(socket)?;
    let shadow = shadow_send::make(fd, socket)?;
    // SAFETY: by the caller.
    let peer = unsafe { loopback::connect(shadow, address, len)? };
    request_connect(socket, peer)?;
    socket.set_bits(bit::PEER | bit::LOOPBACK_PEER);
    Ok(0)
}

/// How long `shutdown` waits until the descriptor shows its effect; the transport takes some microseconds.
const END_SHOWN_MS: u64 = 20;

/// `shutdown` of an eft socket.
pub fn shutdown(fd: c_int, socket: &Socket, how: c_int) -> Result<c_int> {
    let wishes = match how {
        libc::SHUT_RD => wish::SHUT_READ,
        libc::SHUT_WR => wish::SHUT_WRITE,
        libc::SHUT_RDWR => wish::SHUT_READ | wish::SHUT_WRITE,
        _ => return Err(Errno(libc::EINVAL)),
    };
    let flags = socket.page.flags();
    let listening = socket.has(bit::LISTENING);
    if socket.is_stream() && !listening && flags & (flag::CONNECTED | flag::CONNECTING) == 0
        || flags & flag::DEAD != 0
    {
        return Err(Errno(libc::ENOTCONN));
    }
    for socket in beside::all(socket) {
        socket.page.add_wish(wishes);
        crate::domain::notify(socket);
    }
    // Without a peer a datagram socket fails with ENOTCONN, and is shut down all the same, as on Linux.
    let done = if socket.is_stream() || socket.has(bit::PEER) { Ok(0) } else { Err(Errno(libc::ENOTCONN)) };
    if !socket.wishes_shut_read() {
        return done;
    }
    // Threads that wait to receive or accept wake, permanently. The transport does that, so that the descriptor can show
    // the hang-up; for a listener we do it, which the far end does not notice.
    if listening || domain::domain().is_none_or(|domain| domain.is_away()) {
        sys::shutdown(fd, libc::SHUT_RD);
        if listening {
            let hidden = Hidden::BOTH.into_iter().filter_map(|which| socket.loopback_fd(which));
            hidden.for_each(|hidden| sys::shutdown(hidden, libc::SHUT_RDWR));
        }
    } else if !confined::is_confined() {
        held::hurry(fd, socket);
        // The next poll must see it. A transport that is just being reborn shows it later.
        let over = !socket.is_stream() && socket.wishes_shut_write();
        let _ = sys::poll(fd, if over { 0 } else { libc::POLLRDHUP }, Some(END_SHOWN_MS));
    }
    done
}
