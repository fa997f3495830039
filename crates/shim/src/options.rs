//! setsockopt and getsockopt of eft sockets.
//!
//! Options live in the socket's page: those that the transport acts on in its option words, the
//! rest in the shim's. Timeouts are the kernel's: they sit on the descriptor itself, where the
//! waiting is done. What eft does not know gets ENOPROTOOPT, as from a kernel without it.

use crate::accept;
use crate::socket::{Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::{datagram, interfaces, loopback, stream, tcp_info, twin};
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use eft_channel::socket::{Opt, flag};
use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP, SOL_SOCKET};

const TCP_ULP: c_int = 31;
const UDP_SEGMENT: c_int = 103;
const UDP_GRO: c_int = 104;
const IP_BIND_ADDRESS_NO_PORT: c_int = 24;
const IPV6_RECVERR: c_int = 25;
const SO_INCOMING_NAPI_ID: c_int = 56;
const SO_BUSY_POLL: c_int = 46;
const SO_MAX_PACING_RATE: c_int = 47;

/// No option is longer than this.
pub const LONGEST: usize = 128;

/// How an option is kept.
#[derive(Clone, Copy)]
enum Kind {
    /// A word for the transport, as it is.
    Word(Opt),
    /// A word for the transport: 0 or 1.
    Flag(Opt),
    /// One of the shim's bits.
    Bit(u32),
    /// A buffer size; the kernel doubles what is set.
    Size(Opt),
    /// On the descriptor itself.
    Descriptor,
    /// Taken and of no effect; reads as this.
    Ignored(c_int),
    /// Cannot be set; reads as computed.
    Computed(fn(&Socket) -> c_int),
    Cork,
    DatagramCork,
    QuickAck,
    Linger,
    Congestion,
    MaxSegment,
    Priority,
    DeferAccept,
    LowWater,
    DontFragment,
    PathMtu,
    Error,
    TcpInfo,
}

fn find(socket: &Socket, level: c_int, name: c_int) -> Option<Kind> {
    match level {
        SOL_SOCKET => common(name),
        IPPROTO_TCP if socket.is_stream() => tcp(name),
        IPPROTO_IP => ip(name),
        IPPROTO_IPV6 if socket.has(bit::INET6) => ipv6(name),
        IPPROTO_UDP if !socket.is_stream() => match name {
            libc::UDP_CORK => Some(Kind::DatagramCork),
            // Without segmentation and merging programs send and receive one by one.
            UDP_SEGMENT | UDP_GRO => None,
            _ => None,
        },
        _ => None,
    }
}

fn common(name: c_int) -> Option<Kind> {
    Some(match name {
        libc::SO_KEEPALIVE => Kind::Flag(Opt::KeepAlive),
        libc::SO_BROADCAST => Kind::Flag(Opt::Broadcast),
        libc::SO_REUSEADDR => Kind::Bit(bit::REUSE_ADDRESS),
        libc::SO_REUSEPORT => Kind::Bit(bit::REUSE_PORT),
        libc::SO_OOBINLINE => Kind::Bit(bit::OOB_INLINE),
        libc::SO_SNDBUF | libc::SO_SNDBUFFORCE => Kind::Size(Opt::SendBuffer),
        libc::SO_RCVBUF | libc::SO_RCVBUFFORCE => Kind::Size(Opt::ReceiveBuffer),
        libc::SO_RCVTIMEO | libc::SO_SNDTIMEO => Kind::Descriptor,
        libc::SO_LINGER => Kind::Linger,
        libc::SO_PRIORITY => Kind::Priority,
        libc::SO_RCVLOWAT => Kind::LowWater,
        libc::SO_ERROR => Kind::Error,
        libc::SO_TYPE => Kind::Computed(|s| match s.is_stream() {
            true => libc::SOCK_STREAM,
            false => libc::SOCK_DGRAM,
        }),
        libc::SO_DOMAIN => Kind::Computed(|s| match s.has(bit::INET6) {
            true => libc::AF_INET6,
            false => libc::AF_INET,
        }),
        libc::SO_PROTOCOL => Kind::Computed(|s| match s.is_stream() {
            true => libc::IPPROTO_TCP,
            false => libc::IPPROTO_UDP,
        }),
        libc::SO_ACCEPTCONN => Kind::Computed(|s| s.has(bit::LISTENING) as c_int),
        libc::SO_SNDLOWAT => Kind::Computed(|_| 1),
        SO_INCOMING_NAPI_ID => Kind::Computed(|_| 0),
        libc::SO_INCOMING_CPU => Kind::Ignored(-1),
        libc::SO_DONTROUTE
        | libc::SO_TIMESTAMP
        | libc::SO_TIMESTAMPNS
        | libc::SO_NO_CHECK
        | libc::SO_MARK
        | libc::SO_RXQ_OVFL
        | SO_BUSY_POLL
        | SO_MAX_PACING_RATE => Kind::Ignored(0),
        _ => return None,
    })
}

