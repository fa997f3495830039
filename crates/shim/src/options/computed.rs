//! What `getsockopt` computes from several words of a socket's page.

use crate::socket::{Socket, bit};
use crate::sys::{Errno, Result};
use crate::{interfaces, received, shadow};
use core::ffi::c_int;
use eft_channel::socket::{Opt, SocketPage, flag};

/// TCP_MAXSEG: for a connection the size of its segments, else the value that was set.
pub(super) fn max_segment(page: &SocketPage) -> c_int {
    /// RFC 9293 §3.7.1: the default without the peer's option.
    const DEFAULT: u32 = 536;
    let connected = page.flags() & (flag::CONNECTED | flag::DEAD) == flag::CONNECTED;
    let size = match page.option(Opt::MaxSegment) {
        0 => page.info().mss,
        _ if connected => page.info().mss,
        set => set,
    };
    if size == 0 { DEFAULT as c_int } else { size as c_int }
}

/// IP_MTU: the largest packet to the peer, as far as the shim knows: the device's MTU, or that of a
/// stream's segments if it is less.
pub(super) fn path_mtu(socket: &Socket) -> Result<c_int> {
    /// TCP's header with timestamps.
    const TCP_HEADER: c_int = 20 + 12;
    if !socket.is_connected() {
        return Err(Errno(libc::ENOTCONN));
    }
    let ip_header = if socket.page.remote().address.is_ipv6() { 40 } else { 20 };
    // RFC 791 §3.2, RFC 8200 §5: every path takes so much.
    let least = if ip_header == 40 { 1280 } else { 68 };
    let device = interfaces::mtu_towards(socket.page.local().address, socket.page.remote().address);
    Ok(match (socket.page.info().mss, socket.is_stream()) {
        (mss @ 1..=65483, true) => device.min(mss as c_int + ip_header + TCP_HEADER),
        // What a router has told udp.
        (told @ 1..=65535, false) => device.min(told as c_int).max(least),
        _ => device,
    })
}

/// SO_MEMINFO (`SK_MEMINFO_VARS` of Linux's sock_diag): bytes that wait to be read and room for them, bytes that are not
/// free to be overwritten yet and room for them. As on Linux, a stream's are what is queued, and datagrams what devices have. There
/// are no others.
pub(super) fn memory(socket: &Socket) -> [u8; 36] {
    let page = &socket.page;
    let size = |opt: Opt, default: usize| match page.option(opt) {
        0 => default as u32,
        set => set,
    };
    let received = page.receivable() as u32;
    let sent = page.send_end().saturating_sub(page.send_released()).min(page.send_len() as u64) as u32;
    let (room, send_room) =
        (size(Opt::ReceiveBuffer, page.receive_len()), size(Opt::SendBuffer, page.send_limit()));
    let mut bytes = [0; 36];
    let kept = if socket.is_stream() { 5 } else { 2 };
    for (i, word) in [(0, received), (1, room), (kept, sent), (3, send_room)] {
        bytes[i * 4..i * 4 + 4].copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// SO_ERROR: how the connect ended, or what happened since; taken.
pub(super) fn pending_error(fd: c_int, socket: &Socket) -> c_int {
    let errno = match socket.page.error() {
        0 if socket.is_stream() => 0,
        0 => shadow::pending_error(socket),
        _ => socket.page.take_error(),
    };
    if errno != 0 && !socket.is_stream() {
        received::quieten(fd, socket);
    }
    if errno != 0 {
        return errno;
    }
    if socket.has(bit::ORPHAN) && socket.page.flags() & flag::CONNECTED == 0 {
        return libc::ENETDOWN;
    }
    if socket.page.flags() & flag::CONNECTED != 0 {
        socket.set_bits(bit::CONNECT_TOLD);
        if socket.is_stream() {
            return take_soft_error(&socket.page);
        }
    }
    0
}

/// A path error that nothing was acknowledged after (Linux's `sk_err_soft`): told once.
fn take_soft_error(page: &SocketPage) -> c_int {
    let info = page.info();
    let number = info.soft_errors as u32 + 1;
    if info.soft_error == 0 || page.option(Opt::SoftErrorTold) == number {
        return 0;
    }
    page.set_option(Opt::SoftErrorTold, number);
    info.soft_error as c_int
}

pub(super) fn kind(socket: &Socket) -> c_int {
    if socket.is_stream() { libc::SOCK_STREAM } else { libc::SOCK_DGRAM }
}

pub(super) fn protocol(socket: &Socket) -> c_int {
    if socket.is_stream() { libc::IPPROTO_TCP } else { libc::IPPROTO_UDP }
}

pub(super) fn domain(socket: &Socket) -> c_int {
    if socket.has(bit::INET6) { libc::AF_INET6 } else { libc::AF_INET }
}
