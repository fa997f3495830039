//! setsockopt and getsockopt of eft sockets, and of sockets that may become eft's.
//!
//! Options live in the socket's page: those that the transport acts on in its option words, the rest in
//! the shim's. Timeouts are kept by the kernel, on the descriptor itself, where calls wait. An option
//! takes effect or is refused at the time of the call: options that eft does not support get
//! ENOPROTOOPT, as from a kernel without them, even before a socket's first address.

pub mod authentication;
mod carry;
mod computed;
mod congestion;
mod filters;
mod ipv6;
pub mod joined;
mod kind;
pub mod multicast;
mod pacing;
pub mod signatures;
mod table;
mod words;

use crate::socket::{Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::{
    beside, datagram, error_queue, flow, held, interfaces, loopback, segmentation, stamps, tcp_info, urgent,
};
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use eft_channel::socket::{COOKIE_KEYS_MAX, Opt, cork, flag, fragment};
use kind::Kind;
use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP, SOL_SOCKET};

pub use carry::{carry_back, carry_congestion, carry_over, carry_segment, fresh, inherit};

/// No option is longer than this.
pub const LONGEST: usize = authentication::LONGEST;

/// Bytes of one key of TCP_FASTOPEN_KEY; there may be two.
const COOKIE_KEY_LEN: usize = 16;
/// Linux's `net.core.somaxconn`: larger values are cut to it.
const SOMAXCONN: c_int = 4096;

/// How an option of this socket is kept; `None` if it is refused.
fn find(socket: &Socket, level: c_int, name: c_int) -> Option<Kind> {
    let foreign = level == IPPROTO_IPV6 && !socket.has(bit::INET6);
    table::row(level, name).filter(|_| !foreign)?.kind(socket.is_stream())
}

/// Refuses an option on a socket that is not eft's yet, if eft would refuse it: with a value for
/// `setsockopt`, without for `getsockopt`. The kernel handles IPv6's own options until then, but for those that the table refuses.
pub fn before(stream: bool, level: c_int, name: c_int, value: Option<&[u8]>) -> Result<()> {
    if !table::speaks_for(level) {
        let is_refused = table::row(level, name).is_some_and(|row| row.kind(stream).is_none());
        return if is_refused { Err(Errno(libc::ENOPROTOOPT)) } else { Ok(()) };
    }
    let kind = table::row(level, name).and_then(|row| row.kind(stream)).ok_or(Errno(libc::ENOPROTOOPT))?;
    value.map_or(Ok(()), |value| {
        check(kind, stream, level, value)?;
        if level == IPPROTO_TCP { authentication::check(name, value) } else { Ok(()) }
    })
}

/// Refuses what can be read only, and values that Linux takes and eft does not.
fn check(kind: Kind, stream: bool, level: c_int, value: &[u8]) -> Result<()> {
    match kind {
        Kind::Invalid(_) => Err(Errno(libc::EINVAL)),
        kind if kind.is_read_only() => Err(Errno(libc::ENOPROTOOPT)),
        Kind::Congestion => congestion::number(value).map(drop),
        Kind::Bit(bit::TELL_LEFT | bit::EARLY_CONNECT | bit::ZEROCOPY)
            if !(0..=1).contains(&int_of(level, value)?) =>
        {
            Err(Errno(libc::EINVAL))
        }
        Kind::Bit(bit::EARLY_CONNECT) if !interfaces::may_connect_early() => Err(Errno(libc::EOPNOTSUPP)),
        Kind::Stamps => stamps::check(int_of(level, value)? as u32),
        Kind::LargestPacket => ipv6::check_largest(int_of(level, value)?),
        Kind::LabelLease => ipv6::check_lease(value),
        Kind::NoOptions if !value.is_empty() => Err(Errno(libc::EINVAL)),
        Kind::CookieKeys if !matches!(value.len(), COOKIE_KEY_LEN | COOKIE_KEYS_MAX) => {
            Err(Errno(libc::EINVAL))
        }
        Kind::Flag(Opt::FastOpenNoCookie) if !(0..=1).contains(&int_of(level, value)?) => {
            Err(Errno(libc::EINVAL))
        }
        Kind::Unless(opt) => words::check_switch(opt, level, int_of(level, value)?),
        Kind::DontFragment => match int_of(level, value)? {
            libc::IP_PMTUDISC_DONT..=libc::IP_PMTUDISC_PROBE => Ok(()),
            0..=5 if !stream || level == IPPROTO_IPV6 => Ok(()),
            _ => Err(Errno(libc::EINVAL)),
        },
        _ => Ok(()),
    }
}

