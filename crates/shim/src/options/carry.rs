//! Options that move from one socket to another: from a listener to its connections, and between a kernel socket and the
//! eft socket that replaces it.

use super::{Kind, find, get, int_of, set, table};
use crate::socket::{Socket, bit};
use crate::sys::{self, Result};
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use eft_channel::socket::{COOKIE_KEYS_MAX, Opt};
use libc::SOL_SOCKET;

/// An accepted connection begins with its listener's options, including those set after its handshake; at the handshake
/// the transport copied the others.
pub fn inherit(listener: &Socket, socket: &Socket) {
    for opt in Opt::INHERITED {
        let value = listener.page.option(*opt);
        if value != 0 {
            socket.page.set_option(*opt, value);
        }
    }
    socket.set_bits(
        listener.bits()
            & (bit::REUSE_ADDRESS | bit::REUSE_PORT | bit::OOB_INLINE | bit::TELL_LEFT | bit::ZEROCOPY),
    );
    if listener.has(bit::OOB_INLINE) {
        crate::urgent::set_inline(socket, true);
    }
    crate::stamps::inherit(listener, socket);
    let low_water = listener.low_water().load(Ordering::Relaxed);
    socket.low_water().store(low_water, Ordering::Relaxed);
    let discover = listener.discover().load(Ordering::Relaxed);
    socket.discover().store(discover, Ordering::Relaxed);
}

/// No option that moves is longer.
const LONGEST: usize = COOKIE_KEYS_MAX;

/// Length of an option that can move, as `getsockopt` returns it; `None` for others.
fn carried(row: &table::Row, stream: bool) -> Option<usize> {
    match row.kind(stream)? {
        kind if kind.is_read_only() => None,
        Kind::NoOptions | Kind::V6Only | Kind::Membership(_) | Kind::Filter => None,
        Kind::SignatureKey | Kind::Authentication | Kind::AuthenticationKey => None,
        Kind::LargestPacket | Kind::LabelLease => None,
        Kind::Linger | Kind::PacingLimit => Some(8),
        Kind::CookieKeys => Some(LONGEST),
        Kind::Descriptor | Kind::Congestion => Some(16),
        _ => Some(4),
    }
}

/// A fresh kernel socket such as the program's was.
pub fn fresh(socket: &Socket) -> Result<c_int> {
    let domain = if socket.has(bit::INET6) { libc::AF_INET6 } else { libc::AF_INET };
    let kind = if socket.is_stream() { libc::SOCK_STREAM } else { libc::SOCK_DGRAM };
    sys::socket(domain, kind | libc::SOCK_CLOEXEC)
}

/// The bytes of an option of a kernel socket as `setsockopt` takes them.
fn settable(level: c_int, name: c_int, told: &mut [u8; LONGEST]) {
    if matches!((level, name), (SOL_SOCKET, libc::SO_SNDBUF | libc::SO_RCVBUF)) {
        // The kernel returns twice the value that was set.
        let value = int_of(level, told).unwrap_or(0);
        told[..4].copy_from_slice(&(value / 2).to_ne_bytes());
    }
}

/// Carries over the options that the program set on the kernel socket `from`: those that differ from a fresh one's.
pub fn carry_over(from: c_int, near: c_int, socket: &Socket) {
    let Ok(fresh) = fresh(socket) else {
        return;
    };
    for row in table::rows() {
        let (level, name) = (row.level, row.number);
        let Some(len) = carried(row, socket.is_stream()) else { continue };
        let (mut now, mut default) = ([0u8; LONGEST], [0u8; LONGEST]);
        let (Ok(len), Ok(_)) = (
            sys::get_option(from, level, name, &mut now[..len]),
            sys::get_option(fresh, level, name, &mut default[..len]),
        ) else {
            continue;
        };
        if find(socket, level, name).is_none() || now == default {
            continue;
        }
        settable(level, name, &mut now);
        let _ = set(near, socket, level, name, &now[..len]);
    }
    sys::close(fresh);
}

/// Carries over TCP_MAXSEG if it was set, even to 536, which a kernel socket also returns by default.
pub fn carry_segment(from: c_int, near: c_int, socket: &Socket) {
    carry(from, near, socket, (libc::TCP_MAXSEG, 4));
}

/// Carries over TCP_CONGESTION if it was set, even to the kernel's default, which need not be eft's.
pub fn carry_congestion(from: c_int, near: c_int, socket: &Socket) {
    carry(from, near, socket, (libc::TCP_CONGESTION, 16));
}

/// Carries over one of TCP's options, of so many bytes.
fn carry(from: c_int, near: c_int, socket: &Socket, (name, len): (c_int, usize)) {
    let mut value = [0u8; LONGEST];
    if let Ok(len) = sys::get_option(from, libc::IPPROTO_TCP, name, &mut value[..len]) {
        let _ = set(near, socket, libc::IPPROTO_TCP, name, &value[..len]);
    }
}

/// The reverse: sets the program's options on `kernel`, a fresh socket that becomes the eft socket's shadow, or replaces
/// it.
pub fn carry_back(fd: c_int, socket: &Socket, kernel: c_int) {
    for row in table::rows() {
        let (level, name) = (row.level, row.number);
        let Some(len) = carried(row, socket.is_stream()) else { continue };
        let unset = match find(socket, level, name) {
            None => true,
            Some(Kind::Size(opt)) => socket.page.option(opt) == 0,
            // The error queue of a shadow is never read.
            Some(Kind::ErrorQueue) => true,
            Some(Kind::Stamps | Kind::Bit(bit::ZEROCOPY)) if !socket.is_stream() => true,
            Some(_) => false,
        };
        let (mut ours, mut theirs) = ([0u8; LONGEST], [0u8; LONGEST]);
        let Ok(len) = get(fd, socket, level, name, &mut ours[..len]) else { continue };
        if unset || sys::get_option(kernel, level, name, &mut theirs[..len]).is_err() || ours == theirs {
            continue;
        }
        settable(level, name, &mut ours);
        let _ = sys::set_option(kernel, level, name, &ours[..len]);
    }
}
