//! The route of a packet: longest prefix first, then the lowest metric.

use crate::config::{Config, RouteConfig};
use crate::family::{in_zone, is_unicast, link_group};
use crate::pending::{Hop, Next};
use crate::v6;
use crate::v6::redirects::Redirects;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use eft_base::address::{link_local, zone, zone_of_nic};
use eft_base::{Cidr, MacAddress};

struct Route {
    destination: Cidr,
    interface: u8,
    /// `None`: the destination is a neighbour.
    gateway: Option<IpAddr>,
    metric: u32,
    mtu: u16,
    hints: Hints,
}

/// What a route says to TCP; 0: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    /// The MSS to announce.
    pub mss: u16,
    /// Segments of the initial window.
    pub initial_segments: u16,
}

struct Address {
    cidr: Cidr,
    address: IpAddr,
    broadcast: Option<IpAddr>,
    interface: u8,
    /// Its preferred lifetime is over (RFC 4862 §5.5.4).
    deprecated: bool,
}

/// Routes and addresses from the configuration. Lists are short and searched from the front.
#[derive(Default)]
pub(crate) struct Routes {
    interfaces: Vec<(u8, String)>,
    /// Those that speak IPv6 although they may have no address yet.
    to_learn: Vec<u8>,
    addresses: Vec<Address>,
    /// Longest prefix first, of equal ones the lowest metric.
    routes: Vec<Route>,
    /// What routers have said since about single destinations.
    pub redirects: Redirects,
}

impl Routes {
    pub fn new(config: &Config) -> Routes {
        let mut r = Routes::default();
        for interface in &config.interface {
            r.interfaces.push((interface.index, interface.name.clone()));
            if interface.auto.iter().any(|method| method.needs_ipv6()) {
                r.to_learn.push(interface.index);
            }
            for cidr in &interface.addresses {
                r.insert(interface.index, *cidr);
            }
        }
        for route in &config.route {
            let named =
                |(n, name): &(u8, String)| route.interface.as_ref().filter(|i| *i == name).map(|_| *n);
            let named = r.interfaces.iter().find_map(named);
            let Some(interface) = named.or_else(|| r.interface_of_neighbour(route.gateway?)) else {
                continue;
            };
            let gateway = route.gateway.map(|gateway| in_zone(gateway, interface));
            let RouteConfig { destination, metric, mtu, advmss, initcwnd, .. } = *route;
            let mtu = mtu.unwrap_or(u16::MAX);
            let hints = Hints { mss: advmss.unwrap_or(0), initial_segments: initcwnd.unwrap_or(0) };
            r.routes.push(Route { destination, interface, gateway, metric, mtu, hints });
        }
        r.sort();
        r
    }

    /// Stable: of equal prefixes the first configured wins.
    fn sort(&mut self) {
        self.routes.sort_by_key(|route| (core::cmp::Reverse(route.destination.prefix_len), route.metric));
    }

    /// Adds an address of ours, and the route to its network.
    fn insert(&mut self, interface: u8, cidr: Cidr) {
        let address = in_zone(cidr.address, interface);
        let cidr = Cidr { address, ..cidr };
        let broadcast = cidr.broadcast().map(IpAddr::V4);
        self.addresses.push(Address { cidr, address, broadcast, interface, deprecated: false });
        let (mtu, hints) = (u16::MAX, Hints::default());
        self.routes.push(Route { destination: cidr, interface, gateway: None, metric: 0, mtu, hints });
    }

    /// An interface that speaks IPv6 has a link-local address (RFC 4862 §5.3): this one, unless another is configured.
    pub fn add_link_local(&mut self, interface: u8, mac: MacAddress) {
        let has = |a: IpAddr| matches!(a, IpAddr::V6(a) if v6::address::is_link_local(a));
        if self.speaks_ipv6(interface) && !self.addresses_of(interface).any(has) {
            self.insert(interface, Cidr { address: link_local(mac).into(), prefix_len: 64 });
            self.sort();
        }
    }

    /// Removes an address that another host has. Its network stays reachable.
    pub fn remove_address(&mut self, interface: u8, address: IpAddr) {
        self.addresses.retain(|a| a.interface != interface || a.address != address);
    }