fn int_of(level: c_int, value: &[u8]) -> Result<c_int> {
    match value {
        [a, b, c, d, ..] => Ok(c_int::from_ne_bytes([*a, *b, *c, *d])),
        // IP_TOS and IP_TTL, and others of that level, may be single bytes.
        [a, ..] if level == IPPROTO_IP => Ok(*a as c_int),
        _ => Err(Errno(libc::EINVAL)),
    }
}

/// `setsockopt`.
pub fn set(fd: c_int, socket: &Socket, level: c_int, name: c_int, value: &[u8]) -> Result<()> {
    set_one(fd, socket, level, name, value)?;
    beside::agree(socket);
    Ok(())
}

fn set_one(fd: c_int, socket: &Socket, level: c_int, name: c_int, value: &[u8]) -> Result<()> {
    let kind = find(socket, level, name).ok_or(Errno(libc::ENOPROTOOPT))?;
    check(kind, socket.is_stream(), level, value)?;
    // The shadow keeps no errors: they would never be read.
    let queues = !socket.is_stream() && matches!(kind, Kind::Stamps | Kind::Bit(bit::ZEROCOPY));
    let own =
        matches!(kind, Kind::ErrorQueue | Kind::Membership(_) | Kind::Filter | Kind::MulticastInterface);
    if !queues && !own {
        // What comes and goes over the loopback gets the option, too.
        for hidden in loopback::all(socket) {
            let _ = sys::set_option(hidden, level, name, value);
        }
    }
    let page = &socket.page;
    match kind {
        Kind::Descriptor => {
            held::part(fd);
            // The next wait asks for the timeout.
            socket.put_bits(bit::PATIENT, false);
            return sys::set_option(fd, level, name, value);
        }
        Kind::NoOptions | Kind::LabelLease => return Ok(()),
        Kind::Membership(_) | Kind::Filter => {
            match kind {
                Kind::Membership(change) => multicast::change(socket, change, level, name, value)?,
                _ => filters::set(socket, level, name, value)?,
            }
            joined::note(socket, level, name, value);
            return Ok(());
        }
        Kind::MulticastInterface => return multicast::set_interface(page, level, value),
        Kind::SignatureKey => return signatures::set(socket, name, value),
        Kind::Authentication | Kind::AuthenticationKey => return authentication::set(socket, name, value),
        Kind::CookieKeys => {
            page.set_cookie_keys(value);
            return Ok(());
        }
        Kind::Congestion => {
            page.set_option(Opt::Congestion, congestion::number(value)?);
            crate::domain::notify(socket);
            return Ok(());
        }
        Kind::PacingLimit => {
            pacing::set(page, level, value)?;
            crate::domain::notify(socket);
            return Ok(());
        }
        Kind::Linger => {
            let seconds = int_of(level, value.get(4..).unwrap_or(&[]))?;
            let on = int_of(level, value)? != 0;
            let word = if on { seconds.clamp(0, 65535) as u32 + 1 } else { 0 };
            page.set_option(Opt::Linger, word);
            crate::domain::notify(socket);
            return Ok(());
        }
        _ => {}
    }
    let number = int_of(level, value)?;
    match kind {
        Kind::MulticastHops => words::set_multicast_hops(page, number)?,
        Kind::Unless(opt) => page.set_option(opt, (number == 0) as u32),
        // IPV6_TCLASS and the time to live: back to the default.
        Kind::Word(opt @ (Opt::Ttl | Opt::Tos)) if number == -1 => page.set_option(opt, 0),
        // An unsigned number, all bits for "no limit"; zero, as on Linux, is the default, which is none.
        Kind::Word(Opt::NotSentLowWater) => page.set_option(Opt::NotSentLowWater, number as u32),
        Kind::Word(opt @ Opt::DeferAccept) => page.set_option(opt, words::timeouts_within(number)),
        Kind::Word(opt) if !words::range_of(opt).contains(&number) => return Err(Errno(libc::EINVAL)),
        Kind::Word(Opt::FastOpenQueue) if is_connected(socket) => return Err(Errno(libc::EINVAL)),
        // A stream's ECN bits are TCP's own.
        Kind::Word(Opt::Tos) if socket.is_stream() => page.set_option(Opt::Tos, number as u32 & 0xfc),
        Kind::Word(Opt::FastOpenQueue) => page.set_option(Opt::FastOpenQueue, number.min(SOMAXCONN) as u32),
        Kind::Word(opt) => page.set_option(opt, number as u32),
        Kind::Flag(Opt::FastOpenNoCookie) if is_connected(socket) => return Err(Errno(libc::EINVAL)),
        Kind::Flag(opt) => {
            page.set_option(opt, (number != 0) as u32);
            if matches!(opt, Opt::NoDelay) && number != 0 {
                // tcp(7): an explicit flush of what a cork holds back.
                page.set_option(Opt::Flush, page.send_end() as u32);
            }
        }
        Kind::Bit(bit::EARLY_CONNECT) if is_connected(socket) => return Err(Errno(libc::EINVAL)),
        Kind::Bit(bits) => {
            socket.put_bits(bits, number != 0);
            match bits {
                bit::OOB_INLINE => urgent::set_inline(socket, number != 0),
                bit::ZEROCOPY if number != 0 => error_queue::watch(fd),
                _ => {}
            }
        }
        Kind::Size(opt) => page.set_option(opt, (number.clamp(2304, 1 << 27) as u32) * 2),
        Kind::Cork => {
            let rest = page.option(Opt::Cork) & !cork::OPTION;
            page.set_option(Opt::Cork, rest | (number != 0) as u32);
        }
        Kind::ErrorQueue => error_queue::set(fd, socket, number != 0),
        Kind::Stamps if stamps::set(socket, number as u32) => error_queue::watch(fd),
        Kind::Stamps => {}
        Kind::Arrival(which) => stamps::set_plain(socket, which, number != 0),
        Kind::LargestPacket => page.set_option(Opt::LargestPacket, number as u32),
        Kind::NeverFragment6 => ipv6::set_never_fragment(page, number != 0),
        Kind::AutoLabel => flow::set_by_itself(socket, number != 0),
        Kind::DatagramCork => datagram::set_cork(socket, number != 0)?,
        Kind::Segment => return segmentation::set(socket, number),
        // The default is on; the transport needs to know "off" (2) and "now" (1).
        Kind::QuickAck => page.set_option(Opt::QuickAck, if number != 0 { 1 } else { 2 }),
        Kind::MaxSegment if number != 0 && !(88..=32767).contains(&number) => {
            return Err(Errno(libc::EINVAL));
        }
        Kind::MaxSegment => page.set_option(Opt::MaxSegment, number as u32),
        Kind::Priority => socket.priority().store(number as u32, Ordering::Relaxed),
        Kind::LowWater => {
            let value = if number < 0 { c_int::MAX } else { number };
            socket.low_water().store(value as u32, Ordering::Relaxed);
        }
        Kind::DontFragment => {
            socket.discover().store(number as u32 + 1, Ordering::Relaxed);
            let never = matches!(number, libc::IP_PMTUDISC_DO | libc::IP_PMTUDISC_PROBE);
            let word = match (socket.is_stream(), number) {
                (true, libc::IP_PMTUDISC_DONT) if level == IPPROTO_IP => fragment::MAY,
                (false, _) if never => fragment::NEVER,
                _ => 0,
            };
            let of_ipv6 = page.option(Opt::DontFragment) & fragment::NEVER_IPV6;
            page.set_option(Opt::DontFragment, word | of_ipv6);
        }
        // Once a socket has its address it is too late for either value, as on Linux.
        Kind::V6Only if socket.has(bit::BOUND) || is_connected(socket) => return Err(Errno(libc::EINVAL)),
        Kind::V6Only => {
            socket.put_bits(bit::V6ONLY, number != 0);
            return Ok(());
        }
        _ => return Err(Errno(libc::ENOPROTOOPT)),
    }
    crate::domain::notify(socket);
    Ok(())
}