fn tcp(name: c_int) -> Option<Kind> {
    Some(match name {
        libc::TCP_NODELAY => Kind::Flag(Opt::NoDelay),
        libc::TCP_CORK => Kind::Cork,
        libc::TCP_KEEPIDLE => Kind::Word(Opt::KeepIdle),
        libc::TCP_KEEPINTVL => Kind::Word(Opt::KeepInterval),
        libc::TCP_KEEPCNT => Kind::Word(Opt::KeepCount),
        libc::TCP_USER_TIMEOUT => Kind::Word(Opt::UserTimeout),
        libc::TCP_QUICKACK => Kind::QuickAck,
        libc::TCP_CONGESTION => Kind::Congestion,
        libc::TCP_MAXSEG => Kind::MaxSegment,
        libc::TCP_DEFER_ACCEPT => Kind::DeferAccept,
        libc::TCP_INFO => Kind::TcpInfo,
        libc::TCP_SYNCNT => Kind::Ignored(6),
        libc::TCP_LINGER2 => Kind::Ignored(60),
        libc::TCP_WINDOW_CLAMP => Kind::Ignored(0),
        libc::TCP_NOTSENT_LOWAT => Kind::Ignored(-1),
        // Fast Open and kernel TLS: programs do without.
        libc::TCP_FASTOPEN | libc::TCP_FASTOPEN_CONNECT | TCP_ULP => return None,
        _ => return None,
    })
}

fn ip(name: c_int) -> Option<Kind> {
    Some(match name {
        libc::IP_TOS => Kind::Word(Opt::Tos),
        libc::IP_TTL => Kind::Word(Opt::Ttl),
        libc::IP_MTU_DISCOVER => Kind::DontFragment,
        libc::IP_RECVERR => Kind::Bit(bit::RECEIVE_ERRORS),
        libc::IP_PKTINFO => Kind::Bit(bit::PACKET_INFO),
        libc::IP_RECVTOS => Kind::Bit(bit::RECEIVE_TOS),
        libc::IP_RECVTTL => Kind::Bit(bit::RECEIVE_TTL),
        libc::IP_MTU => Kind::PathMtu,
        libc::IP_FREEBIND | IP_BIND_ADDRESS_NO_PORT | libc::IP_OPTIONS => Kind::Ignored(0),
        libc::IP_MULTICAST_TTL => Kind::Ignored(1),
        libc::IP_MULTICAST_LOOP => Kind::Ignored(1),
        _ => return None,
    })
}

fn ipv6(name: c_int) -> Option<Kind> {
    Some(match name {
        libc::IPV6_V6ONLY => Kind::Ignored(0),
        libc::IPV6_TCLASS => Kind::Word(Opt::Tos),
        libc::IPV6_UNICAST_HOPS => Kind::Word(Opt::Ttl),
        libc::IPV6_RECVPKTINFO => Kind::Bit(bit::PACKET_INFO),
        libc::IPV6_MTU_DISCOVER => Kind::DontFragment,
        IPV6_RECVERR => Kind::Bit(bit::RECEIVE_ERRORS),
        libc::IPV6_RECVTCLASS | libc::IPV6_RECVHOPLIMIT => Kind::Ignored(0),
        _ => return None,
    })
}

