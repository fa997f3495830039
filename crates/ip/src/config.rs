//! The configuration: interfaces with their addresses, and routes, as TOML text.
//!
//! ```toml
//! transports = ["tcp", "udp"]
//!
//! [[interface]]
//! index = 0
//! name = "eft0"
//! addresses = ["10.77.0.2/24", "fd77::2/64"]
//!
//! [[route]]
//! destination = "0.0.0.0/0"
//! gateway = "10.77.0.1"     # absent: the destinations are neighbours on `interface`
//! interface = "eft0"        # absent: the one in whose network the gateway lies
//! metric = 100              # of routes to the same network the one with the lowest counts; absent: 0
//! mtu = 1400                # bytes of the largest packet that it takes; absent: the link's
//! advmss = 1300             # bytes of the MSS that TCP announces; absent: what the MTU leaves room for
//! initcwnd = 20             # segments of TCP's initial window; absent: those of RFC 6928
//!
//! [[neighbour]]               # its link address is not asked for
//! interface = "eft0"
//! address = "10.77.0.7"
//! mac = "02:00:00:00:00:07"
//! ```
//!
//! An interface may have `auto = ["slaac"]`: how it gets further addresses.
//!
//! An interface with an IPv6 address speaks IPv6, and has a link-local address as well: one derived from its MAC,
//! unless one is given.
//!
//! It is checked as a whole; an error is one line, and the old configuration stays.

use crate::config_error::{AddressError, ConfigError};
use crate::family::{in_zone, is_unicast};
use crate::{v4, v6};
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use eft_autoconf::method::Method;
use eft_base::address::MacText;
use eft_base::text::complaint;
use eft_base::{Cidr, MacAddress};
use eft_messages::ComponentId;
use serde::Deserialize;

/// The MSS that a route may say: at least that of TCP_MAXSEG, at most what Linux takes.
const ADVMSS: RangeInclusive<u16> = 88..=65495;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The transports that the stack has; packets for one that is dead wait for it.
    #[serde(default)]
    pub transports: Vec<String>,
    #[serde(default)]
    pub interface: Vec<InterfaceConfig>,
    #[serde(default)]
    pub route: Vec<RouteConfig>,
    #[serde(default)]
    pub neighbour: Vec<NeighbourConfig>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceConfig {
    /// The number of the NIC.
    pub index: u8,
    pub name: String,
    pub addresses: Vec<Cidr>,
    /// How it gets further ones.
    #[serde(default)]
    pub auto: Vec<Method>,
}

impl InterfaceConfig {
    /// Whether it has a link-local address.
    fn speaks_ipv6(&self) -> bool {
        self.addresses.iter().any(|c| c.address.is_ipv6()) || self.auto.iter().any(|m| m.needs_ipv6())
    }
}

/// A neighbour whose link address is not asked for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeighbourConfig {
    pub interface: String,
    pub address: IpAddr,
    pub mac: MacText,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    pub destination: Cidr,
    pub gateway: Option<IpAddr>,
    pub interface: Option<String>,
    #[serde(default)]
    pub metric: u32,
    pub mtu: Option<u16>,
    pub advmss: Option<u16>,
    pub initcwnd: Option<u16>,
}

impl Config {
    /// Reads and checks a configuration. The error is one line.
    pub fn parse(text: &[u8]) -> Result<Config, ConfigError> {
        let text = core::str::from_utf8(text).map_err(|_| ConfigError::NotUtf8)?;
        let syntax = |e: toml::de::Error| ConfigError::Syntax(complaint(text, e.span(), e.message()));
        let config: Config = toml::from_str(text).map_err(syntax)?;
        config.check()?;
        Ok(config)
    }

    /// The transports that the stack has.
    pub fn transports(&self) -> impl Iterator<Item = ComponentId> {
        self.transports
            .iter()
            .filter_map(|name| name.parse().ok())
            .filter(|id: &ComponentId| id.role.is_transport())
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.transports().count() < self.transports.len() {
            return Err(ConfigError::UnknownTransport);
        }
        let mut addresses: Vec<IpAddr> = Vec::new();
        for (i, interface) in self.interface.iter().enumerate() {
            interface.check(&self.interface[..i])?;
            for cidr in &interface.addresses {
                // A link-local address may be the same on every link.
                if addresses.contains(&cidr.address) && !is_link_local(cidr.address) {
                    return Err(ConfigError::AddressTwice(cidr.address));
                }
                addresses.push(cidr.address);
            }
        }
        self.neighbour.iter().try_for_each(|neighbour| self.check_neighbour(neighbour))?;
        self.route.iter().try_for_each(|route| self.check_route(route))
    }

