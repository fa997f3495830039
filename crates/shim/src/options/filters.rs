//! Whole filters of sources, set and read at once: IP_MSFILTER, MCAST_MSFILTER (RFC 3678 §4.1.3, §5.1.3).
//!
//! udp gets a filter's sources one by one, and then puts all of it in force at once. If it forgot them meanwhile, or two processes
//! set filters of one socket at the same time, it is begun anew.

use super::multicast::{
    Asked, IP_MSFILTER, LOOPBACK, index_at, interface, membership_request, parse, stored_at, v4_at,
};
use crate::socket::Socket;
use crate::sys::{self, Errno, Result};
use crate::{control, loopback};
use core::ffi::c_int;
use core::net::IpAddr;
use eft_base::WireAddress;
use eft_messages::control::Reply;
use eft_messages::sockets::membership;
use libc::IPPROTO_IPV6;

/// MCAST_INCLUDE and MCAST_EXCLUDE.
const EXCLUDE: u32 = 0;
const INCLUDE: u32 = 1;
/// Linux's `igmp_max_msf` and `mld_max_msf`, which udp has, too.
const SOURCES4_MAX: u32 = 10;
const SOURCES6_MAX: u32 = 64;
/// How often a filter is begun.
const ROUNDS: usize = 100;

/// Where the parts of `struct ip_msfilter` and `struct group_filter` lie.
struct Layout {
    mode: usize,
    count: usize,
    sources: usize,
    source_len: usize,
}

fn layout(name: c_int) -> Layout {
    match name {
        IP_MSFILTER => Layout { mode: 8, count: 12, sources: 16, source_len: 4 },
        _ => Layout { mode: 136, count: 140, sources: 144, source_len: 128 },
    }
}

fn source_at(level: c_int, name: c_int, value: &[u8], at: usize) -> Result<IpAddr> {
    match name {
        IP_MSFILTER => v4_at(value, at).map(IpAddr::V4),
        // As Linux, in both versions.
        _ => stored_at(value, at, level).map_err(|_| Errno(libc::EADDRNOTAVAIL)),
    }
}

fn number(n: usize) -> WireAddress {
    WireAddress((n as u128).to_be_bytes())
}

fn ask(socket: &Socket, asked: &Asked, index: u32, change: u8, source: WireAddress) -> Result<Reply> {
    control::request(membership_request(socket, asked, index, change, source)?, None)
}

/// `setsockopt`.
pub(super) fn set(socket: &Socket, level: c_int, name: c_int, value: &[u8]) -> Result<()> {
    let of = layout(name);
    if value.len() < of.sources {
        return Err(Errno(libc::EINVAL));
    }
    let (mode, count) = (index_at(value, of.mode)?, index_at(value, of.count)?);
    if count > if level == IPPROTO_IPV6 { SOURCES6_MAX } else { SOURCES4_MAX } {
        return Err(Errno(libc::ENOBUFS));
    }
    let count = count as usize;
    if value.len() < of.sources + count * of.source_len {
        return Err(Errno(libc::EINVAL));
    }
    let mut sources = Vec::with_capacity(count);
    for i in 0..count {
        sources.push(source_at(level, name, value, of.sources + i * of.source_len)?);
    }
    let asked = parse(level, name, value)?;
    let change = match mode {
        EXCLUDE => membership::FILTER_EXCLUDE,
        INCLUDE => membership::FILTER_INCLUDE,
        _ => return Err(Errno(libc::EINVAL)),
    };
    // A stream is a member of no group.
    if !asked.group.is_multicast() || socket.is_stream() {
        return Err(Errno(libc::EINVAL));
    }
    let index = interface(&asked)?;
    if index == LOOPBACK {
        let shadow = loopback::of(socket).ok_or(Errno(libc::ENODEV))?;
        return sys::set_option(shadow, level, name, value);
    }
    for _ in 0..ROUNDS {
        let all = || -> Result<()> {
            ask(socket, &asked, index, membership::FILTER_BEGIN, number(0))?;
            for source in &sources {
                ask(socket, &asked, index, membership::FILTER_SOURCE, WireAddress::from(*source))?;
            }
            ask(socket, &asked, index, change, number(count)).map(drop)
        };
        match all() {
            Err(Errno(libc::EAGAIN)) => {}
            done => return done,
        }
    }
    Err(Errno(libc::ENOBUFS))
}

/// `getsockopt`: `to` says of which group, and for how many sources there is room.
pub(super) fn get(socket: &Socket, level: c_int, name: c_int, to: &mut [u8]) -> Result<usize> {
    let of = layout(name);
    if to.len() < of.sources {
        return Err(Errno(libc::EINVAL));
    }
    let asked = parse(level, name, to)?;
    if !asked.group.is_multicast() {
        return Err(Errno(libc::EINVAL));
    }
    let index = interface(&asked)?;
    if index == LOOPBACK {
        let shadow = loopback::of(socket).ok_or(Errno(libc::ENODEV))?;
        return sys::get_option(shadow, level, name, to);
    }
    if socket.is_stream() {
        return Err(Errno(libc::EADDRNOTAVAIL));
    }
    let room = ((to.len() - of.sources) / of.source_len).min(index_at(to, of.count)? as usize);
    for _ in 0..ROUNDS {
        let told = ask(socket, &asked, index, membership::FILTER_TELL, number(0))?.port;
        let count = usize::from(told & !membership::EXCLUDED);
        let mut same = true;
        for i in 0..count.min(room) {
            let reply = ask(socket, &asked, index, membership::FILTER_TELL, number(i))?;
            // Another process may have changed it meanwhile.
            same &= reply.port == told;
            put(name, to, of.sources + i * of.source_len, reply.address.into());
        }
        if same {
            let mode = if told & membership::EXCLUDED != 0 { EXCLUDE } else { INCLUDE };
            to[of.mode..][..4].copy_from_slice(&mode.to_ne_bytes());
            to[of.count..][..4].copy_from_slice(&(count as u32).to_ne_bytes());
            return Ok(of.sources + count.min(room) * of.source_len);
        }
    }
    Err(Errno(libc::EAGAIN))
}

fn put(name: c_int, to: &mut [u8], at: usize, source: IpAddr) {
    match (name, source) {
        (IP_MSFILTER, IpAddr::V4(v4)) => to[at..at + 4].copy_from_slice(&v4.octets()),
        (IP_MSFILTER, IpAddr::V6(_)) => {}
        (_, source) => {
            let storage = &mut to[at..at + 128];
            storage.fill(0);
            match source {
                IpAddr::V4(v4) => {
                    storage[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
                    storage[4..8].copy_from_slice(&v4.octets());
                }
                IpAddr::V6(v6) => {
                    storage[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
                    storage[8..24].copy_from_slice(&v6.octets());
                }
            }
        }
    }
}
