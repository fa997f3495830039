//! The addresses and routes of a running stack, and how an operator changes them.
//!
//! Whether a configuration makes sense as a whole, ip says ([`Network::ip_configuration`] is its text); here is only what a change
//! refers to.

mod change;
mod learnt;

pub use change::{Change, NetworkError, RouteKey};
pub use learnt::Learnt;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_autoconf::method::Method;
use eft_base::address::{MacText, link_local, needs_zone};
use eft_base::{Cidr, MacAddress};
use serde::{Deserialize, Serialize};

/// The most addresses and routes of a stack: programs see them in a page of memory.
pub const ENTRIES_MAX: usize = 24;

/// The most configured neighbours: ip has room for four times as many in all.
pub const NEIGHBOURS_MAX: usize = 256;

/// One device. Its position in the list is its NIC's number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    pub name: String,
    pub addresses: Vec<Cidr>,
    /// How it gets further ones.
    #[serde(default)]
    pub auto: Vec<Method>,
}

/// A route that was configured; those to the networks of addresses go without saying.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    pub destination: Cidr,
    #[serde(default)]
    pub gateway: Option<IpAddr>,
    /// Absent: the device in whose network the gateway lies.
    #[serde(default)]
    pub interface: Option<String>,
    #[serde(default)]
    pub metric: u32,
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// What is known of the paths of a route. What is absent is as usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Bytes of the largest packet that it takes; absent: only the device's MTU counts.
    #[serde(default)]
    pub mtu: Option<u16>,
    /// The MSS that TCP announces, in bytes; absent: what the MTU leaves room for.
    #[serde(default)]
    pub advmss: Option<u16>,
    /// Segments of TCP's initial window; absent: those of RFC 6928.
    #[serde(default)]
    pub initcwnd: Option<u16>,
}

/// A neighbour whose link address is not asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    pub address: IpAddr,
    pub mac: MacText,
    pub interface: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    pub interfaces: Vec<Interface>,
    pub routes: Vec<Route>,
    #[serde(default)]
    pub neighbours: Vec<Neighbour>,
}

impl Network {
    /// The routes that a stack begins with.
    pub fn with_gateways(interfaces: Vec<Interface>, gateways: &[IpAddr]) -> Network {
        let default = |gateway: &IpAddr| {
            let unspecified = match gateway {
                IpAddr::V4(_) => IpAddr::from([0; 4]),
                IpAddr::V6(_) => IpAddr::from([0; 16]),
            };
            let destination = Cidr { address: unspecified, prefix_len: 0 };
            let metrics = Metrics::default();
            Route { destination, gateway: Some(*gateway), interface: None, metric: 0, metrics }
        };
        Network { interfaces, routes: gateways.iter().map(default).collect(), neighbours: Vec::new() }
    }

    /// The number of the device by which a route leads.
    pub fn device_of(&self, route: &Route) -> Option<usize> {
        let named = route.interface.as_ref();
        match named {
            Some(name) => self.interfaces.iter().position(|i| i.name == *name),
            None => {
                let gateway = route.gateway?;
                let near = |i: &Interface| {
                    i.addresses.iter().filter(|a| a.contains(gateway)).map(|a| a.prefix_len).max()
                };
                let all = self.interfaces.iter().enumerate().filter_map(|(n, i)| Some((n, near(i)?)));
                all.rev().max_by_key(|(_, len)| *len).map(|(n, _)| n)
            }
        }
    }

    /// The configuration of ip, as its `config` module describes it.
    pub fn ip_configuration(&self, transports: &[String]) -> String {
        let quoted = |list: &[String]| {
            let list: Vec<String> = list.iter().map(|word| format!("{word:?}")).collect();
            list.join(", ")
        };
        let mut text = format!("transports = [{}]\n", quoted(transports));
        for (n, i) in self.interfaces.iter().enumerate() {
            let addresses: Vec<String> = i.addresses.iter().map(ToString::to_string).collect();
            let addresses = quoted(&addresses);
            text += &format!("[[interface]]\nindex = {n}\nname = {:?}\naddresses = [{addresses}]\n", i.name);
            if !i.auto.is_empty() {
                let methods: Vec<String> = i.auto.iter().map(ToString::to_string).collect();
                text += &format!("auto = [{}]\n", quoted(&methods));
            }
        }
        for r in &self.routes {
            text += &format!("[[route]]\ndestination = \"{}\"\nmetric = {}\n", r.destination, r.metric);
            let Metrics { mtu, advmss, initcwnd } = r.metrics;
            for (name, value) in [("mtu", mtu), ("advmss", advmss), ("initcwnd", initcwnd)] {
                if let Some(value) = value {
                    text += &format!("{name} = {value}\n");
                }
            }
            if let Some(gateway) = r.gateway {
                text += &format!("gateway = \"{gateway}\"\n");
            }
            if let Some(name) = &r.interface {
                text += &format!("interface = {name:?}\n");
            }
        }
        for Neighbour { address, mac, interface } in &self.neighbours {
            let mac = mac.0;
            text += &format!(
                "[[neighbour]]\naddress = \"{address}\"\nmac = \"{mac}\"\ninterface = {interface:?}\n"
            );
        }
        text
    }
}

impl Interface {
    /// Whether it has an IPv6 address, or is to get one.
    pub fn speaks_ipv6(&self) -> bool {
        self.addresses.iter().any(|a| a.address.is_ipv6()) || self.auto.iter().any(|m| m.needs_ipv6())
    }

    /// All its addresses: one that speaks IPv6 has a link-local one, too, made from its MAC.
    pub fn all_addresses(&self, mac: MacAddress) -> Vec<Cidr> {
        let mut all = self.addresses.clone();
        let is_link_local = |a: IpAddr| matches!(a, IpAddr::V6(a) if needs_zone(a));
        if self.speaks_ipv6() && !all.iter().any(|a| is_link_local(a.address)) {
            all.push(Cidr { address: link_local(mac).into(), prefix_len: 64 });
        }
        all
    }
}

#[cfg(test)]
mod tests;
