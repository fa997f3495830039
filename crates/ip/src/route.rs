//! Which way a packet takes: longest prefix first.

use crate::config::{Config, is_unicast};
use crate::pending::{Hop, Next};
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use eft_base::{Cidr, MacAddress};

struct Route {
    destination: Cidr,
    interface: u8,
    /// `None`: the destination is a neighbour.
    gateway: Option<Ipv4Addr>,
}

struct Address {
    cidr: Cidr,
    address: Ipv4Addr,
    broadcast: Option<Ipv4Addr>,
    interface: u8,
}

/// What follows from the configuration. Lists are short and searched from the front.
#[derive(Default)]
pub(crate) struct Routes {
    interfaces: Vec<(u8, String)>,
    addresses: Vec<Address>,
    /// Longest prefix first.
    routes: Vec<Route>,
}

impl Routes {
    pub fn new(config: &Config) -> Routes {
        let mut r = Routes::default();
        for interface in &config.interface {
            r.interfaces.push((interface.index, interface.name.clone()));
            for cidr in &interface.addresses {
                let IpAddr::V4(address) = cidr.address else {
                    continue;
                };
                r.addresses.push(Address {
                    cidr: *cidr,
                    address,
                    broadcast: cidr.broadcast(),
                    interface: interface.index,
                });
                r.routes.push(Route { destination: *cidr, interface: interface.index, gateway: None });
            }
        }
        for route in &config.route {
            let IpAddr::V4(gateway) = route.gateway else {
                continue;
            };
            if let Some(interface) = r.interface_of_neighbour(gateway) {
                r.routes.push(Route { destination: route.destination, interface, gateway: Some(gateway) });
            }
        }
        // Stable: of equal prefixes the first named wins.
        r.routes.sort_by_key(|route| core::cmp::Reverse(route.destination.prefix_len));
        r
    }

    fn interface_of_neighbour(&self, a: Ipv4Addr) -> Option<u8> {
        let connected = self.addresses.iter().filter(|x| x.cidr.contains(a.into()));
        connected.max_by_key(|x| x.cidr.prefix_len).map(|x| x.interface)
    }

    /// Numbers of the configured interfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = u8> {
        self.interfaces.iter().map(|(i, _)| *i)
    }

    /// Our addresses on an interface.
    pub fn addresses_of(&self, interface: u8) -> impl Iterator<Item = Ipv4Addr> {
        let here = self.addresses.iter().filter(move |a| a.interface == interface);
        here.map(|a| a.address)
    }

    pub fn is_ours(&self, a: Ipv4Addr) -> bool {
        self.addresses.iter().any(|x| x.address == a)
    }

    /// The limited broadcast address, or the directed one of a network of ours.
    pub fn is_broadcast(&self, a: Ipv4Addr) -> bool {
        a.is_broadcast() || self.addresses.iter().any(|x| x.broadcast == Some(a))
    }

    /// Whether a neighbour with this address may exist on the link.
    pub fn is_on_link(&self, interface: u8, a: Ipv4Addr) -> bool {
        is_unicast(a)
            && !self.is_broadcast(a)
            && self.addresses.iter().any(|x| x.interface == interface && x.cidr.contains(a.into()))
    }

    /// The way to `destination`. `source` decides by which interface what concerns all goes out.
    pub fn hop(&self, source: Ipv4Addr, destination: Ipv4Addr) -> Option<Hop> {
        if self.is_ours(destination) {
            return Some(Hop::LOCAL);
        }
        if destination.is_broadcast() || destination.is_multicast() {
            let mut from = self.addresses.iter();
            let from = from.find(|a| a.address == source).or(self.addresses.first())?;
            let [_, b, c, d] = destination.octets();
            let mac = if destination.is_multicast() {
                // RFC 1112 §6.4
                MacAddress([1, 0, 0x5e, b & 0x7f, c, d])
            } else {
                MacAddress::BROADCAST
            };
            return Some(Hop { interface: from.interface, next: Next::Group(mac) });
        }
        if !is_unicast(destination) || destination.is_loopback() {
            return None;
        }
        let route = self.routes.iter().find(|r| r.destination.contains(destination.into()))?;
        let next = if route.gateway.is_none() && self.is_broadcast(destination) {
            Next::Group(MacAddress::BROADCAST)
        } else {
            Next::Neighbour(route.gateway.unwrap_or(destination))
        };
        Some(Hop { interface: route.interface, next })
    }

    /// Our address to use on the way over `hop` to `destination`.
    pub fn source_for(&self, hop: Hop, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        let toward = match hop.next {
            Next::Local => return Some(destination),
            Next::Neighbour(a) => a,
            Next::Group(_) => destination,
        };
        let here = || self.addresses.iter().filter(|a| a.interface == hop.interface);
        let same_network = here().find(|a| a.cidr.contains(toward.into()));
        Some(same_network.or(here().next())?.address)
    }
}

#[cfg(test)]
mod tests;
