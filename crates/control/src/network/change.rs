//! What an operator changes. A change that is refused changes nothing.

use super::{ENTRIES_MAX, Interface, NEIGHBOURS_MAX, Neighbour, Network, Route};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use eft_base::Cidr;
use eft_base::address::{MacText, needs_zone};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A change. Devices are named; a stack's only device need not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    AddAddress {
        address: Cidr,
        interface: Option<String>,
    },
    /// Routes whose gateway can then not be reached go, too.
    RemoveAddress {
        address: Cidr,
        interface: Option<String>,
    },
    FlushAddresses {
        interface: Option<String>,
    },
    AddRoute(Route),
    RemoveRoute(RouteKey),
    /// Of one version, or of both.
    FlushRoutes {
        ipv6: Option<bool>,
    },
    /// Replaces an earlier one of the address.
    AddNeighbour {
        address: IpAddr,
        mac: MacText,
        interface: Option<String>,
    },
    RemoveNeighbour {
        address: IpAddr,
        interface: Option<String>,
    },
    FlushNeighbours {
        interface: Option<String>,
    },
}

/// Which route is meant: what is absent matches any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteKey {
    pub destination: Cidr,
    #[serde(default)]
    pub gateway: Option<IpAddr>,
    #[serde(default)]
    pub interface: Option<String>,
    #[serde(default)]
    pub metric: Option<u32>,
}

/// Why a change is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetworkError {
    #[error("there is no device `{name}`; this stack has {known}")]
    NoDevice { name: String, known: String },
    #[error("which device? This stack has {known}: name one with `dev`")]
    WhichDevice { known: String },
    #[error("{address} is an address of {interface} already")]
    AddressThere { address: IpAddr, interface: String },
    #[error("{interface} has no address {address}; it has {known}")]
    NoAddress { address: Cidr, interface: String, known: String },
    #[error("there is a route to {0} already: remove it first, or give another metric")]
    RouteThere(Shown),
    #[error("there is no route to {0}; `eft route` shows those that there are")]
    NoRoute(Shown),
    #[error("the route to {network} belongs to address {address}, and goes with it")]
    OfAddress { network: Shown, address: Cidr },
    #[error("{address} on {interface} is not configured as a neighbour")]
    NoNeighbour { address: IpAddr, interface: String },
    #[error("{given} has bits beyond its prefix: the network is {network}")]
    HostBits { given: Cidr, network: Cidr },
    #[error("a stack has at most {most} {what}")]
    TooMany { what: &'static str, most: usize },
}

/// A destination as operators write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown(pub Cidr);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.prefix_len {
            0 => f.write_str("default"),
            _ => self.0.fmt(f),
        }
    }
}

impl Network {
    /// Carries a change out; returns the routes that went with an address.
    pub fn apply(&mut self, change: Change) -> Result<Vec<Route>, NetworkError> {
        let mut next = self.clone();
        next.make(change)?;
        let unreachable = next.drop_unreachable(self);
        *self = next;
        Ok(unreachable)
    }

    fn make(&mut self, change: Change) -> Result<(), NetworkError> {
        match change {
            Change::AddAddress { address, interface } => self.add_address(address, interface),
            Change::RemoveAddress { address, interface } => {
                let device = self.device(interface.as_deref())?;
                let before = device.addresses.len();
                device.addresses.retain(|a| *a != address);
                match device.addresses.len() < before {
                    true => Ok(()),
                    false => {
                        let known = list(device.addresses.iter());
                        Err(NetworkError::NoAddress { address, interface: device.name.clone(), known })
                    }
                }
            }
            Change::FlushAddresses { interface } => {
                self.device(interface.as_deref())?.addresses.clear();
                Ok(())
            }
            Change::AddRoute(route) => self.add_route(route),
            Change::RemoveRoute(key) => self.remove_route(&key),
            Change::AddNeighbour { address, mac, interface } => self.add_neighbour(address, mac, interface),
            Change::RemoveNeighbour { address, interface } => self.remove_neighbour(address, interface),
            Change::FlushNeighbours { interface } => {
                let name = interface.map(|i| self.device(Some(&i)).map(|d| d.name.clone())).transpose()?;
                self.neighbours.retain(|n| name.as_ref().is_some_and(|name| n.interface != *name));
                Ok(())
            }
            Change::FlushRoutes { ipv6 } => {
                self.routes.retain(|r| ipv6.is_some_and(|v6| r.destination.address.is_ipv6() != v6));
                Ok(())
            }
        }
    }

    fn device(&mut self, name: Option<&str>) -> Result<&mut Interface, NetworkError> {
        let known = || list(self.interfaces.iter().map(|i| &i.name));
        let position = match name {
            Some(name) => self.interfaces.iter().position(|i| i.name == name),
            None if self.interfaces.len() == 1 => Some(0),
            None => return Err(NetworkError::WhichDevice { known: known() }),
        };
        match position {
            Some(n) => Ok(&mut self.interfaces[n]),
            None => {
                Err(NetworkError::NoDevice { name: name.unwrap_or_default().to_string(), known: known() })
            }
        }
    }

