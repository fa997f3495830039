//! The port of a socket that leaves it to the system: free on the stack, and on the kernel's loopback, where the socket has
//! shadows. Each of the two chooses among the ports that itself has free.

use crate::loopback::Taken;
use crate::socket::{Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::{address, loopback, options, second};
use eft_base::Endpoint;
use eft_messages::sockets::reuse;

/// How many ports that are free on the loopback are tried on the stack, before the stack chooses alone: enough to find one that
/// is the socket's own, if the stack has several instances of its transport.
const TRIED: usize = 64;

/// Binds a socket that has a shadow to any port, by `on_stack`; returns the port.
pub fn bind(
    socket: &Socket,
    to: Endpoint,
    on_stack: fn(&Socket, Endpoint, u8) -> Result<u16>,
) -> Result<u16> {
    for _ in 0..TRIED {
        let Some(port) = free_on_loopback(socket) else { break };
        // On the stack nobody may use it, even if this socket would share it: a program that names no port expects that it can connect
        // to anywhere.
        match on_stack(socket, Endpoint { port, ..to }, reuse::NEW) {
            Err(Errno(libc::EADDRINUSE | libc::EXDEV)) => {}
            done => {
                socket.set_bits(bit::ANY_PORT);
                return done;
            }
        }
    }
    on_stack(socket, to, 0)
}

/// A port that is free now where the socket's shadows would be.
fn free_on_loopback(socket: &Socket) -> Option<u16> {
    let probe = options::fresh(socket).ok()?;
    let inet6 = socket.has(bit::INET6);
    if inet6 {
        let v6_only = i32::from(socket.has(bit::V6ONLY)).to_ne_bytes();
        let _ = sys::set_option(probe, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, &v6_only);
    }
    // A listener of both versions has two shadows, and at the wildcard the kernel chooses a port that is free for either.
    let bound = match second::belongs_to(socket) {
        true => loopback::bind_to(probe, address::wildcard(true), 0, true),
        false => loopback::bind(probe, 0, inet6, Taken::GiveUp),
    };
    let free = bound.ok().and_then(|_| address::of_socket(probe, false));
    sys::close(probe);
    free.map(|at| at.port)
}