fn int_of(level: c_int, value: &[u8]) -> Result<c_int> {
    match value {
        [a, b, c, d, ..] => Ok(c_int::from_ne_bytes([*a, *b, *c, *d])),
        // IP_TOS and IP_TTL, and others of that level, may be single bytes.
        [a, ..] if level == IPPROTO_IP => Ok(*a as c_int),
        _ => Err(Errno(libc::EINVAL)),
    }
}

/// The values that the kernel takes for a word of the transport.
fn range_of(opt: Opt) -> core::ops::RangeInclusive<c_int> {
    match opt {
        Opt::KeepIdle | Opt::KeepInterval => 1..=32767,
        Opt::KeepCount => 1..=127,
        Opt::Ttl => 1..=255,
        _ => 0..=c_int::MAX,
    }
}

/// `setsockopt`.
pub fn set(fd: c_int, socket: &Socket, level: c_int, name: c_int, value: &[u8]) -> Result<()> {
    if let Some(hidden) = loopback::of(socket) {
        // What goes over the loopback is to have it too.
        let _ = sys::set_option(hidden, level, name, value);
    }
    let kind = find(socket, level, name).ok_or(Errno(libc::ENOPROTOOPT))?;
    let page = &socket.page;
    match kind {
        Kind::Descriptor => return sys::set_option(fd, level, name, value),
        Kind::Congestion => return set_congestion(socket, value),
        Kind::Linger => {
            let seconds = int_of(level, value.get(4..).unwrap_or(&[]))?;
            let on = int_of(level, value)? != 0;
            let word = if on { seconds.clamp(0, 65535) as u32 + 1 } else { 0 };
            page.set_option(Opt::Linger, word);
            socket.notify();
            return Ok(());
        }
        _ => {}
    }
    let number = int_of(level, value)?;
    match kind {
        // IPV6_TCLASS and the time to live: back to the default.
        Kind::Word(opt @ (Opt::Ttl | Opt::Tos)) if number == -1 => page.set_option(opt, 0),
        Kind::Word(opt) if !range_of(opt).contains(&number) => return Err(Errno(libc::EINVAL)),
        Kind::Word(opt) => page.set_option(opt, number as u32),
        Kind::Flag(opt) => page.set_option(opt, (number != 0) as u32),
        Kind::Bit(bits) => socket.put_bits(bits, number != 0),
        Kind::Size(opt) => page.set_option(opt, (number.clamp(2304, 1 << 27) as u32) * 2),
        Kind::Cork => {
            let rest = page.option(Opt::Cork) & !stream::CORK_OPTION;
            page.set_option(Opt::Cork, rest | (number != 0) as u32);
        }
        Kind::DatagramCork => datagram::set_cork(socket, number != 0)?,
        // The default is on; what is worth telling the transport is "off" (2) and "now" (1).
        Kind::QuickAck => page.set_option(Opt::QuickAck, if number != 0 { 1 } else { 2 }),
        Kind::MaxSegment => {
            if number != 0 && !(88..=32767).contains(&number) {
                return Err(Errno(libc::EINVAL));
            }
            socket.max_segment().store(number as u32, Ordering::Relaxed);
        }
        Kind::Priority => socket.priority().store(number as u32, Ordering::Relaxed),
        Kind::DeferAccept => accept::set_defer(socket, number.max(0) as u32),
        Kind::LowWater => {
            let value = if number < 0 { c_int::MAX } else { number };
            socket.low_water().store(value as u32, Ordering::Relaxed);
        }
        Kind::DontFragment => page.set_option(
            Opt::DontFragment,
            matches!(number, libc::IP_PMTUDISC_DO | libc::IP_PMTUDISC_PROBE) as u32,
        ),
        Kind::Ignored(_) => return Ok(()),
        _ => return Err(Errno(libc::ENOPROTOOPT)),
    }
    socket.notify();
    Ok(())
}

