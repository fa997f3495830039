//! Binds sockets of eft.

use crate::options::{joined, signatures};
use crate::socket::{Socket, bit};
use crate::sys::{Errno, Result};
use crate::{address, any_port, control, convert, loopback, options, second};
use core::ffi::c_int;
use eft_base::{Endpoint, WireAddress};
use eft_channel::socket::Opt;
use eft_messages::control::{Request, op};
use eft_messages::sockets::reuse;

/// Makes an undecided socket eft's and binds it; at the wildcard address it keeps its kernel socket
/// for the loopback.
pub(super) fn bind_fresh(fd: c_int, stream: bool, inet6: bool, to: Endpoint) -> Result<()> {
    let beside = to.address.is_unspecified();
    let (socket, kernel) = convert::to_eft(fd, stream, inet6, beside, to.port)?;
    let port = match kernel {
        Some(_) if to.port == 0 => any_port::bind(socket, to, bind_eft),
        _ => bind_eft(socket, to, 0),
    };
    match (kernel, port) {
        (Some(kernel), Ok(port)) => {
            loopback::attach(socket, kernel, port, inet6);
            second::attach(fd, socket, port);
        }
        (Some(kernel), Err(_)) => loopback::give_up(kernel),
        _ => {}
    }
    port.map(drop)
}

/// Binds a socket that became eft's before its port was known. If another instance of its transport owns the port, the descriptor
/// gets a new socket there, which is returned.
pub(super) fn bind_opened(fd: c_int, socket: &'static Socket, to: Endpoint) -> Result<&'static Socket> {
    match bind_eft(socket, to, 0) {
        Err(Errno(libc::EXDEV)) => {
            let socket = move_to_owner(fd, socket, to.port, None)?;
            bind_eft(socket, to, 0).map(|_| socket)
        }
        done => done.map(|_| socket),
    }
}

/// Another instance has the connection from where the socket is bound to this peer: the descriptor gets a new socket there, bound
/// to the same port.
pub(super) fn move_to_peer(fd: c_int, socket: &Socket, peer: Endpoint) -> Result<&'static Socket> {
    let local = socket.page.local();
    let moved = move_to_owner(fd, socket, local.port, Some(peer))?;
    bind_eft(moved, local, reuse::ELSEWHERE).map(|_| moved)
}

/// What a kernel socket cannot keep for an eft socket that moves.
const KEPT: [Opt; 3] = [Opt::Congestion, Opt::MulticastInterface, Opt::MulticastSource];

fn move_to_owner(fd: c_int, socket: &Socket, port: u16, peer: Option<Endpoint>) -> Result<&'static Socket> {
    let (stream, inet6) = (socket.is_stream(), socket.has(bit::INET6));
    let (keys, wishes) = (signatures::all(&socket.page), socket.page.authentication_wishes());
    let (kept, memberships) = (KEPT.map(|opt| (opt, socket.page.option(opt))), joined::take(socket));
    convert::to_kernel(fd, socket)?;
    let (moved, _) = convert::to_eft_for(fd, stream, inet6, false, (port, peer))?;
    signatures::restore(&moved.page, &keys);
    moved.page.set_authentication_wishes(&wishes);
    kept.into_iter().for_each(|(opt, value)| moved.page.set_option(opt, value));
    memberships.iter().try_for_each(|m| options::set(fd, moved, m.level, m.name, &m.value))?;
    Ok(moved)
}

/// The wishes of [`reuse`] that the options of a socket say.
pub(super) fn reuse_of(socket: &Socket) -> u8 {
    let bits = socket.bits();
    let wishes = [
        (bit::REUSE_ADDRESS, reuse::ADDRESS),
        (bit::REUSE_PORT, reuse::PORT),
        (bit::V6ONLY, reuse::V6ONLY),
        (bit::FREE_BIND, reuse::FREE_BIND),
    ];
    wishes.into_iter().filter(|(own, _)| bits & own != 0).fold(0, |all, (_, told)| all | told)
}

/// Asks sockets to bind, with these wishes of [`reuse`] beside those of the options; returns the port.
pub(super) fn bind_eft(socket: &Socket, to: Endpoint, further: u8) -> Result<u16> {
    let reuse = reuse_of(socket) | further;
    let reply = control::request(
        Request {
            op: op::BIND,
            slot: socket.slot,
            address: WireAddress::from(to.address),
            port: to.port,
            args: [reuse.into(), 0, 0, 0],
            ..Request::default()
        },
        None,
    )?;
    socket.set_bits(bit::BOUND);
    socket.put_bits(bit::WILDCARD, to.address.is_unspecified());
    socket.put_bits(bit::ANY_PORT, to.port == 0);
    Ok(reply.port)
}

/// Binds an unbound socket to the wildcard address and a free port, as `listen` and the first
/// `sendto` do.
pub fn bind_any(socket: &Socket) -> Result<()> {
    if socket.has(bit::BOUND) {
        return Ok(());
    }
    bind_eft(socket, Endpoint::new(address::wildcard(socket.has(bit::INET6)), 0), 0).map(drop)
}
