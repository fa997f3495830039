//! What interfaces have learnt by themselves, put beside what is configured.
//!
//! It comes from packets, and from a server that may have gone mad: what does not fit is left out.

use super::{ENTRIES_MAX, Metrics, Network, Route};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_autoconf::known::{self, All};
use eft_base::Cidr;

/// What is in force of it beside a configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learnt {
    /// With the name of the interface.
    pub addresses: Vec<(String, known::Address)>,
    pub routes: Vec<(String, known::Route)>,
    /// The best first.
    pub name_servers: Vec<IpAddr>,
    pub search: Vec<String>,
}

/// As many as resolv.conf(5) takes.
const NAME_SERVERS_MAX: usize = 3;
const SEARCH_MAX: usize = 6;

impl Network {
    /// This network and what is known beyond it. `may_have`: whether an interface (by its number) may have an address.
    pub fn with(&self, known: &All, may_have: impl Fn(usize, &Cidr) -> bool) -> (Network, Learnt) {
        let (mut whole, mut learnt) = (self.clone(), Learnt::default());
        let names: Vec<String> = self.interfaces.iter().map(|i| i.name.clone()).collect();
        let learners = || {
            let all = names.iter().enumerate().filter(|(n, _)| !self.interfaces[*n].auto.is_empty());
            all.filter_map(|(n, name)| Some((n, name, known.get(name)?)))
        };
        for (n, name, known) in learners() {
            for a in known.addresses() {
                let mut there = whole.interfaces.iter().flat_map(|i| &i.addresses);
                let is_new =
                    there.clone().count() < ENTRIES_MAX && there.all(|b| b.address != a.cidr.address);
                if is_new && may_have(n, &a.cidr) {
                    whole.interfaces[n].addresses.push(a.cidr);
                    learnt.addresses.push((name.clone(), a));
                }
            }
        }
        for (_, name, known) in learners() {
            for r in known.routes() {
                if whole.add_learnt_route(name, &r) {
                    learnt.routes.push((name.clone(), r));
                }
            }
            let servers = known.name_servers().into_iter();
            let new = servers.filter(|s| !learnt.name_servers.contains(s)).collect::<Vec<_>>();
            learnt.name_servers.extend(new);
            let search = known.search().into_iter().filter(|s| is_domain(s)).map(ToString::to_string);
            let new = search.filter(|s| !learnt.search.contains(s)).collect::<Vec<_>>();
            learnt.search.extend(new);
        }
        learnt.name_servers.truncate(NAME_SERVERS_MAX);
        learnt.search.truncate(SEARCH_MAX);
        (whole, learnt)
    }

    /// False: there is such a route, or it cannot be taken.
    fn add_learnt_route(&mut self, interface: &str, r: &known::Route) -> bool {
        let (destination, metric) = (r.destination.network(), r.metric);
        let interface = Some(interface.into());
        let route = Route { destination, gateway: r.gateway, interface, metric, metrics: Metrics::default() };
        let mut own = self.interfaces.iter().flat_map(|i| &i.addresses);
        // The route to the network of an address goes without saying.
        let of_address = r.gateway.is_none() && own.clone().any(|a| a.network() == destination);
        let is_ours = own.any(|a| Some(a.address) == r.gateway);
        if of_address || is_ours || self.routes.contains(&route) || self.routes.len() >= ENTRIES_MAX {
            return false;
        }
        let leads = self.leads(&route);
        if leads {
            self.routes.push(route);
        }
        leads
    }
}

/// Whether it may stand in a file that programs read.
fn is_domain(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !text.is_empty() && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests;