fn set_congestion(socket: &Socket, value: &[u8]) -> Result<()> {
    let name = value.split(|&b| b == 0).next().unwrap_or(&[]);
    let word = match name {
        b"cubic" => 1,
        b"reno" | b"newreno" => 2,
        _ => return Err(Errno(libc::ENOENT)),
    };
    socket.page.set_option(Opt::Congestion, word);
    socket.notify();
    Ok(())
}

/// How `getsockopt` refuses an option of `level` that there is not. An IPv4 socket says of levels that
/// it has not at all that it cannot; `setsockopt` makes no difference.
fn unknown(socket: &Socket, level: c_int) -> Errno {
    let own = if socket.is_stream() { IPPROTO_TCP } else { IPPROTO_UDP };
    let known = level == SOL_SOCKET || level == IPPROTO_IP || level == own;
    match known || socket.has(bit::INET6) {
        true => Errno(libc::ENOPROTOOPT),
        false => Errno(libc::EOPNOTSUPP),
    }
}

/// `getsockopt`: the option's bytes into `to` (at most its length); returns how many.
pub fn get(fd: c_int, socket: &Socket, level: c_int, name: c_int, to: &mut [u8]) -> Result<usize> {
    let kind = find(socket, level, name).ok_or_else(|| unknown(socket, level))?;
    let page = &socket.page;
    let word = |opt: Opt, default: c_int| match page.option(opt) {
        0 => default,
        n => n as c_int,
    };
    let number = match kind {
        Kind::Descriptor => return sys::get_option(fd, level, name, to),
        Kind::TcpInfo => return Ok(copy(&tcp_info::bytes(socket), to)),
        Kind::Congestion => {
            let name: &[u8] = match page.option(Opt::Congestion) {
                2 => b"reno",
                _ => b"cubic",
            };
            let mut padded = [0; 16];
            padded[..name.len()].copy_from_slice(name);
            return Ok(copy(&padded, to));
        }
        Kind::Linger => {
            let linger = page.option(Opt::Linger);
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&((linger != 0) as c_int).to_ne_bytes());
            bytes[4..].copy_from_slice(&linger.saturating_sub(1).to_ne_bytes());
            return Ok(copy(&bytes, to));
        }
        Kind::Error => pending_error(fd, socket),
        Kind::Word(opt @ Opt::KeepIdle) => word(opt, 7200),
        Kind::Word(opt @ Opt::KeepInterval) => word(opt, 75),
        Kind::Word(opt @ Opt::KeepCount) => word(opt, 9),
        Kind::Word(opt @ Opt::Ttl) => word(opt, 64),
        Kind::Word(opt) | Kind::Flag(opt) => page.option(opt) as c_int,
        Kind::Bit(bits) => socket.has(bits) as c_int,
        Kind::Size(Opt::SendBuffer) => word(Opt::SendBuffer, page.send_len() as c_int),
        Kind::Size(opt) => word(opt, page.receive_len() as c_int),
        Kind::Cork => (page.option(Opt::Cork) & stream::CORK_OPTION) as c_int,
        Kind::DatagramCork => socket.has(bit::DATAGRAM_CORK) as c_int,
        Kind::QuickAck => (page.option(Opt::QuickAck) != 2) as c_int,
        Kind::MaxSegment => match page.info().mss {
            0 => match socket.max_segment().load(Ordering::Relaxed) {
                0 => 536,
                set => set as c_int,
            },
            mss => mss as c_int,
        },
        Kind::Priority => socket.priority().load(Ordering::Relaxed) as c_int,
        Kind::DeferAccept => socket.defer_accept().load(Ordering::Relaxed) as c_int,
        Kind::LowWater => socket.low_water().load(Ordering::Relaxed).max(1) as c_int,
        Kind::DontFragment => match (page.option(Opt::DontFragment), socket.is_stream()) {
            (0, false) => libc::IP_PMTUDISC_DONT,
            (0, true) => libc::IP_PMTUDISC_WANT,
            _ => libc::IP_PMTUDISC_DO,
        },
        Kind::PathMtu => path_mtu(socket)?,
        Kind::Ignored(value) => value,
        Kind::Computed(compute) => compute(socket),
    };
    Ok(copy(&number.to_ne_bytes(), to))
}

fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let n = from.len().min(to.len());
    to[..n].copy_from_slice(&from[..n]);
    n
}

/// IP_MTU: the largest packet to the peer, as far as the shim can tell. What the device takes, or
/// what a stream's segments show if that is less.
fn path_mtu(socket: &Socket) -> Result<c_int> {
    /// Headers of a segment with timestamps.
    const HEADERS: c_int = 20 + 20 + 12;
    if !accept::is_connected(socket) {
        return Err(Errno(libc::ENOTCONN));
    }
    let device = interfaces::mtu_towards(socket.page.local().address, socket.page.remote().address);
    Ok(match socket.page.info().mss {
        mss @ 1..=65483 if socket.is_stream() => device.min(mss as c_int + HEADERS),
        _ => device,
    })
}

/// SO_ERROR: how the connect ended, or what happened since; taken.
fn pending_error(fd: c_int, socket: &Socket) -> c_int {
    let errno = match socket.page.error() {
        0 if socket.is_stream() => 0,
        0 => twin::pending_error(socket),
        _ => socket.page.take_error(),
    };
    if errno != 0 && !socket.is_stream() {
        datagram::quieten(fd, socket);
    }
    if errno != 0 {
        return errno;
    }
    if socket.has(bit::ORPHAN) && socket.page.flags() & flag::CONNECTED == 0 {
        return libc::ENETDOWN;
    }
    if socket.page.flags() & flag::CONNECTED != 0 {
        socket.set_bits(bit::CONNECT_TOLD);
    }
    0
}

/// An accepted connection begins with its listener's options.
pub fn inherit(listener: &Socket, socket: &Socket) {
    const INHERITED: [Opt; 13] = [
        Opt::NoDelay,
        Opt::Cork,
        Opt::KeepAlive,
        Opt::KeepIdle,
        Opt::KeepInterval,
        Opt::KeepCount,
        Opt::UserTimeout,
        Opt::Linger,
        Opt::ReceiveBuffer,
        Opt::SendBuffer,
        Opt::Tos,
        Opt::Ttl,
        Opt::Congestion,
    ];
    for opt in INHERITED {
        let value = listener.page.option(opt);
        if value != 0 {
            socket.page.set_option(opt, value);
        }
    }
    socket.set_bits(listener.bits() & (bit::REUSE_ADDRESS | bit::REUSE_PORT | bit::OOB_INLINE));
    let low_water = listener.low_water().load(Ordering::Relaxed);
    socket.low_water().store(low_water, Ordering::Relaxed);
}

