//! The interfaces that a program may ask for: the stack's, and the kernel's loopback.

use crate::domain::domain;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::sync::atomic::{AtomicU64, Ordering};
use eft_base::Cidr;
use eft_base::address::{without_zone, zone};
use eft_messages::control::{InterfaceInfo, RouteInfo, restriction};
use zerocopy::FromBytes;

/// An address on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    /// Without a zone.
    pub address: IpAddr,
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
    let Some(domain) = domain() else {
        return Vec::new();
    };
    let (header, bytes) = domain.info();
    bytes
        .chunks_exact(size_of::<InterfaceInfo>())
        .take(header.interfaces as usize)
        .filter_map(|chunk| InterfaceInfo::read_from_bytes(chunk).ok())
        .collect()
}

/// A configured route of the stack.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub network: Cidr,
    pub gateway: Option<IpAddr>,
    pub metric: u32,
    /// Of its interface.
    pub index: u32,
}

/// The stack's routes that do not lead to the network of an address. An older stack does not list any.
pub fn ways() -> Vec<Way> {
    let Some(domain) = domain() else {
        return Vec::new();
    };
    let (header, bytes) = domain.info();
    let behind = header.interfaces as usize * size_of::<InterfaceInfo>();
    let all = bytes.get(behind..).unwrap_or_default().chunks_exact(size_of::<RouteInfo>());
    let all = all.filter_map(|chunk| RouteInfo::read_from_bytes(chunk).ok());
    all.map(|r| Way {
        network: Cidr { address: r.destination.into(), prefix_len: r.prefix_len },
        gateway: Some(IpAddr::from(r.gateway)).filter(|g| !g.is_unspecified()),
        metric: r.metric,
        index: r.index.into(),
    })
    .collect()
}

/// Whether a connect may send data with its SYN (`eft up --fastopen`).
pub fn may_connect_early() -> bool {
    restrictions() & restriction::NO_EARLY_CONNECT == 0
}

/// The congestion control of streams that choose none (`eft up --congestion`), as in the option word.
pub fn default_congestion() -> u32 {
    restrictions() >> restriction::CONGESTION_SHIFT & restriction::CONGESTION_MASK
}

