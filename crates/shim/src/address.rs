//! Conversion between the kernel's socket addresses and endpoints.

use crate::interfaces;
use crate::sys::{self, Errno, Result};
use core::ffi::c_int;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use eft_base::Endpoint;
use eft_base::address::{needs_zone, with_zone, zone};
use libc::{sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t};

/// Of a `sockaddr_in6`, the scope id may be missing (RFC 2133).
const SOCKADDR_IN6_MIN: usize = size_of::<sockaddr_in6>() - 4;

/// The meaning of a program's socket address to a socket that may be eft's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// 127/8 or ::1, which the kernel serves.
    Loopback,
    /// An address that only the kernel can serve: of other families, or IPv6 where the stack has none.
    Kernel,
    /// AF_UNSPEC: dissolve the association.
    Unspecified,
    /// An endpoint for eft. The address may be 0.0.0.0 or ::; a link-local one carries its zone.
    Eft(Endpoint),
}

/// Reads an address that the program passed.
///
/// # Safety
/// `address` must be null or valid for `len` bytes.
pub unsafe fn read(address: *const sockaddr, len: socklen_t) -> Result<Target> {
    // SAFETY: by the caller.
    unsafe { parse(address, len, Zone::Needed) }
}

/// What an address of a link must say about its link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zone {
    Needed,
    /// Without it, the socket chooses the link (`crate::groups`).
    Optional,
}

/// # Safety
/// As [`read`].
unsafe fn family_of(address: *const sockaddr, len: socklen_t) -> Result<c_int> {
    if address.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    if (len as usize) < size_of::<libc::sa_family_t>() {
        return Err(Errno(libc::EINVAL));
    }
    // Only the bytes that are read here are checked; a longer address may extend anywhere.
    sys::plausible(address, (len as usize).min(size_of::<sockaddr_in6>()))?;
    // SAFETY: at least the family is there.
    Ok(unsafe { (&raw const (*address).sa_family).read_unaligned() }.into())
}

/// Refuses a `sockaddr_in` where a socket of AF_INET6 binds, or a stream of it connects; errors as on Linux.
///
/// # Safety
/// As [`read`].
pub unsafe fn is_of_family(address: *const sockaddr, len: socklen_t, inet6: bool) -> Result<()> {
    // SAFETY: by the caller.
    match unsafe { family_of(address, len) }? {
        libc::AF_INET if inet6 && (len as usize) < SOCKADDR_IN6_MIN => Err(Errno(libc::EINVAL)),
        libc::AF_INET if inet6 => Err(Errno(libc::EAFNOSUPPORT)),
        _ => Ok(()),
    }
}

/// # Safety
/// As [`read`].
unsafe fn parse(address: *const sockaddr, len: socklen_t, zone: Zone) -> Result<Target> {
    // SAFETY: by the caller.
    let (ip, port) = match unsafe { family_of(address, len) }? {
        libc::AF_UNSPEC => return Ok(Target::Unspecified),
        libc::AF_INET if len as usize >= size_of::<sockaddr_in>() => {
            // SAFETY: long enough.
            let a = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr));
            (IpAddr::V4(ip), u16::from_be(a.sin_port))
        }
        libc::AF_INET6 if len as usize >= SOCKADDR_IN6_MIN => {
            // SAFETY: long enough.
            let a = unsafe { &*address.cast::<[u8; 24]>() };
            let port = u16::from_be_bytes([a[2], a[3]]);
            let mut octets = [0; 16];
            octets.copy_from_slice(&a[8..24]);
            let ip = Ipv6Addr::from(octets);
            let elsewhere = !ip.is_unspecified() && !ip.is_loopback() && ip.to_ipv4_mapped().is_none();
            if elsewhere && !interfaces::speak_ipv6() {
                return Ok(Target::Kernel);
            }
            // SAFETY: as above.
            let zone = unsafe { zone_of(ip, address, len, zone) }?;
            (with_zone(ip, zone).to_canonical(), port)
        }
        libc::AF_INET | libc::AF_INET6 => return Err(Errno(libc::EINVAL)),
        _ => return Ok(Target::Kernel),
    };
    if ip.is_loopback() {
        return Ok(Target::Loopback);
    }
    Ok(Target::Eft(Endpoint::new(ip, port)))
}

/// The zone of an address that needs one: `sin6_scope_id`, the index of an interface of the stack's. 0: there is none, and it
/// is optional.
///
/// # Safety
/// `address` must be a `sockaddr_in6` of `len` bytes.
unsafe fn zone_of(ip: Ipv6Addr, address: *const sockaddr, len: socklen_t, zone: Zone) -> Result<u16> {
    if !needs_zone(ip) {
        return Ok(0);
    }
    let scope = match len as usize >= size_of::<sockaddr_in6>() {
        // SAFETY: long enough.
        true => unsafe { (&raw const (*address.cast::<sockaddr_in6>()).sin6_scope_id).read_unaligned() },
        false => 0,
    };
    if scope == 0 && zone == Zone::Optional {
        return Ok(0);
    }
    // A link-local address without its link is invalid, as on Linux.
    let known = interfaces::all().iter().any(|i| i.index == scope && !i.is_loopback());
    u16::try_from(scope).ok().filter(|_| known).ok_or(Errno(libc::EINVAL))
}

/// Whether a socket of this kind may have an endpoint as its peer; errors as on Linux.
pub fn suits(to: Endpoint, inet6: bool, v6_only: bool) -> Result<()> {
    match to.address {
        IpAddr::V6(_) if !inet6 => Err(Errno(libc::EAFNOSUPPORT)),
        IpAddr::V4(_) if inet6 && v6_only => Err(Errno(libc::ENETUNREACH)),
        _ => Ok(()),
    }
}