    fn add_address(&mut self, address: Cidr, interface: Option<String>) -> Result<(), NetworkError> {
        if self.interfaces.iter().map(|i| i.addresses.len()).sum::<usize>() >= ENTRIES_MAX {
            return Err(NetworkError::TooMany { what: "addresses", most: ENTRIES_MAX });
        }
        let device = self.device(interface.as_deref())?;
        if device.addresses.iter().any(|a| a.address == address.address) {
            let interface = device.name.clone();
            return Err(NetworkError::AddressThere { address: address.address, interface });
        }
        device.addresses.push(address);
        Ok(())
    }

    fn add_route(&mut self, route: Route) -> Result<(), NetworkError> {
        let network = route.destination.network();
        if network != route.destination {
            return Err(NetworkError::HostBits { given: route.destination, network });
        }
        if self.routes.len() >= ENTRIES_MAX {
            return Err(NetworkError::TooMany { what: "routes", most: ENTRIES_MAX });
        }
        if let Some(name) = &route.interface {
            self.device(Some(name))?;
        }
        if self.routes.iter().any(|r| r.destination == route.destination && r.metric == route.metric) {
            return Err(NetworkError::RouteThere(Shown(route.destination)));
        }
        self.routes.push(route);
        Ok(())
    }

    fn add_neighbour(
        &mut self,
        address: IpAddr,
        mac: MacText,
        interface: Option<String>,
    ) -> Result<(), NetworkError> {
        let interface = self.device(interface.as_deref())?.name.clone();
        self.neighbours.retain(|n| n.address != address || n.interface != interface);
        if self.neighbours.len() >= NEIGHBOURS_MAX {
            return Err(NetworkError::TooMany { what: "neighbours", most: NEIGHBOURS_MAX });
        }
        self.neighbours.push(Neighbour { address, mac, interface });
        Ok(())
    }

    fn remove_neighbour(&mut self, address: IpAddr, interface: Option<String>) -> Result<(), NetworkError> {
        let interface = self.device(interface.as_deref())?.name.clone();
        let before = self.neighbours.len();
        self.neighbours.retain(|n| n.address != address || n.interface != interface);
        match self.neighbours.len() < before {
            true => Ok(()),
            false => Err(NetworkError::NoNeighbour { address, interface }),
        }
    }

    /// Removes the first of those that are meant.
    fn remove_route(&mut self, key: &RouteKey) -> Result<(), NetworkError> {
        let device = |r: &Route| self.device_of(r).map(|n| &self.interfaces[n].name);
        let meant = |r: &Route| {
            r.destination == key.destination
                && key.gateway.is_none_or(|gateway| r.gateway == Some(gateway))
                && key.metric.is_none_or(|metric| r.metric == metric)
                && key.interface.as_ref().is_none_or(|name| device(r) == Some(name))
        };
        if let Some(n) = self.routes.iter().position(meant) {
            self.routes.remove(n);
            return Ok(());
        }
        let mut own = self.interfaces.iter().flat_map(|i| &i.addresses);
        let shown = Shown(key.destination);
        Err(match own.find(|a| a.network() == key.destination) {
            Some(address) => NetworkError::OfAddress { network: shown, address: *address },
            None => NetworkError::NoRoute(shown),
        })
    }

    /// Takes out the routes that led somewhere `before` and do not now.
    fn drop_unreachable(&mut self, before: &Network) -> Vec<Route> {
        let (interfaces, routes) = (core::mem::take(&mut self.interfaces), core::mem::take(&mut self.routes));
        let neighbours = core::mem::take(&mut self.neighbours);
        let now = Network { interfaces, routes: Vec::new(), neighbours };
        let (gone, kept) =
            routes.into_iter().partition(|r| before.routes.contains(r) && before.leads(r) && !now.leads(r));
        *self = Network { routes: kept, ..now };
        gone
    }

    /// Whether a route's gateway is in a network of its device, or its device has an address at all.
    pub(super) fn leads(&self, route: &Route) -> bool {
        let Some(n) = self.device_of(route) else { return false };
        let own = &self.interfaces[n].addresses;
        match route.gateway {
            Some(IpAddr::V6(gateway)) if needs_zone(gateway) => self.interfaces[n].speaks_ipv6(),
            Some(gateway) => own.iter().any(|a| a.contains(gateway)),
            None => own.iter().any(|a| a.address.is_ipv4() == route.destination.address.is_ipv4()),
        }
    }
}

fn list<T: ToString>(items: impl Iterator<Item = T>) -> String {
    let items: Vec<String> = items.map(|i| i.to_string()).collect();
    if items.is_empty() { "none".into() } else { items.join(", ") }
}
