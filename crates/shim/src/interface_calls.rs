//! The interface ioctls (netdevice(7)), answered from the stack's interfaces.

use crate::interfaces::{self, Interface};
use crate::sys::{Errno, Result};
use crate::{address, init};
use core::ffi::{c_int, c_ulong, c_void};
use core::net::{IpAddr, Ipv4Addr};
use eft_base::Endpoint;

const SIOCGIFNAME: c_ulong = 0x8910;
const SIOCGIFCONF: c_ulong = 0x8912;
const SIOCGIFFLAGS: c_ulong = 0x8913;
const SIOCGIFADDR: c_ulong = 0x8915;
const SIOCGIFDSTADDR: c_ulong = 0x8917;
const SIOCGIFBRDADDR: c_ulong = 0x8919;
const SIOCGIFNETMASK: c_ulong = 0x891b;
const SIOCGIFMETRIC: c_ulong = 0x891d;
const SIOCGIFMTU: c_ulong = 0x8921;
const SIOCGIFHWADDR: c_ulong = 0x8927;
const SIOCGIFINDEX: c_ulong = 0x8933;
const SIOCGIFTXQLEN: c_ulong = 0x8942;

const NAME_LEN: usize = 16;
const IFREQ_LEN: usize = 40;
type Value = [u8; IFREQ_LEN - NAME_LEN];

/// `struct ifconf`.
#[repr(C)]
struct Configuration {
    len: c_int,
    buffer: *mut u8,
}

/// What eft answers; `None` leaves the call to libc.
///
/// # Safety
/// `arg` must be as for `ioctl`.
pub unsafe fn ioctl(request: c_ulong, arg: *mut c_void) -> Option<Result<c_int>> {
    if !(SIOCGIFNAME..=SIOCGIFTXQLEN).contains(&request) || !init::is_active() {
        return None;
    }
    if request == SIOCGIFCONF {
        // SAFETY: by the caller.
        return Some(unsafe { list(arg.cast()) });
    }
    if request == SIOCGIFNAME {
        // SAFETY: by the caller.
        return Some(unsafe { name(arg.cast()) });
    }
    let read: fn(&Interface) -> Value = match request {
        SIOCGIFFLAGS => |i| bytes(&(i.flags() as i16).to_ne_bytes()),
        SIOCGIFADDR | SIOCGIFDSTADDR => |i| socket_address(i.address),
        SIOCGIFBRDADDR => |i| match i.broadcast().filter(|_| !i.is_loopback()) {
            None => socket_address(Ipv4Addr::UNSPECIFIED.into()),
            Some(all) => socket_address(all.into()),
        },
        SIOCGIFNETMASK => |i| socket_address(i.netmask()),
        SIOCGIFMETRIC => |_| bytes(&0i32.to_ne_bytes()),
        SIOCGIFMTU => |i| bytes(&i.mtu.to_ne_bytes()),
        SIOCGIFTXQLEN => |_| bytes(&1000i32.to_ne_bytes()),
        SIOCGIFINDEX => |i| bytes(&i.index.to_ne_bytes()),
        SIOCGIFHWADDR => hardware_address,
        _ => return None,
    };
    let of_address = (SIOCGIFADDR..=SIOCGIFNETMASK).contains(&request);
    // SAFETY: by the caller.
    Some(unsafe { answer(arg.cast(), of_address, read) })
}

fn bytes(from: &[u8]) -> Value {
    let mut value = [0; IFREQ_LEN - NAME_LEN];
    value[..from.len()].copy_from_slice(from);
    value
}

fn socket_address(address: IpAddr) -> Value {
    let (storage, _) = address::to_storage(Endpoint::new(address, 0), false);
    // SAFETY: a storage is larger, and plain bytes.
    let raw = unsafe { core::slice::from_raw_parts((&raw const storage).cast::<u8>(), 16) };
    bytes(raw)
}

fn hardware_address(interface: &Interface) -> Value {
    let kind = match interface.is_loopback() {
        true => libc::ARPHRD_LOOPBACK,
        false => libc::ARPHRD_ETHER,
    };
    let mut value = bytes(&kind.to_ne_bytes());
    value[2..8].copy_from_slice(&interface.mac);
    value
}

/// # Safety
/// `request` must be valid for a `struct ifreq`.
unsafe fn answer(request: *mut u8, of_address: bool, read: fn(&Interface) -> Value) -> Result<c_int> {
    if request.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: by the caller.
    let raw = unsafe { core::slice::from_raw_parts(request, NAME_LEN) };
    // An alias (eth0:1) means its interface.
    let name = raw.split(|&b| b == 0 || b == b':').next().unwrap_or(&[]);
    let mut named = interfaces::all();
    named.retain(|i| i.name.as_bytes() == name);
    let first = named.first().ok_or(Errno(libc::ENODEV))?;
    let of_ipv4 = named.iter().find(|i| i.address.is_ipv4());
    // These are IPv4 calls: an interface without an IPv4 address has no address here.
    let found = match of_address {
        true => of_ipv4.ok_or(Errno(libc::EADDRNOTAVAIL))?,
        false => of_ipv4.unwrap_or(first),
    };
    let value = read(found);
    // SAFETY: by the caller.
    unsafe {
        core::ptr::copy_nonoverlapping(value.as_ptr(), request.add(NAME_LEN), value.len());
    }
    Ok(0)
}

/// # Safety
/// As [`answer`].
unsafe fn name(request: *mut u8) -> Result<c_int> {
    if request.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: by the caller.
    unsafe {
        let index = request.add(NAME_LEN).cast::<u32>().read_unaligned();
        let found = interfaces::all().into_iter().find(|i| i.index == index).ok_or(Errno(libc::ENODEV))?;
        put_name(request, &found.name);
    }
    Ok(0)
}

/// # Safety
/// `to` must be valid for 16 bytes.
unsafe fn put_name(to: *mut u8, name: &str) {
    let mut padded = [0; NAME_LEN];
    padded[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: by the caller.
    unsafe { core::ptr::copy_nonoverlapping(padded.as_ptr(), to, NAME_LEN) };
}

/// # Safety
/// `to` must be valid for a `struct ifconf` and what that points to.
unsafe fn list(to: *mut Configuration) -> Result<c_int> {
    if to.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    let all = interfaces::ipv4();
    // SAFETY: by the caller.
    unsafe {
        if (*to).buffer.is_null() {
            (*to).len = (all.len() * IFREQ_LEN) as c_int;
            return Ok(0);
        }
        let room = (*to).len.max(0) as usize / IFREQ_LEN;
        for (i, (interface, address)) in all.iter().take(room).enumerate() {
            let request = (*to).buffer.add(i * IFREQ_LEN);
            let value = socket_address((*address).into());
            put_name(request, &interface.name);
            core::ptr::copy_nonoverlapping(value.as_ptr(), request.add(NAME_LEN), value.len());
        }
        (*to).len = (all.len().min(room) * IFREQ_LEN) as c_int;
    }
    Ok(0)
}
