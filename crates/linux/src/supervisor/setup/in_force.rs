//! Addresses, routes and name servers that are in force: what is configured, and what interfaces have learnt by themselves.

use super::{StackConfig, check_address};
use crate::supervisor::kept::AUTOCONF;
use eft_autoconf::known::{self, All};
use eft_control::network::{Learnt, Network};
use eft_control::store::Store;
use eft_host::clock;
use serde_json::{Value, json};
use std::net::IpAddr;

/// What is in force: what is configured and what is learnt.
#[derive(Debug, Default)]
pub struct InForce {
    pub known: All,
    pub network: Network,
    pub learnt: Learnt,
}

impl InForce {
    /// At the start; what a predecessor's ip had learnt is in the store.
    pub fn at_start(config: &StackConfig, network: &Network, store: &Store) -> InForce {
        let known = store.get(AUTOCONF).map(|(_, text)| known::parse(text)).unwrap_or_default();
        InForce::of(config, network, known)
    }

    pub fn of(config: &StackConfig, network: &Network, known: All) -> InForce {
        let may_have = |n: usize, cidr: &_| {
            config.devices.get(n).is_some_and(|d| check_address(cidr, Some(d.mtu)).is_ok())
        };
        let (network, learnt) = network.with(&known, may_have);
        InForce { known, network, learnt }
    }

    /// Those that programs ask, the first first.
    pub fn name_servers(&self, config: &StackConfig) -> Vec<IpAddr> {
        let learnt = self.learnt.name_servers.iter().filter(|s| Some(**s) != config.nameserver);
        config.nameserver.iter().chain(learnt).copied().collect()
    }

    /// For operators: what is learnt, and for how long it still holds.
    pub fn shown(&self) -> Value {
        let left = |end: Option<eft_base::Instant>| end.map(|end| (end - clock::now()).as_secs());
        let addresses = self.learnt.addresses.iter().map(|(interface, a)| {
            json!({ "address": a.cidr, "interface": interface, "source": a.origin.name(),
                    "valid_s": left(a.valid), "preferred_s": left(a.preferred) })
        });
        let routes = self.learnt.routes.iter().map(|(interface, r)| {
            json!({ "destination": r.destination.network(), "gateway": r.gateway, "interface": interface,
                    "metric": r.metric, "source": r.origin.name(), "valid_s": left(r.until) })
        });
        json!({ "addresses": addresses.collect::<Vec<_>>(), "routes": routes.collect::<Vec<_>>() })
    }
}