/// The word at the end of the info page.
fn restrictions() -> u32 {
    let Some(domain) = domain() else {
        return 0;
    };
    let (header, bytes) = domain.info();
    let behind = header.interfaces as usize * size_of::<InterfaceInfo>();
    let routes = bytes.get(behind..).unwrap_or_default().chunks_exact(size_of::<RouteInfo>());
    routes.remainder().first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

/// All interfaces that the program sees, the loopback first.
pub fn all() -> Vec<Interface> {
    let lo = Interface {
        name: "lo".to_string(),
        address: Ipv4Addr::LOCALHOST.into(),
        prefix_len: 8,
        mac: [0; 6],
        mtu: 65536,
        index: 1,
        up: true,
        gateway: None,
    };
    let mut list = vec![lo.clone()];
    let records = records();
    if records.iter().any(is_ipv6) {
        list.push(Interface { address: Ipv6Addr::LOCALHOST.into(), prefix_len: 128, ..lo });
    }
    list.extend(records.iter().map(|record| {
        let address = IpAddr::from(record.address);
        let name = record.name.split(|&b| b == 0).next().unwrap_or(&[]);
        Interface {
            // Room for the NUL.
            name: String::from_utf8_lossy(&name[..name.len().min(15)]).into_owned(),
            address,
            prefix_len: record.prefix_len.min(if address.is_ipv4() { 32 } else { 128 }),
            mac: record.mac,
            mtu: record.mtu as i32,
            index: record.index as u32,
            up: record.up != 0,
            gateway: Some(Ipv4Addr::from(record.gateway)).filter(|g| !g.is_unspecified()),
        }
    }));
    list
}

/// The interfaces with an IPv4 address, with the address.
pub fn ipv4() -> Vec<(Interface, Ipv4Addr)> {
    let v4 = |i: Interface| match i.address {
        IpAddr::V4(address) => Some((i, address)),
        IpAddr::V6(_) => None,
    };
    all().into_iter().filter_map(v4).collect()
}

fn is_ipv6(record: &InterfaceInfo) -> bool {
    IpAddr::from(record.address).is_ipv6()
}

/// Whether the stack has an IPv6 address; else the kernel serves IPv6. Called for every IPv6 address, so the answer is
/// cached until sockets dies or the number of addresses changes.
pub fn speak_ipv6() -> bool {
    /// The cached answer: its version, whether there is an address, and whether it is valid.
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    let Some(domain) = domain() else {
        return false;
    };
    let version = domain.info_version() << 2;
    let known = KNOWN.load(Ordering::Relaxed);
    if known & 1 != 0 && known & !3 == version {
        return known & 2 != 0;
    }
    let speaks = records().iter().any(is_ipv6);
    KNOWN.store(version | (speaks as u64) << 1 | 1, Ordering::Relaxed);
    speaks
}

impl Interface {
    pub fn is_loopback(&self) -> bool {
        self.address.is_loopback()
    }

    pub fn netmask(&self) -> IpAddr {
        let len = u32::from(self.prefix_len);
        match self.address {
            IpAddr::V4(_) => Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - len).unwrap_or(0)).into(),
            IpAddr::V6(_) => Ipv6Addr::from_bits(u128::MAX.checked_shl(128 - len).unwrap_or(0)).into(),
        }
    }

    /// The first address of its network.
    pub fn network(&self) -> IpAddr {
        match (self.address, self.netmask()) {
            (IpAddr::V4(a), IpAddr::V4(mask)) => (a & mask).into(),
            (IpAddr::V6(a), IpAddr::V6(mask)) => (a & mask).into(),
            (a, _) => a,
        }
    }

    /// The last address of its network, if that is for all hosts in it.
    pub fn broadcast(&self) -> Option<Ipv4Addr> {
        match (self.address, self.netmask()) {
            (IpAddr::V4(a), IpAddr::V4(mask)) => Some(a | !mask),
            _ => None,
        }
    }

    /// Whether an address lies in its network.
    pub fn reaches(&self, address: IpAddr) -> bool {
        Cidr { address: self.address, prefix_len: self.prefix_len }.contains(address)
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
    let zone = match address {
        IpAddr::V4(_) => 0,
        IpAddr::V6(a) => u32::from(zone(a)),
    };
    let address = without_zone(address);
    let found = all().into_iter().find(|i| i.address == address && (zone == 0 || i.index == zone));
    found.map_or(0, |i| i.index)
}

/// Our address for a destination of a packet that came by an interface: the interface's, if it is no host's.
pub fn own(destination: Ipv4Addr, index: u32) -> Ipv4Addr {
    if !destination.is_multicast() && !is_broadcast(destination.into()) {
        return destination;
    }
    ipv4().into_iter().find(|(i, _)| i.index == index).map_or(destination, |(_, address)| address)
}

/// The MTU of the interface that a socket with these addresses sends on: the one with its own address,
/// or the one to its peer's network, or the stack's first.
pub fn mtu_towards(local: IpAddr, remote: IpAddr) -> i32 {
    let (mut list, default) = (all(), 1500);
    list.retain(|i| !i.is_loopback());
    let own = list.iter().find(|i| i.address == without_zone(local));
    own.or_else(|| list.iter().find(|i| i.reaches(remote)))
        .or_else(|| list.first())
        .map_or(default, |i| i.mtu)
}

/// Whether an address is a broadcast address: 255.255.255.255, or the last address of a network of ours. Called for
/// every datagram, so an address that cannot be the last of a network of 256 or more is not looked up; with smaller
/// networks the transport refuses what this lets pass.
pub fn is_broadcast(address: IpAddr) -> bool {
    let IpAddr::V4(address) = address else { return false };
    if address.to_bits().trailing_ones() < 8 {
        return false;
    }
    let ours = |i: &Interface| !i.is_loopback() && i.prefix_len <= 24 && i.broadcast() == Some(address);
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
