//! The kernel's loopback beside a wildcard socket: its shadow socket.
//!
//! A socket that is bound to the wildcard address also has a kernel socket at 127.0.0.1 (for IPv6 alone: ::1) and the same
//! port, so that health checks and local tools reach it; a listener of both versions has a second one at ::1. It has a hidden
//! descriptor number; sockets holds a duplicate, posts
//! the eft socket's token when something arrives there, and gives the domain's other processes a duplicate when they first
//! need it. `accept` takes from both, and so does receiving (see `shadow`). If the port is taken there and stays so (see
//! [`when_left`]), a socket has no shadow.
//!
//! A datagram socket that was never bound gets its shadow when it first sends to 127/8. Invariant: a shadow receives only from
//! the loopback.

use crate::socket::{Hidden, Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::table::{self, Entry};
use crate::{address, confined, control, errno, process, real};
use core::ffi::c_int;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::sync::atomic::Ordering;
use eft_base::Endpoint;
use eft_messages::control::{Request, op};
use libc::{sockaddr, socklen_t};

/// How long a port that is taken on the loopback is waited for, in milliseconds: 1, 2, 4, and so on up to this. On a machine whose
/// CPUs others fill, four servers have to get one in this time.
const LONGEST_PAUSE: u64 = 256;

/// Who waits for a port that is taken on the loopback.
#[derive(Clone, Copy, PartialEq)]
pub enum Taken {
    /// The program named the port.
    Wait,
    /// Another port will do.
    GiveUp,
}

/// Binds a kernel socket to the loopback: of IPv4 to 127.0.0.1, of IPv6 alone to ::1; of both, a stream to 127.0.0.1 and
/// datagrams to either address, by the wildcard restricted to the device `lo`, or, where that is impossible, to 127.0.0.1. A
/// listener at the wildcard would block the port for all other sockets, at every address of the kernel; so it has a
/// [second](crate::second) one.
pub fn bind(kernel: c_int, port: u16, inet6: bool, taken: Taken) -> Result<c_int> {
    let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    let bind = |address, inet6, taken| match taken {
        Taken::Wait => when_left(|| bind_to(kernel, address, port, inet6)),
        Taken::GiveUp => bind_to(kernel, address, port, inet6),
    };
    if !inet6 {
        return bind(v4, false, taken);
    }
    if sys::v6_only(kernel) {
        return bind(v6, true, taken);
    }
    if sys::get_option_int(kernel, libc::SOL_SOCKET, libc::SO_TYPE) == Ok(libc::SOCK_STREAM) {
        return bind(v4, true, taken);
    }
    let device = |name: &[u8]| sys::set_option(kernel, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name);
    if device(b"lo\0").is_err() {
        return bind(v4, true, taken);
    }
    match bind(IpAddr::V6(Ipv6Addr::UNSPECIFIED), true, taken) {
        Err(errno) => {
            // Only privileged programs may change the binding to a device.
            device(b"\0")?;
            // Whoever has the port has been waited for.
            let taken = if errno == Errno(libc::EADDRINUSE) { Taken::GiveUp } else { taken };
            bind(v4, true, taken)
        }
        done => done,
    }
}

/// Binds as soon as the port is free, if that is within some milliseconds: the port of a socket that has just ended is taken
/// on the loopback until all who keep its shadow for their successors (sockets, the supervisor, the keeper, the custodian)
/// have let go of it, which the transport does not wait for.
pub fn when_left(bind: impl Fn() -> Result<c_int>) -> Result<c_int> {
    let mut pause = 1;
    loop {
        match bind() {
            Err(Errno(libc::EADDRINUSE)) if pause <= LONGEST_PAUSE => drop(sys::poll(-1, 0, Some(pause))),
            done => return done,
        }
        pause *= 2;
    }
}

pub fn bind_to(kernel: c_int, address: IpAddr, port: u16, inet6: bool) -> Result<c_int> {
    let (storage, len) = address::to_storage(Endpoint::new(address, port), inet6);
    // SAFETY: the address is ours.
    errno::of(unsafe { real::bind.get()(kernel, (&raw const storage).cast(), len as libc::socklen_t) })
}

/// Binds the kept kernel socket beside its eft socket; gives it up if that fails. A listener's is passed to sockets when it
/// listens.
pub fn attach(socket: &Socket, kernel: c_int, port: u16, inet6: bool) {
    let taken = if socket.has(bit::ANY_PORT) { Taken::GiveUp } else { Taken::Wait };
    match bind(kernel, port, inet6, taken) {
        Err(_) => give_up(kernel),
        Ok(_) if socket.is_stream() => remember(socket, Hidden::First, kernel),
        Ok(_) => drop(stand_beside(socket, kernel)),
    }
}

/// Closes a hidden socket that is not needed.
pub fn give_up(hidden: c_int) {
    table::forget(hidden);
    sys::close(hidden);
}

pub fn remember(socket: &Socket, which: Hidden, hidden: c_int) {
    socket.loopback(which).store(hidden, Ordering::Release);
    if let Ok((inode, _)) = sys::identity(hidden) {
        socket.loopback_inode(which).store(inode, Ordering::Release);
    }
}

/// Passes a datagram socket's shadow to sockets. If another process of the domain was first, its kernel socket is the shadow.
pub fn stand_beside(socket: &Socket, hidden: c_int) -> Result<c_int> {
    // Remembered before sockets can report input for it, so that no thread finds a report without a shadow.
    remember(socket, Hidden::First, hidden);
    let Err(errno) = control::request(request(socket, Hidden::First), Some(hidden)) else {
        return Ok(hidden);
    };
    socket.loopback(Hidden::First).store(-1, Ordering::Release);
    give_up(hidden);
    match errno {
        Errno(libc::EEXIST) => fetch(socket, Hidden::First),
        _ => {
            socket.loopback_inode(Hidden::First).store(0, Ordering::Release);
            Err(errno)
        }
    }
}

fn request(socket: &Socket, which: Hidden) -> Request {
    Request { op: op::SHADOW, slot: socket.slot, args: [which as u32, 0, 0, 0], ..Request::default() }
}

/// The hidden socket, if the domain has one.
#[inline]
pub fn of(socket: &Socket) -> Option<c_int> {
    find(socket, Hidden::First)
}

/// The hidden sockets that the domain has beside a listener.
pub fn all(listener: &Socket) -> impl Iterator<Item = c_int> {
    Hidden::BOTH.into_iter().filter_map(|which| find(listener, which))
}

#[inline]
fn find(socket: &Socket, which: Hidden) -> Option<c_int> {
    match socket.loopback_fd(which) {
        None if socket.loopback_inode(which).load(Ordering::Acquire) != 0 => fetch(socket, which).ok(),
        known => known,
    }
}

/// Asks for the hidden socket that another process of the domain made.
#[cold]
fn fetch(socket: &Socket, which: Hidden) -> Result<c_int> {
    if !process::owns_memory() {
        return Err(Errno(libc::ENETUNREACH));
    }
    let fetched = control::fetch(request(socket, which))?;
    let hidden = sys::move_high(fetched, true).inspect_err(|_| sys::close(fetched))?;
    table::set(hidden, Entry::Hidden);
    // Another thread may have been first.
    match socket.loopback(which).compare_exchange(-1, hidden, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            remember(socket, which, hidden);
            Ok(hidden)
        }
        Err(theirs) => {
            give_up(hidden);
            Ok(theirs)
        }
    }
}

