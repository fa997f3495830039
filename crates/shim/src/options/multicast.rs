//! Options about groups (ip(7), ipv6(7), RFC 3678): memberships, and the interface that datagrams to groups leave by.
//!
//! Memberships on the kernel's loopback are its own: those of the socket's shadow. All others are udp's, which keeps them.

use super::{Kind, int_of, ipv6, table};
use crate::interfaces::{self, Interface};
use crate::socket::Socket;
use crate::sys::{self, Errno, Result};
use crate::{control, loopback};
use core::ffi::c_int;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use eft_base::WireAddress;
use eft_channel::socket::{Opt, SocketPage};
use eft_messages::control::{MembershipRequest, Request, op};
use libc::{IPPROTO_IP, IPPROTO_IPV6};

/// The index of the kernel's loopback.
pub(super) const LOOPBACK: u32 = 1;
/// The first device's ([`eft_base::address::zone_of_nic`]).
const FIRST_DEVICE: u32 = 2;

/// `struct group_req` and `struct group_source_req`: addresses are padded to 128 bytes, from the eighth byte on.
const STORAGE_LEN: usize = 128;
const GROUP_AT: usize = 8;

pub(super) const IP_MSFILTER: c_int = 41;
const MCAST_MSFILTER: c_int = 48;

/// How a request names its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Index(u32),
    Address(Ipv4Addr),
}

/// A membership as a program asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub group: IpAddr,
    by: By,
    source: Option<IpAddr>,
}

pub(super) fn index_at(value: &[u8], at: usize) -> Result<u32> {
    let bytes = value.get(at..at + 4).and_then(|b| b.try_into().ok());
    bytes.map(u32::from_ne_bytes).ok_or(Errno(libc::EINVAL))
}

pub(super) fn v4_at(value: &[u8], at: usize) -> Result<Ipv4Addr> {
    let bytes: Option<[u8; 4]> = value.get(at..at + 4).and_then(|b| b.try_into().ok());
    bytes.map(Ipv4Addr::from).ok_or(Errno(libc::EINVAL))
}

/// The address of a `struct sockaddr_storage`, which must be of the option's IP version.
pub(super) fn stored_at(value: &[u8], at: usize, level: c_int) -> Result<IpAddr> {
    let storage = value.get(at..at + STORAGE_LEN).ok_or(Errno(libc::EINVAL))?;
    let family = c_int::from(u16::from_ne_bytes([storage[0], storage[1]]));
    match (level, family) {
        (IPPROTO_IP, libc::AF_INET) => Ok(v4_at(storage, 4)?.into()),
        (IPPROTO_IPV6, libc::AF_INET6) => {
            let bytes: Option<[u8; 16]> = storage.get(8..24).and_then(|b| b.try_into().ok());
            bytes.map(|b| Ipv6Addr::from(b).into()).ok_or(Errno(libc::EINVAL))
        }
        // As Linux: of IPv4 it is invalid, of IPv6 not there.
        (IPPROTO_IPV6, _) => Err(Errno(libc::EADDRNOTAVAIL)),
        _ => Err(Errno(libc::EINVAL)),
    }
}

/// An interface named by its address; unspecified: by none.
fn by_address(address: Ipv4Addr) -> By {
    if address.is_unspecified() { By::Index(0) } else { By::Address(address) }
}

pub(super) fn parse(level: c_int, name: c_int, value: &[u8]) -> Result<Asked> {
    match (level, name) {
        (IPPROTO_IP, libc::IP_ADD_MEMBERSHIP | libc::IP_DROP_MEMBERSHIP) => {
            let (group, address) = (v4_at(value, 0)?, v4_at(value, 4)?);
            // `struct ip_mreqn` has an index, too.
            let by = match index_at(value, 8) {
                Ok(index) if index != 0 => By::Index(index),
                _ => by_address(address),
            };
            Ok(Asked { group: group.into(), by, source: None })
        }
        (
            IPPROTO_IP,
            libc::IP_BLOCK_SOURCE
            | libc::IP_UNBLOCK_SOURCE
            | libc::IP_ADD_SOURCE_MEMBERSHIP
            | libc::IP_DROP_SOURCE_MEMBERSHIP,
        ) => {
            if value.len() != size_of::<libc::ip_mreq_source>() {
                return Err(Errno(libc::EINVAL));
            }
            let (group, source) = (v4_at(value, 0)?.into(), v4_at(value, 8)?.into());
            Ok(Asked { group, by: by_address(v4_at(value, 4)?), source: Some(source) })
        }
        (IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP | libc::IPV6_DROP_MEMBERSHIP) => {
            let group: [u8; 16] = *value.first_chunk().ok_or(Errno(libc::EINVAL))?;
            let by = By::Index(index_at(value, 16)?);
            Ok(Asked { group: Ipv6Addr::from(group).into(), by, source: None })
        }
        (IPPROTO_IP, IP_MSFILTER) => {
            let group = v4_at(value, 0)?.into();
            Ok(Asked { group, by: by_address(v4_at(value, 4)?), source: None })
        }
        (_, libc::MCAST_JOIN_GROUP | libc::MCAST_LEAVE_GROUP | MCAST_MSFILTER) => {
            let group = stored_at(value, GROUP_AT, level)?;
            Ok(Asked { group, by: By::Index(index_at(value, 0)?), source: None })
        }
        _ => {
            let source = stored_at(value, GROUP_AT + STORAGE_LEN, level)?;
            let group = stored_at(value, GROUP_AT, level)?;
            Ok(Asked { group, by: By::Index(index_at(value, 0)?), source: Some(source) })
        }
    }
}

