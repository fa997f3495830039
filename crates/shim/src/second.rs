//! The second shadow, at ::1, of a listener of both IP versions.

use crate::socket::{Hidden, Socket, bit};
use crate::sys::{self, Result};
use crate::table::{self, Entry};
use crate::{loopback, options};
use core::ffi::c_int;
use core::net::{IpAddr, Ipv6Addr};

/// Whether a stream that is bound to the wildcard has one: that of both versions.
pub fn belongs_to(socket: &Socket) -> bool {
    socket.is_stream() && socket.has(bit::INET6) && !socket.has(bit::V6ONLY)
}

/// Makes it for a socket that was bound to the wildcard. If the port is taken there, it has none.
pub fn attach(fd: c_int, socket: &Socket, port: u16) {
    if belongs_to(socket) {
        let _ = make(fd, socket, port);
    }
}

fn make(fd: c_int, socket: &Socket, port: u16) -> Result<()> {
    let kernel = options::fresh(socket)?;
    options::carry_back(fd, socket, kernel);
    let only = sys::set_option(kernel, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, &1i32.to_ne_bytes());
    let at = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let bound = only.and_then(|()| loopback::when_left(|| loopback::bind_to(kernel, at, port, true)));
    let hidden = bound.and_then(|_| sys::move_high(kernel, sys::is_cloexec(fd)));
    let hidden = hidden.inspect_err(|_| sys::close(kernel))?;
    table::set(hidden, Entry::Hidden);
    loopback::remember(socket, Hidden::Second, hidden);
    Ok(())
}