/// Makes a hidden kernel socket that has sent on the loopback the shadow of the eft socket that replaced it. Datagrams that
/// wait there stay.
pub fn move_beside(socket: &Socket, hidden: c_int) {
    // It was bound to the wildcard when it first sent, or to its peer's side when it connected.
    unconnect(hidden);
    // Its error queue, which is never read any more, would keep it ready.
    let _ = sys::set_option(hidden, libc::IPPROTO_IP, libc::IP_RECVERR, &0i32.to_ne_bytes());
    match place(socket, hidden, socket.page.local().port) {
        Ok(()) => drop(stand_beside(socket, hidden)),
        Err(_) => give_up(hidden),
    }
}

/// Binds a kernel socket as a shadow: to the same port, or, if the program does not care which port it
/// has and this one is taken there, to any.
pub fn place(socket: &Socket, kernel: c_int, port: u16) -> Result<()> {
    let inet6 = socket.has(bit::INET6);
    let placed = match socket.has(bit::ANY_PORT) {
        true => bind(kernel, port, inet6, Taken::GiveUp).or_else(|_| bind(kernel, 0, inet6, Taken::GiveUp)),
        false => bind(kernel, port, inet6, Taken::Wait),
    };
    placed.map(drop).map_err(|_| Errno(libc::ENETUNREACH))
}