    fn check_neighbour(&self, n: &NeighbourConfig) -> Result<(), ConfigError> {
        let address = n.address;
        let Some(interface) = self.interface.iter().find(|i| i.name == n.interface) else {
            return Err(ConfigError::NeighbourByNoInterface { address, interface: n.interface.clone() });
        };
        if n.mac.0.is_multicast() || n.mac.0 == MacAddress::default() {
            return Err(ConfigError::NoHostsMac { address, mac: n.mac.0 });
        }
        let own = |i: &InterfaceConfig| i.addresses.iter().any(|c| c.address == address);
        let nobody = interface.addresses.iter().any(|c| c.broadcast().map(IpAddr::V4) == Some(address));
        match !is_unicast(address) || nobody || self.interface.iter().any(own) {
            true => Err(ConfigError::NeighbourIsNobody { address }),
            false => Ok(()),
        }
    }

    /// The neighbours with the numbers of their interfaces.
    pub(crate) fn neighbours(&self) -> impl Iterator<Item = (u8, IpAddr, MacAddress)> {
        self.neighbour.iter().filter_map(|n| {
            let interface = self.interface.iter().find(|i| i.name == n.interface)?.index;
            Some((interface, in_zone(n.address, interface), n.mac.0))
        })
    }

    fn check_route(&self, route: &RouteConfig) -> Result<(), ConfigError> {
        let to = route.destination;
        let by = |i: &&InterfaceConfig| route.interface.as_ref().is_none_or(|name| *name == i.name);
        let mut cidrs = self.interface.iter().filter(by).flat_map(|i| &i.addresses);
        let speaks_ipv6 = self.interface.iter().filter(by).any(InterfaceConfig::speaks_ipv6);
        if let Some(name) = &route.interface
            && !self.interface.iter().any(|i| i.name == *name)
        {
            return Err(ConfigError::RouteByNoInterface { to, interface: name.clone() });
        }
        let least = if to.address.is_ipv6() { v6::path::MTU_MIN } else { crate::link::MTU_MIN };
        if let Some(mtu) = route.mtu.filter(|mtu| *mtu < least) {
            return Err(ConfigError::RouteMtu { to, mtu, least });
        }
        if let Some(mss) = route.advmss.filter(|mss| !ADVMSS.contains(mss)) {
            return Err(ConfigError::RouteMss { to, mss });
        }
        if route.initcwnd == Some(0) {
            return Err(ConfigError::RouteWindow { to });
        }
        let Some(gateway) = route.gateway else {
            return match route.interface {
                Some(_) => Ok(()),
                None => Err(ConfigError::RouteToNowhere { to }),
            };
        };
        if to.address.is_ipv4() != gateway.is_ipv4() {
            return Err(ConfigError::TwoFamilies { to });
        }
        // An interface that speaks IPv6 has a link-local address.
        let of_the_link = is_link_local(gateway) && route.interface.is_some();
        if !(of_the_link && speaks_ipv6) && !cidrs.clone().any(|c| c.contains(gateway)) {
            return Err(ConfigError::GatewayInNoNetwork { to, gateway });
        }
        if cidrs.any(|c| c.address == gateway || c.broadcast().map(IpAddr::V4) == Some(gateway)) {
            return Err(ConfigError::GatewayIsNobody { to, gateway });
        }
        Ok(())
    }
}

impl InterfaceConfig {
    fn check(&self, earlier: &[InterfaceConfig]) -> Result<(), ConfigError> {
        let interface = || self.name.clone();
        if self.index == crate::LOCAL_INTERFACE {
            return Err(ConfigError::Index { interface: interface() });
        }
        if earlier.iter().any(|o| o.index == self.index) {
            return Err(ConfigError::IndexTaken { interface: interface(), index: self.index });
        }
        if earlier.iter().any(|o| o.name == self.name) {
            return Err(ConfigError::InterfaceTwice(interface()));
        }
        self.addresses.iter().try_for_each(|cidr| {
            check_address(cidr).map_err(|why| ConfigError::Address {
                interface: interface(),
                cidr: *cidr,
                why,
            })
        })
    }
}

fn is_link_local(a: IpAddr) -> bool {
    matches!(a, IpAddr::V6(a) if v6::address::is_link_local(a))
}

fn check_address(cidr: &Cidr) -> Result<(), AddressError> {
    match cidr.address {
        IpAddr::V4(a) => v4::address::check_host(cidr, a),
        IpAddr::V6(a) => v6::address::check_host(cidr, a),
    }
}

#[cfg(test)]
mod tests;