/// Options that a kernel socket may have been given before it was decided, with their lengths.
const CARRIED: &[(c_int, c_int, usize)] = &[
    (SOL_SOCKET, libc::SO_KEEPALIVE, 4),
    (SOL_SOCKET, libc::SO_BROADCAST, 4),
    (SOL_SOCKET, libc::SO_REUSEADDR, 4),
    (SOL_SOCKET, libc::SO_REUSEPORT, 4),
    (SOL_SOCKET, libc::SO_OOBINLINE, 4),
    (SOL_SOCKET, libc::SO_SNDBUF, 4),
    (SOL_SOCKET, libc::SO_RCVBUF, 4),
    (SOL_SOCKET, libc::SO_RCVTIMEO, 16),
    (SOL_SOCKET, libc::SO_SNDTIMEO, 16),
    (SOL_SOCKET, libc::SO_LINGER, 8),
    (SOL_SOCKET, libc::SO_PRIORITY, 4),
    (SOL_SOCKET, libc::SO_RCVLOWAT, 4),
    (IPPROTO_TCP, libc::TCP_NODELAY, 4),
    (IPPROTO_TCP, libc::TCP_CORK, 4),
    (IPPROTO_TCP, libc::TCP_KEEPIDLE, 4),
    (IPPROTO_TCP, libc::TCP_KEEPINTVL, 4),
    (IPPROTO_TCP, libc::TCP_KEEPCNT, 4),
    (IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 4),
    (IPPROTO_TCP, libc::TCP_CONGESTION, 16),
    (IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, 4),
    (IPPROTO_IP, libc::IP_TOS, 4),
    (IPPROTO_IP, libc::IP_TTL, 4),
    (IPPROTO_IP, libc::IP_RECVERR, 4),
    (IPPROTO_IP, libc::IP_PKTINFO, 4),
    (IPPROTO_IP, libc::IP_RECVTOS, 4),
    (IPPROTO_IP, libc::IP_RECVTTL, 4),
    (IPPROTO_IP, libc::IP_MTU_DISCOVER, 4),
    (IPPROTO_IPV6, libc::IPV6_TCLASS, 4),
    (IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, 4),
    (IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 4),
];

/// A fresh kernel socket such as the program's was.
pub fn fresh(socket: &Socket) -> Result<c_int> {
    let domain = if socket.has(bit::INET6) { libc::AF_INET6 } else { libc::AF_INET };
    let kind = if socket.is_stream() { libc::SOCK_STREAM } else { libc::SOCK_DGRAM };
    sys::socket(domain, kind | libc::SOCK_CLOEXEC)
}

/// The bytes of an option of a kernel socket as `setsockopt` takes them.
fn settable(level: c_int, name: c_int, told: &mut [u8; 16]) {
    if matches!((level, name), (SOL_SOCKET, libc::SO_SNDBUF | libc::SO_RCVBUF)) {
        // The kernel tells twice what was set.
        let value = int_of(level, told).unwrap_or(0);
        told[..4].copy_from_slice(&(value / 2).to_ne_bytes());
    }
}

/// Carries over what the program set on the kernel socket `from`: what differs there from a fresh
/// one.
pub fn carry_over(from: c_int, near: c_int, socket: &Socket) {
    let Ok(fresh) = fresh(socket) else {
        return;
    };
    for &(level, name, len) in CARRIED {
        let (mut now, mut default) = ([0u8; 16], [0u8; 16]);
        if find(socket, level, name).is_none()
            || sys::get_option(from, level, name, &mut now[..len]).is_err()
            || sys::get_option(fresh, level, name, &mut default[..len]).is_err()
            || now == default
        {
            continue;
        }
        settable(level, name, &mut now);
        let _ = set(near, socket, level, name, &now[..len]);
    }
    sys::close(fresh);
}

/// The other way round: the program's options for `kernel`, a fresh one that is to stand beside its
/// eft socket, or in its place.
pub fn carry_back(fd: c_int, socket: &Socket, kernel: c_int) {
    for &(level, name, len) in CARRIED {
        let unset = match find(socket, level, name) {
            None => true,
            Some(Kind::Size(opt)) => socket.page.option(opt) == 0,
            Some(_) => false,
        };
        let (mut ours, mut theirs) = ([0u8; 16], [0u8; 16]);
        if unset
            || get(fd, socket, level, name, &mut ours[..len]).is_err()
            || sys::get_option(kernel, level, name, &mut theirs[..len]).is_err()
            || ours == theirs
        {
            continue;
        }
        settable(level, name, &mut ours);
        let _ = sys::set_option(kernel, level, name, &ours[..len]);
    }
}