/// The wildcard address of a socket's family.
pub const fn wildcard(inet6: bool) -> IpAddr {
    match inet6 {
        true => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        false => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}

/// As [`read`], where a socket of AF_INET binds: Linux accepts AF_UNSPEC as AF_INET there, for old programs.
///
/// # Safety
/// As [`read`].
pub unsafe fn read_named(address: *const sockaddr, len: socklen_t, inet6: bool) -> Result<Target> {
    // SAFETY: by the caller.
    unsafe { parse_named(address, len, inet6, Zone::Needed) }
}

/// As [`read_named`], where a datagram is sent, which finds its link by itself.
///
/// # Safety
/// As [`read`].
pub unsafe fn read_destination(address: *const sockaddr, len: socklen_t, inet6: bool) -> Result<Target> {
    // SAFETY: by the caller.
    unsafe { parse_named(address, len, inet6, Zone::Optional) }
}

/// # Safety
/// As [`read`].
unsafe fn parse_named(address: *const sockaddr, len: socklen_t, inet6: bool, zone: Zone) -> Result<Target> {
    // SAFETY: by the caller.
    let target = unsafe { parse(address, len, zone) }?;
    if target != Target::Unspecified || inet6 || (len as usize) < size_of::<sockaddr_in>() {
        return Ok(target);
    }
    // SAFETY: long enough.
    let mut named = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
    named.sin_family = libc::AF_INET as _;
    // SAFETY: ours.
    unsafe { read((&raw const named).cast(), size_of::<sockaddr_in>() as socklen_t) }
}

/// Puts an endpoint into a socket address; returns its length.
pub fn to_storage(endpoint: Endpoint, inet6: bool) -> (sockaddr_storage, usize) {
    // SAFETY: all zeroes is a sockaddr_storage.
    let mut storage: sockaddr_storage = unsafe { core::mem::zeroed() };
    let pointer = &raw mut storage;
    let v4 = match endpoint.address {
        IpAddr::V4(v4) => Some(v4),
        IpAddr::V6(v6) => v6.to_ipv4_mapped(),
    };
    match (v4, inet6) {
        (Some(v4), false) => {
            // SAFETY: a sockaddr_storage holds any socket address.
            let a = unsafe { &mut *pointer.cast::<sockaddr_in>() };
            a.sin_family = libc::AF_INET as _;
            a.sin_port = endpoint.port.to_be();
            a.sin_addr.s_addr = u32::from(v4).to_be();
            (storage, size_of::<sockaddr_in>())
        }
        _ => {
            // SAFETY: as above.
            let a = unsafe { &mut *pointer.cast::<sockaddr_in6>() };
            a.sin6_family = libc::AF_INET6 as _;
            a.sin6_port = endpoint.port.to_be();
            a.sin6_addr.s6_addr = match endpoint.address {
                IpAddr::V4(v4) if v4.is_unspecified() => [0; 16],
                IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                IpAddr::V6(v6) => with_zone(v6, 0).octets(),
            };
            if let IpAddr::V6(v6) = endpoint.address {
                a.sin6_scope_id = zone(v6).into();
            }
            (storage, size_of::<sockaddr_in6>())
        }
    }
}

/// Reads an address that the kernel filled in.
pub fn from_storage(storage: &sockaddr_storage) -> Option<Endpoint> {
    let pointer = &raw const *storage;
    match storage.ss_family as i32 {
        libc::AF_INET => {
            // SAFETY: the family says so.
            let a = unsafe { &*pointer.cast::<sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr));
            Some(Endpoint::new(IpAddr::V4(ip), u16::from_be(a.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let a = unsafe { &*pointer.cast::<sockaddr_in6>() };
            let ip = Ipv6Addr::from(a.sin6_addr.s6_addr).to_canonical();
            Some(Endpoint::new(ip, u16::from_be(a.sin6_port)))
        }
        _ => None,
    }
}

/// The address of a socket, or of its peer; `None` if there is none, or if it is not an Internet address.
pub fn of_socket(fd: c_int, peer: bool) -> Option<Endpoint> {
    let number = if peer { libc::SYS_getpeername } else { libc::SYS_getsockname };
    // SAFETY: all zeroes is a sockaddr_storage.
    let mut address: sockaddr_storage = unsafe { core::mem::zeroed() };
    let mut len = size_of::<sockaddr_storage>() as socklen_t;
    // SAFETY: address and length are ours.
    let named = unsafe {
        sys::call(number, [fd as usize, &raw mut address as usize, &raw mut len as usize, 0, 0, 0])
    };
    named.ok().and_then(|_| from_storage(&address))
}

/// A length that the program passed: for the kernel it is an int, which may not be negative.
pub fn signed_len(len: socklen_t) -> Result<usize> {
    match len as i32 {
        negative if negative < 0 => Err(Errno(libc::EINVAL)),
        len => Ok(len as usize),
    }
}

/// Copies a socket address to the program, cut to its buffer, as `getsockname` does.
///
/// # Safety
/// `to` and `len` must be as the program passed them: null, or valid.
pub unsafe fn write(endpoint: Endpoint, inet6: bool, to: *mut sockaddr, len: *mut socklen_t) -> Result<()> {
    if to.is_null() {
        return Ok(());
    }
    if len.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    let (storage, real) = to_storage(endpoint, inet6);
    sys::plausible(len, size_of::<socklen_t>())?;
    // SAFETY: the program's pointers; at most this much is written.
    sys::plausible(to, signed_len(unsafe { *len })?.min(real))?;
    // SAFETY: the program's pointers; at most `*len` bytes are written.
    unsafe {
        let room = signed_len(*len)?;
        core::ptr::copy_nonoverlapping((&raw const storage).cast::<u8>(), to.cast::<u8>(), room.min(real));
        *len = real as socklen_t;
    }
    Ok(())
}
