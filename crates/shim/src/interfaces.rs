//! The interfaces that a program may ask for: the stack's, and the kernel's loopback.

use crate::family::family;
use core::net::{IpAddr, Ipv4Addr};
use eft_messages::control::InterfaceInfo;
use zerocopy::FromBytes;

/// An address on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub address: Ipv4Addr,
    pub prefix_len: u8,
    pub mac: [u8; 6],
    pub mtu: i32,
    pub index: u32,
    pub up: bool,
    /// The stack's gateway, if it lies in this network.
    pub gateway: Option<Ipv4Addr>,
}

/// The stack's interface records, one per address.
pub fn records() -> Vec<InterfaceInfo> {
    let Some(family) = family() else {
        return Vec::new();
    };
    let (header, bytes) = family.info();
    bytes
        .chunks_exact(size_of::<InterfaceInfo>())
        .take(header.interfaces as usize)
        .filter_map(|chunk| InterfaceInfo::read_from_bytes(chunk).ok())
        .collect()
}

/// Everything that the program sees, the loopback first.
pub fn all() -> Vec<Interface> {
    let mut list = vec![Interface {
        name: "lo".to_string(),
        address: Ipv4Addr::LOCALHOST,
        prefix_len: 8,
        mac: [0; 6],
        mtu: 65536,
        index: 1,
        up: true,
        gateway: None,
    }];
    list.extend(records().iter().filter_map(|record| {
        let IpAddr::V4(address) = record.address.into() else {
            return None;
        };
        let name = record.name.split(|&b| b == 0).next().unwrap_or(&[]);
        Some(Interface {
            // Room for the NUL.
            name: String::from_utf8_lossy(&name[..name.len().min(15)]).into_owned(),
            address,
            prefix_len: record.prefix_len.min(32),
            mac: record.mac,
            mtu: record.mtu as i32,
            index: record.index as u32,
            up: record.up != 0,
            gateway: Some(Ipv4Addr::from(record.gateway)).filter(|g| !g.is_unspecified()),
        })
    }));
    list
}

impl Interface {
    pub fn is_loopback(&self) -> bool {
        self.address.is_loopback()
    }

    pub fn netmask(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - self.prefix_len as u32).unwrap_or(0))
    }

    pub fn broadcast(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address.to_bits() | !self.netmask().to_bits())
    }

    pub fn flags(&self) -> i32 {
        let kind = match self.is_loopback() {
            true => libc::IFF_LOOPBACK,
            false => libc::IFF_BROADCAST | libc::IFF_MULTICAST,
        };
        let up = match self.up {
            true => libc::IFF_UP | libc::IFF_RUNNING,
            false => 0,
        };
        kind | up
    }
}

/// The index of the interface that has this address; 0 if none has.
pub fn index_of(address: IpAddr) -> u32 {
    all().iter().find(|i| IpAddr::V4(i.address) == address).map_or(0, |i| i.index)
}

/// The MTU of the interface that a socket with these addresses sends on: the one with its own address,
/// or the one to its peer's network, or the stack's first.
pub fn mtu_towards(local: IpAddr, remote: IpAddr) -> i32 {
    let (mut list, default) = (all(), 1500);
    list.retain(|i| !i.is_loopback());
    let on_link = |i: &&Interface| match remote {
        IpAddr::V4(remote) => (i.address.to_bits() ^ remote.to_bits()) & i.netmask().to_bits() == 0,
        IpAddr::V6(_) => false,
    };
    let own = list.iter().find(|i| IpAddr::V4(i.address) == local);
    own.or_else(|| list.iter().find(on_link)).or_else(|| list.first()).map_or(default, |i| i.mtu)
}

/// Whether everybody is meant: by 255.255.255.255, or by the last address of a network of ours. For
/// every datagram, so what cannot be the last address of a network of 256 or more is not looked up;
/// with smaller networks the transport refuses what this lets pass.
pub fn is_broadcast(address: IpAddr) -> bool {
    let IpAddr::V4(address) = address else { return false };
    if address.to_bits().trailing_ones() < 8 {
        return false;
    }
    let ours = |i: &Interface| !i.is_loopback() && i.prefix_len <= 24 && i.broadcast() == address;
    address.is_broadcast() || all().iter().any(ours)
}

/// One entry per interface name.
pub fn by_name() -> Vec<Interface> {
    let mut list = all();
    let mut seen: Vec<String> = Vec::new();
    list.retain(|i| {
        let new = !seen.contains(&i.name);
        seen.push(i.name.clone());
        new
    });
    list
}
