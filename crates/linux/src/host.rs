//! The host's side of a device (addresses, MTU, link up), and what the kernel says about an interface.

use crate::{Doing, Error, Result};
use eft_base::{Cidr, MacAddress};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};

fn socket() -> Result<OwnedFd> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .doing("socket")
}

fn request(interface: &str) -> libc::ifreq {
    // SAFETY: all-zero is a valid ifreq.
    let mut r: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in r.ifr_name.iter_mut().zip(interface.bytes().take(15)) {
        *to = from as libc::c_char;
    }
    r
}

fn ioctl(number: libc::c_ulong, r: &mut libc::ifreq, what: &str, interface: &str) -> Result<()> {
    let fd = socket()?;
    // SAFETY: every request used here takes a pointer to an ifreq.
    match unsafe { libc::ioctl(fd.as_raw_fd(), number as _, std::ptr::from_mut(r)) } {
        0.. => Ok(()),
        _ => {
            let e = std::io::Error::last_os_error();
            Err(match e.raw_os_error() {
                Some(libc::ENODEV) => Error::Missing(format!("there is no interface {interface}")),
                Some(libc::EPERM) => {
                    Error::Denied(format!("{what} of {interface}: run as root or with CAP_NET_ADMIN"))
                }
                _ => Error::System(format!("{what} of {interface}: {e}")),
            })
        }
    }
}

fn sockaddr(address: Ipv4Addr) -> libc::sockaddr {
    let inet = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: address.to_bits().to_be() },
        sin_zero: [0; 8],
    };
    // SAFETY: both are 16 bytes of plain data.
    unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(inet) }
}

pub fn interface_index(interface: &str) -> Result<u32> {
    let mut r = request(interface);
    ioctl(libc::SIOCGIFINDEX, &mut r, "index", interface)?;
    // SAFETY: SIOCGIFINDEX filled this member.
    Ok(unsafe { r.ifr_ifru.ifru_ifindex } as u32)
}

pub fn mac(interface: &str) -> Result<MacAddress> {
    let mut r = request(interface);
    ioctl(libc::SIOCGIFHWADDR, &mut r, "MAC", interface)?;
    // SAFETY: SIOCGIFHWADDR filled this member.
    let data = unsafe { r.ifr_ifru.ifru_hwaddr.sa_data };
    Ok(MacAddress(std::array::from_fn(|i| data[i] as u8)))
}

pub fn mtu(interface: &str) -> Result<u16> {
    let mut r = request(interface);
    ioctl(libc::SIOCGIFMTU, &mut r, "MTU", interface)?;
    // SAFETY: SIOCGIFMTU filled this member.
    Ok(unsafe { r.ifr_ifru.ifru_mtu }.clamp(68, 65535) as u16)
}

pub fn set_mtu(interface: &str, mtu: u16) -> Result<()> {
    let mut r = request(interface);
    r.ifr_ifru.ifru_mtu = mtu as i32;
    ioctl(libc::SIOCSIFMTU, &mut r, "MTU", interface)
}

/// Gives the Linux side of a device its addresses and brings it up.
pub fn configure(interface: &str, addresses: &[Cidr]) -> Result<()> {
    for cidr in addresses {
        match cidr.address {
            IpAddr::V4(address) => add_ipv4(interface, address, cidr.prefix_len)?,
            IpAddr::V6(address) => add_ipv6(interface, address, cidr.prefix_len)?,
        }
    }
    let mut r = request(interface);
    ioctl(libc::SIOCGIFFLAGS, &mut r, "flags", interface)?;
    // SAFETY: SIOCGIFFLAGS filled this member.
    unsafe { r.ifr_ifru.ifru_flags |= (libc::IFF_UP | libc::IFF_RUNNING) as i16 };
    ioctl(libc::SIOCSIFFLAGS, &mut r, "up", interface)
}

fn add_ipv4(interface: &str, address: Ipv4Addr, prefix_len: u8) -> Result<()> {
    let mut r = request(interface);
    r.ifr_ifru.ifru_addr = sockaddr(address);
    ioctl(libc::SIOCSIFADDR, &mut r, "address", interface)?;
    let mask = Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - prefix_len as u32).unwrap_or(0));
    let mut r = request(interface);
    r.ifr_ifru.ifru_netmask = sockaddr(mask);
    ioctl(libc::SIOCSIFNETMASK, &mut r, "netmask", interface)
}

/// The kernel's `struct in6_ifreq`.
#[repr(C)]
struct Ipv6Request {
    address: [u8; 16],
    prefix_len: u32,
    index: i32,
}

fn add_ipv6(interface: &str, address: Ipv6Addr, prefix_len: u8) -> Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    // The only host at the other end is the stack, so duplicate address detection, which takes a second, is not needed.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/accept_dad"), "0");
    let request = Ipv6Request {
        address: address.octets(),
        prefix_len: prefix_len.into(),
        index: interface_index(interface)? as i32,
    };
    let what = || format!("address {address} of {interface}");
    let fd = rustix::net::socket_with(AddressFamily::INET6, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .doing(what())?;
    // SAFETY: on a socket of IPv6 the request takes a pointer to this structure.
    match unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCSIFADDR as _, &raw const request) } {
        0.. => Ok(()),
        _ => match std::io::Error::last_os_error() {
            e if e.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            e => Err(e).doing(what()),
        },
    }
}

/// Whether an address belongs to this host (then a stack must not take it). A bind would not tell: where `lo` is down,
/// the kernel lets any address be bound.
pub fn owns(address: IpAddr) -> bool {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: fills in the list.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return false;
    }
    let mut found = false;
    let mut at = list;
    while !at.is_null() {
        // SAFETY: an entry of the list; its address is null or valid for its address family.
        let entry = unsafe { &*at };
        found |= unsafe { address_of(entry.ifa_addr) } == Some(address);
        at = entry.ifa_next;
    }
    // SAFETY: the list that `getifaddrs` made.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// # Safety
/// `address` is null, or points to a socket address that is valid for its address family.
unsafe fn address_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: the caller promises it.
    unsafe {
        match (*address).sa_family as i32 {
            libc::AF_INET => {
                let inet = &*address.cast::<libc::sockaddr_in>();
                Some(Ipv4Addr::from_bits(u32::from_be(inet.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => Some((*address.cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr.into()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
