//! getifaddrs: the list of addresses, in one piece of memory that `free` releases, as libc's own.

use crate::address;
use crate::interfaces::{self, Interface};
use core::net::IpAddr;
use eft_base::Endpoint;
use eft_base::address::with_zone;
use libc::{ifaddrs, sockaddr, sockaddr_ll, sockaddr_storage};

/// What one entry needs beside its `ifaddrs`.
#[repr(C)]
struct Parts {
    address: sockaddr_storage,
    netmask: sockaddr_storage,
    broadcast: sockaddr_storage,
    name: [u8; 16],
}

#[repr(C)]
struct Entry {
    head: ifaddrs,
    parts: Parts,
}

/// The list; null if memory is out.
pub fn make() -> *mut ifaddrs {
    let all = interfaces::all();
    let links = interfaces::by_name();
    let count = all.len() + links.len();
    // SAFETY: calloc gives zeroed memory for `count` entries; all zeroes is an Entry.
    let entries: &mut [Entry] = unsafe {
        let memory: *mut Entry = libc::calloc(count, size_of::<Entry>()).cast();
        if memory.is_null() {
            return core::ptr::null_mut();
        }
        core::slice::from_raw_parts_mut(memory, count)
    };
    let start = entries.as_mut_ptr();
    for (i, entry) in entries.iter_mut().enumerate() {
        match i.checked_sub(links.len()) {
            None => put_link(entry, &links[i]),
            Some(i) => put_address(entry, &all[i]),
        }
        if i + 1 < count {
            // SAFETY: within the memory.
            entry.head.ifa_next = unsafe { &raw mut (*start.add(i + 1)).head };
        }
    }
    start.cast()
}

fn put_common(entry: &mut Entry, interface: &Interface) {
    let name = interface.name.as_bytes();
    entry.parts.name[..name.len()].copy_from_slice(name);
    entry.head.ifa_name = entry.parts.name.as_mut_ptr().cast();
    entry.head.ifa_flags = interface.flags() as u32;
}

/// Link-local addresses come with their interface, as from libc.
fn storage(address: IpAddr, index: u32) -> sockaddr_storage {
    let address = match address {
        IpAddr::V6(a) => with_zone(a, index as u16).into(),
        v4 => v4,
    };
    address::to_storage(Endpoint::new(address, 0), address.is_ipv6()).0
}

fn pointer(storage: &mut sockaddr_storage) -> *mut sockaddr {
    (&raw mut *storage).cast()
}

fn put_address(entry: &mut Entry, interface: &Interface) {
    put_common(entry, interface);
    entry.parts.address = storage(interface.address, interface.index);
    entry.parts.netmask = storage(interface.netmask(), 0);
    entry.head.ifa_addr = pointer(&mut entry.parts.address);
    entry.head.ifa_netmask = pointer(&mut entry.parts.netmask);
    let Some(broadcast) = interface.broadcast() else {
        return;
    };
    let other = if interface.is_loopback() { interface.address } else { broadcast.into() };
    entry.parts.broadcast = storage(other, 0);
    entry.head.ifa_ifu = pointer(&mut entry.parts.broadcast);
}

fn put_link(entry: &mut Entry, interface: &Interface) {
    put_common(entry, interface);
    // SAFETY: a sockaddr_storage holds any socket address.
    let link = unsafe { &mut *(&raw mut entry.parts.address).cast::<sockaddr_ll>() };
    link.sll_family = libc::AF_PACKET as u16;
    link.sll_ifindex = interface.index as i32;
    link.sll_hatype = match interface.is_loopback() {
        true => libc::ARPHRD_LOOPBACK,
        false => libc::ARPHRD_ETHER,
    };
    link.sll_halen = 6;
    link.sll_addr[..6].copy_from_slice(&interface.mac);
    entry.head.ifa_addr = pointer(&mut entry.parts.address);
}