/// Connects a datagram socket's shadow; returns the peer.
///
/// # Safety
/// `address` must be valid for `len` bytes.
pub unsafe fn connect(hidden: c_int, address: *const sockaddr, len: socklen_t) -> Result<Endpoint> {
    // SAFETY: by the caller.
    unsafe { sys::connect(hidden, address, len)? };
    address::of_socket(hidden, true).ok_or(Errno(libc::ENETUNREACH))
}

/// The socket has a peer on the stack: its shadow is connected to itself, so that it receives nothing any more. Earlier
/// datagrams can still be received, and senders get "connection refused", as from the kernel.
pub fn shut_out(hidden: c_int) {
    let inet6 = sys::get_option_int(hidden, libc::SOL_SOCKET, libc::SO_DOMAIN) == Ok(libc::AF_INET6);
    if let Some(own) = address::of_socket(hidden, false) {
        let (storage, len) = address::to_storage(own, inet6);
        // SAFETY: the address is ours.
        let _ = unsafe { sys::connect(hidden, (&raw const storage).cast(), len as socklen_t) };
    }
}

/// The socket has no peer any more, and neither has its shadow socket.
pub fn disconnect(socket: &Socket, hidden: c_int) {
    unconnect(hidden);
    // The kernel frees a port that it chose itself, and would bind the shadow to the wildcard next.
    if address::of_socket(hidden, false).is_some_and(|e| e.port == 0) {
        let _ = place(socket, hidden, socket.page.local().port);
    }
}

fn unconnect(hidden: c_int) {
    let nowhere = sockaddr { sa_family: libc::AF_UNSPEC as _, sa_data: [0; 14] };
    // SAFETY: the address is ours.
    let _ = unsafe { sys::connect(hidden, &nowhere, size_of::<sockaddr>() as socklen_t) };
}

/// Listens on a hidden socket, if there is one, and returns it.
pub fn listen(socket: &Socket, which: Hidden, backlog: c_int) -> Option<c_int> {
    let kernel = socket.loopback_fd(which)?;
    let _ = sys::fcntl(kernel, libc::F_SETFL, libc::O_NONBLOCK as usize);
    // SAFETY: plain numbers.
    if unsafe { real::listen.get()(kernel, backlog) } != 0 {
        return None;
    }
    Some(kernel)
}

/// Passes the second hidden socket of a listener that listens now to sockets.
pub fn stand_second(socket: &Socket, backlog: c_int) {
    if let Some(hidden) = listen(socket, Hidden::Second, backlog) {
        // If a listener listens again, sockets has it.
        let _ = control::request(request(socket, Hidden::Second), Some(hidden));
    }
}

/// Whether this process is about to close its last descriptor of a listener that has a shadow.
pub fn is_shadowed_listener(socket: &Socket) -> bool {
    socket.has(bit::LISTENING)
        && Hidden::BOTH.iter().any(|&which| socket.loopback_inode(which).load(Ordering::Acquire) != 0)
        && socket.descriptors.load(Ordering::Relaxed) == 1
        && process::owns_memory()
}

/// A listener was closed here. Others have its shadow, too: if no process of the domain has the listener any more, sockets
/// shuts the shadow down before it answers the next request. Until then a client that connects to the loopback would never be
/// accepted.
pub fn await_close(socket: &Socket) {
    if !confined::is_confined() {
        let _ = control::fetch(request(socket, Hidden::First)).map(sys::close);
    }
}

/// After exec: whether `fd` is the hidden socket of one of `sockets` (descriptor, inode).
pub fn adopt(fd: c_int, inode: u64, sockets: &[(c_int, u64)]) -> bool {
    for &(visible, _) in sockets {
        let Some(Ok(socket)) = table::socket(visible) else { continue };
        for which in Hidden::BOTH {
            if socket.loopback_inode(which).load(Ordering::Acquire) == inode {
                table::set(fd, Entry::Hidden);
                socket.loopback(which).store(fd, Ordering::Release);
                return true;
            }
        }
    }
    false
}