    /// `address` is as configured.
    pub fn set_deprecated(&mut self, interface: u8, address: IpAddr, deprecated: bool) {
        let address = in_zone(address, interface);
        let here = self.addresses.iter_mut().filter(|a| a.interface == interface && a.address == address);
        here.for_each(|a| a.deprecated = deprecated);
    }

    /// Whether an interface was given an IPv6 address, or is to get one.
    pub fn speaks_ipv6(&self, interface: u8) -> bool {
        self.to_learn.contains(&interface)
            || self.addresses.iter().any(|a| a.interface == interface && a.address.is_ipv6())
    }

    /// Whether packets to this multicast address are for us: those to all nodes, and those to the solicited-node address
    /// of an address of ours (RFC 4291 §2.8).
    pub fn is_member(&self, interface: u8, group: Ipv6Addr) -> bool {
        let zone = zone_of_nic(interface);
        group == v6::address::all_nodes(zone)
            || self
                .addresses_of(interface)
                .any(|a| matches!(a, IpAddr::V6(a) if group == v6::address::solicited_node(a, zone)))
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

    /// Those that were not there before.
    pub fn new_addresses(&self, interface: u8, before: &Routes) -> Vec<IpAddr> {
        self.addresses_of(interface).filter(|a| !before.addresses_of(interface).any(|b| b == *a)).collect()
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
            && (self.redirects.leads_to(interface, a)
                || self
                    .routes
                    .iter()
                    .any(|r| r.interface == interface && r.gateway.is_none() && r.destination.contains(a)))
    }

    /// The next hop to `destination`. `source` decides by which interface broadcast and multicast packets go out.
    pub fn hop(&self, source: IpAddr, destination: IpAddr) -> Option<Hop> {
        if self.is_ours(destination) {
            return Some(Hop::LOCAL);
        }
        if let Some(mac) = link_group(destination) {
            let zoned = matches!(destination, IpAddr::V6(a) if zone(a) != 0);
            let here = |a: &&Address| match destination {
                IpAddr::V6(group) if zoned => zone(group) == zone_of_nic(a.interface),
                _ => a.address == source,
            };
            let mut alike = self.addresses.iter().filter(|a| a.address.is_ipv4() == destination.is_ipv4());
            let from = alike.clone().find(here).or_else(|| alike.next().filter(|_| !zoned))?;
            return Some(Hop::to(from.interface, Next::Group(mac)));
        }
        if !is_unicast(destination) || destination.is_loopback() {
            return None;
        }
        let route = self.route_to(destination)?;
        let next = if route.gateway.is_none() && self.is_broadcast(destination) {
            Next::Group(MacAddress::BROADCAST)
        } else {
            let better = route.gateway.and_then(|_| self.redirects.next(route.interface, destination));
            Next::Neighbour(better.or(route.gateway).unwrap_or(destination))
        };
        Some(Hop { mtu: route.mtu, ..Hop::to(route.interface, next) })
    }

    fn route_to(&self, destination: IpAddr) -> Option<&Route> {
        // A link-local address is reached by its link or not at all (RFC 4291 §2.5.6).
        let on_link_only = matches!(destination, IpAddr::V6(a) if v6::address::is_link_local(a));
        let takes =
            |r: &&Route| r.destination.contains(destination) && !(on_link_only && r.gateway.is_some());
        self.routes.iter().find(takes)
    }

    /// What the route to another host says to TCP.
    pub fn hints(&self, destination: IpAddr) -> Hints {
        self.route_to(destination).map(|route| route.hints).unwrap_or_default()
    }

    /// Our address to use on the way over `hop` to `destination`.
    pub fn source_for(&self, hop: Hop, destination: IpAddr) -> Option<IpAddr> {
        let toward = match hop.next {
            Next::Local => return Some(destination),
            Next::Neighbour(a) => a,
            Next::Group(_) => destination,
        };
        let alike = |a: &&Address| a.interface == hop.interface && a.address.is_ipv4() == toward.is_ipv4();
        let here = || self.addresses.iter().filter(alike);
        if let IpAddr::V6(destination) = destination {
            return v6::address::choose_source(destination, here().map(|a| (a.address, a.deprecated)));
        }
        let same_network = here().find(|a| a.cidr.contains(toward));
        Some(same_network.or(here().next())?.address)
    }
}

#[cfg(test)]
mod tests;