fn is_connected(socket: &Socket) -> bool {
    socket.page.flags() & (flag::CONNECTED | flag::CONNECTING | flag::DEAD) != 0 || socket.has(bit::DEFERRED)
}

/// The errno of `getsockopt` for an unknown option of `level`. An IPv4 socket answers EOPNOTSUPP for
/// unknown levels; `setsockopt` does not distinguish them.
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
    let kind = find(socket, level, name).filter(|kind| !kind.is_set_only());
    let kind = kind.ok_or_else(|| unknown(socket, level))?;
    let page = &socket.page;
    let word = |opt: Opt, default: c_int| match page.option(opt) {
        0 => default,
        n => n as c_int,
    };
    let number = match kind {
        Kind::Descriptor => return sys::get_option(fd, level, name, to),
        Kind::TcpInfo => return Ok(copy(&tcp_info::bytes(socket), to)),
        Kind::NoOptions => return Ok(0),
        Kind::Filter => return filters::get(socket, level, name, to),
        Kind::Authentication => return Ok(copy(&authentication::info(socket)?, to)),
        Kind::AuthenticationKeys => return authentication::get_keys(socket, to),
        Kind::CongestionInfo => {
            return Ok(tcp_info::of_congestion(socket).map_or(0, |bytes| copy(&bytes, to)));
        }
        Kind::CookieKeys => {
            let (keys, len) = page.cookie_keys();
            return Ok(copy(&keys[..len], to));
        }
        Kind::PacingLimit => return Ok(pacing::get(page, to)),
        Kind::Memory => return Ok(copy(&computed::memory(socket), to)),
        Kind::Congestion => return Ok(copy(&congestion::name(page), to)),
        Kind::Linger => {
            let linger = page.option(Opt::Linger);
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&((linger != 0) as c_int).to_ne_bytes());
            bytes[4..].copy_from_slice(&linger.saturating_sub(1).to_ne_bytes());
            return Ok(copy(&bytes, to));
        }
        Kind::Error => computed::pending_error(fd, socket),
        Kind::Word(opt @ Opt::DeferAccept) => words::seconds_of(page.option(opt)),
        Kind::Word(opt @ Opt::KeepIdle) => word(opt, 7200),
        Kind::Word(opt @ Opt::KeepInterval) => word(opt, 75),
        Kind::Word(opt @ Opt::KeepCount) => word(opt, 9),
        Kind::Word(opt @ Opt::SynCount) => word(opt, 6),
        Kind::Word(opt @ Opt::Ttl) => word(opt, 64),
        Kind::MulticastHops => words::multicast_hops(page),
        Kind::Unless(opt) => (page.option(opt) == 0) as c_int,
        Kind::MulticastInterface => return Ok(copy(&multicast::interface_bytes(page, level), to)),
        Kind::Membership(_) | Kind::SignatureKey | Kind::AuthenticationKey | Kind::LabelLease => {
            return Err(Errno(libc::ENOPROTOOPT));
        }
        Kind::Word(opt) | Kind::Flag(opt) => page.option(opt) as c_int,
        Kind::Bit(bits) => socket.has(bits) as c_int,
        Kind::Size(Opt::SendBuffer) => word(Opt::SendBuffer, page.send_limit() as c_int),
        Kind::Size(opt) => word(opt, page.receive_len() as c_int),
        Kind::Cork => (page.option(Opt::Cork) & cork::OPTION) as c_int,
        Kind::DatagramCork => socket.has(bit::DATAGRAM_CORK) as c_int,
        Kind::Segment => socket.segment().load(Ordering::Relaxed) as c_int,
        Kind::QuickAck => (page.option(Opt::QuickAck) != 2) as c_int,
        Kind::MaxSegment => computed::max_segment(page),
        Kind::Priority => socket.priority().load(Ordering::Relaxed) as c_int,
        Kind::LowWater => socket.low_water().load(Ordering::Relaxed).max(1) as c_int,
        Kind::DontFragment => match (socket.discover().load(Ordering::Relaxed), socket.is_stream()) {
            (0, false) => libc::IP_PMTUDISC_DONT,
            (0, true) => libc::IP_PMTUDISC_WANT,
            (set, _) => set as c_int - 1,
        },
        Kind::Stamps => stamps::flags_of(socket) as c_int,
        Kind::Arrival(which) => stamps::has_plain(socket, which) as c_int,
        Kind::PathMtu | Kind::LargestPacket => computed::path_mtu(socket)?,
        Kind::PathMtuInfo => return Ok(copy(&ipv6::path_mtu_info(socket)?, to)),
        Kind::NeverFragment6 => (page.option(Opt::DontFragment) & fragment::NEVER_IPV6 != 0) as c_int,
        Kind::AutoLabel => flow::is_by_itself(socket) as c_int,
        Kind::ErrorQueue => page.option(Opt::ReceiveErrors) as c_int,
        Kind::V6Only => socket.has(bit::V6ONLY) as c_int,
        Kind::Computed(compute) | Kind::Invalid(compute) => compute(socket),
    };
    Ok(copy(&number.to_ne_bytes(), to))
}

fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let n = from.len().min(to.len());
    to[..n].copy_from_slice(&from[..n]);
    n
}
