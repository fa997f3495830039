//! Which way a packet takes: longest prefix first.

use crate::config::Config;
use crate::family::{is_spoken, is_unicast, link_group};
use crate::pending::{Hop, Next};
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::{Cidr, MacAddress};

struct Route {
    destination: Cidr,
    interface: u8,
    /// `None`: the destination is a neighbour.
    gateway: Option<IpAddr>,
}

struct Address {
    cidr: Cidr,
    address: IpAddr,
    broadcast: Option<IpAddr>,
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
                if !is_spoken(cidr.address) {
                    continue;
                }
                r.addresses.push(Address {
                    cidr: *cidr,
                    address: cidr.address,
                    broadcast: cidr.broadcast().map(IpAddr::V4),
                    interface: interface.index,
                });
                r.routes.push(Route { destination: *cidr, interface: interface.index, gateway: None });
            }
        }
        for route in &config.route {
            let gateway = route.gateway;
            if let Some(interface) = r.interface_of_neighbour(gateway) {
                r.routes.push(Route { destination: route.destination, interface, gateway: Some(gateway) });
            }
        }
        // Stable: of equal prefixes the first named wins.
        r.routes.sort_by_key(|route| core::cmp::Reverse(route.destination.prefix_len));
        r
    }

    fn interface_of_neighbour(&self, a: IpAddr) -> Option<u8> {
        let connected = self.addresses.iter().filter(|x| x.cidr.contains(a));
        connected.max_by_key(|x| x.cidr.prefix_len).map(|x| x.interface)
    }

    /// Numbers of the configured interfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = u8> {
        self.interfaces.iter().map(|(i, _)| *i)
    }

    /// Our addresses on an interface.
    pub fn addresses_of(&self, interface: u8) -> impl Iterator<Item = IpAddr> {
        let here = self.addresses.iter().filter(move |a| a.interface == interface);
        here.map(|a| a.address)
    }

    pub fn is_ours(&self, a: IpAddr) -> bool {
        self.addresses.iter().any(|x| x.address == a)
    }

    /// The limited broadcast address, or the directed one of a network of ours.
    pub fn is_broadcast(&self, a: IpAddr) -> bool {
        let limited = matches!(a, IpAddr::V4(a) if a.is_broadcast());
        limited || self.addresses.iter().any(|x| x.broadcast == Some(a))
    }

    /// Whether a neighbour with this address may exist on the link.
    pub fn is_on_link(&self, interface: u8, a: IpAddr) -> bool {
        is_unicast(a)
            && !self.is_broadcast(a)
            && self.addresses.iter().any(|x| x.interface == interface && x.cidr.contains(a))
    }

    /// The way to `destination`. `source` decides by which interface what concerns all goes out.
    pub fn hop(&self, source: IpAddr, destination: IpAddr) -> Option<Hop> {
        if self.is_ours(destination) {
            return Some(Hop::LOCAL);
        }
        if let Some(mac) = link_group(destination) {
            let mut from = self.addresses.iter();
            let from = from.find(|a| a.address == source).or(self.addresses.first())?;
            return Some(Hop { interface: from.interface, next: Next::Group(mac) });
        }
        if !is_unicast(destination) || destination.is_loopback() {
            return None;
        }
        let route = self.routes.iter().find(|r| r.destination.contains(destination))?;
        let next = if route.gateway.is_none() && self.is_broadcast(destination) {
            Next::Group(MacAddress::BROADCAST)
        } else {
            Next::Neighbour(route.gateway.unwrap_or(destination))
        };
        Some(Hop { interface: route.interface, next })
    }

    /// Our address to use on the way over `hop` to `destination`.
    pub fn source_for(&self, hop: Hop, destination: IpAddr) -> Option<IpAddr> {
        let toward = match hop.next {
            Next::Local => return Some(destination),
            Next::Neighbour(a) => a,
            Next::Group(_) => destination,
        };
        let here = || self.addresses.iter().filter(|a| a.interface == hop.interface);
        let same_network = here().find(|a| a.cidr.contains(toward));
        Some(same_network.or(here().next())?.address)
    }
}

#[cfg(test)]
mod tests;
