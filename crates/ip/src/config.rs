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
//! gateway = "10.77.0.1"
//! ```
//!
//! An interface with an IPv6 address speaks IPv6, and has a link-local address as well: its MAC's, unless one is given.
//!
//! It is checked as a whole; an error is one line, and the old configuration stays.

use crate::{v4, v6};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::Cidr;
use eft_base::text::complaint;
use eft_messages::ComponentId;
use serde::Deserialize;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Those that the stack has; what comes for one that is dead waits for it.
    #[serde(default)]
    pub transports: Vec<String>,
    #[serde(default)]
    pub interface: Vec<InterfaceConfig>,
    #[serde(default)]
    pub route: Vec<RouteConfig>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceConfig {
    /// The number of the NIC.
    pub index: u8,
    pub name: String,
    pub addresses: Vec<Cidr>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    pub destination: Cidr,
    pub gateway: IpAddr,
}

impl Config {
    /// Reads and checks a configuration. The error is one line.
    pub fn parse(text: &[u8]) -> Result<Config, String> {
        let text = core::str::from_utf8(text).map_err(|_| "not UTF-8".to_string())?;
        let config: Config = toml::from_str(text).map_err(|e| complaint(text, e.span(), e.message()))?;
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

    fn check(&self) -> Result<(), String> {
        if self.transports().count() < self.transports.len() {
            return Err("transports: tcp and udp are, and a second one is tcp1 or udp1".into());
        }
        let mut addresses: Vec<IpAddr> = Vec::new();
        for (i, interface) in self.interface.iter().enumerate() {
            let name = &interface.name;
            if interface.index == crate::LOCAL_INTERFACE {
                return Err(format!("interface {name}: index must be below 255"));
            }
            let before = &self.interface[..i];
            if before.iter().any(|o| o.index == interface.index) {
                return Err(format!("interface {name}: index {} is taken", interface.index));
            }
            if before.iter().any(|o| o.name == *name) {
                return Err(format!("interface {name} is named twice"));
            }
            for cidr in &interface.addresses {
                check_address(cidr).map_err(|e| format!("interface {name}: {cidr} {e}"))?;
                // A link-local address may be the same on every link.
                if addresses.contains(&cidr.address) && !is_link_local(cidr.address) {
                    return Err(format!("address {} is given twice", cidr.address));
                }
                addresses.push(cidr.address);
            }
        }
        for route in &self.route {
            self.check_route(route).map_err(|e| format!("route to {}: {e}", route.destination))?;
        }
        Ok(())
    }

    fn check_route(&self, route: &RouteConfig) -> Result<(), String> {
        let gateway = route.gateway;
        if route.destination.address.is_ipv4() != gateway.is_ipv4() {
            return Err("destination and gateway are of different families".into());
        }
        let mut cidrs = self.interface.iter().flat_map(|i| &i.addresses);
        if !cidrs.clone().any(|c| c.contains(gateway)) {
            return Err(format!("gateway {gateway} lies in no interface's network"));
        }
        if cidrs.any(|c| c.address == gateway || c.broadcast().map(IpAddr::V4) == Some(gateway)) {
            return Err(format!("gateway {gateway} is not another host's address"));
        }
        Ok(())
    }
}

fn is_link_local(a: IpAddr) -> bool {
    matches!(a, IpAddr::V6(a) if v6::address::is_link_local(a))
}

fn check_address(cidr: &Cidr) -> Result<(), &'static str> {
    match cidr.address {
        IpAddr::V4(a) => v4::address::check_host(cidr, a),
        IpAddr::V6(a) => v6::address::check_host(cidr, a),
    }
}

#[cfg(test)]
mod tests;