/// The index of the interface that a membership is on: the one that is named, or the one of the route to the group, or the first
/// with an address of its IP version.
pub(super) fn interface(asked: &Asked) -> Result<u32> {
    let nobody = Errno(libc::ENODEV);
    let list = interfaces::all();
    match asked.by {
        By::Index(0) => {
            let alike = |i: &&Interface| !i.is_loopback() && i.address.is_ipv4() == asked.group.is_ipv4();
            let mut ways = interfaces::ways();
            ways.retain(|w| w.network.contains(asked.group));
            let best = ways.iter().min_by_key(|w| (core::cmp::Reverse(w.network.prefix_len), w.metric));
            let index = best.map(|w| w.index).filter(|n| list.iter().filter(alike).any(|i| i.index == *n));
            index.or_else(|| list.iter().find(alike).map(|i| i.index)).ok_or(nobody)
        }
        By::Index(index) => list.iter().find(|i| i.index == index).map(|i| i.index).ok_or(nobody),
        By::Address(a) if a.is_loopback() => Ok(LOOPBACK),
        By::Address(a) => list.iter().find(|i| i.address == IpAddr::V4(a)).map(|i| i.index).ok_or(nobody),
    }
}

/// Whether the kernel serves this option of a socket that is not eft's yet, because it is about the loopback, or wrong.
pub fn is_kernels(level: c_int, name: c_int, value: &[u8]) -> bool {
    match table::row(level, name).and_then(|row| row.kind(false)) {
        Some(Kind::Membership(_) | Kind::Filter) => {
            parse(level, name, value).and_then(|asked| interface(&asked)).is_ok_and(|index| index == LOOPBACK)
        }
        Some(Kind::MulticastInterface) => chosen(level, value).is_ok_and(|(index, _)| index <= LOOPBACK),
        Some(Kind::LargestPacket) => !ipv6::is_limit(value),
        _ => true,
    }
}

/// Changes a membership.
pub(super) fn change(socket: &Socket, change: u8, level: c_int, name: c_int, value: &[u8]) -> Result<()> {
    let asked = parse(level, name, value)?;
    if socket.is_stream() {
        return Err(Errno(libc::EPROTO));
    }
    if !asked.group.is_multicast() {
        return Err(Errno(libc::EINVAL));
    }
    let index = interface(&asked)?;
    if index == LOOPBACK {
        let shadow = loopback::of(socket).ok_or(Errno(libc::ENODEV))?;
        return sys::set_option(shadow, level, name, value);
    }
    let source = asked.source.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)).into();
    control::request(membership_request(socket, &asked, index, change, source)?, None).map(drop)
}

/// The request of a change on the interface with this index.
pub(super) fn membership_request(
    socket: &Socket,
    asked: &Asked,
    index: u32,
    change: u8,
    source: WireAddress,
) -> Result<Request> {
    let nic = index.checked_sub(FIRST_DEVICE).and_then(|nic| u8::try_from(nic).ok());
    let request = MembershipRequest { change, interface: nic.ok_or(Errno(libc::ENODEV))?, source };
    Ok(Request {
        op: op::MEMBERSHIP,
        slot: socket.slot,
        address: WireAddress::from(asked.group),
        ..request.fill(Request::default())
    })
}

/// The interface of IP_MULTICAST_IF and IPV6_MULTICAST_IF; 0: any. And the IPv4 source, if one is named.
fn chosen(level: c_int, value: &[u8]) -> Result<(u32, Ipv4Addr)> {
    let list = interfaces::all();
    if level == IPPROTO_IPV6 {
        let index = int_of(level, value)? as u32;
        let there = index == 0 || list.iter().any(|i| i.index == index);
        return if there { Ok((index, Ipv4Addr::UNSPECIFIED)) } else { Err(Errno(libc::ENODEV)) };
    }
    // `struct ip_mreqn`, `struct ip_mreq`, or an address.
    let address = v4_at(value, if value.len() >= 8 { 4 } else { 0 })?;
    let index = index_at(value, 8).unwrap_or(0);
    let found = match (index, address) {
        (0, Ipv4Addr::UNSPECIFIED) => return Ok((0, address)),
        (0, a) if a.is_loopback() => Some(LOOPBACK),
        (0, a) => list.iter().find(|i| i.address == IpAddr::V4(a)).map(|i| i.index),
        (index, _) => list.iter().find(|i| i.index == index).map(|i| i.index),
    };
    found.map(|index| (index, address)).ok_or(Errno(libc::EADDRNOTAVAIL))
}

/// IP_MULTICAST_IF, IPV6_MULTICAST_IF.
pub(super) fn set_interface(page: &SocketPage, level: c_int, value: &[u8]) -> Result<()> {
    let (index, address) = chosen(level, value)?;
    page.set_option(Opt::MulticastInterface, index);
    if level == IPPROTO_IP {
        page.set_option(Opt::MulticastSource, address.to_bits());
    }
    Ok(())
}

/// What they read as: of IPv4 the address that was named.
pub(super) fn interface_bytes(page: &SocketPage, level: c_int) -> [u8; 4] {
    match level {
        IPPROTO_IPV6 => page.option(Opt::MulticastInterface).to_ne_bytes(),
        _ => page.option(Opt::MulticastSource).to_be_bytes(),
    }
}
