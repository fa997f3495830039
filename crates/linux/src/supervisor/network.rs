//! Addresses and routes of the running stack: an operator changes them, servers and programs are told, and a successor
//! of this supervisor gets them.

use super::Supervisor;
use super::kept::NETWORK;
use super::setup::check_address;
use crate::{Error, Result};
use eft_control::network::{Change, Route};
use serde_json::{Value, json};

impl Supervisor {
    pub(super) fn operator_changes_network(&mut self, change: Option<Change>) -> Result<Value> {
        let gone = match change {
            Some(change) => self.change_network(change)?,
            None => Vec::new(),
        };
        let interfaces: Vec<Value> = self
            .config
            .devices
            .iter()
            .zip(&self.in_force.network.interfaces)
            .map(|(d, i)| {
                json!({ "interface": i.name, "device": d.text, "mac": d.mac.to_string(), "mtu": d.mtu,
                        "auto": i.auto, "addresses": i.all_addresses(d.mac) })
            })
            .collect();
        let route = |r: &Route| {
            let device = self.network.device_of(r).map(|n| &self.network.interfaces[n].name);
            json!({ "destination": r.destination, "gateway": r.gateway, "interface": device, "metric": r.metric,
                    "mtu": r.metrics.mtu, "advmss": r.metrics.advmss, "initcwnd": r.metrics.initcwnd })
        };
        let routes: Vec<Value> = self.network.routes.iter().map(route).collect();
        Ok(json!({ "interfaces": interfaces, "routes": routes,
                  "learnt": self.in_force.shown(), "neighbours": self.network.neighbours, "gone": gone }))
    }

    /// Carries out a change as a whole, or not at all. Returns the routes that went with an address.
    fn change_network(&mut self, change: Change) -> Result<Vec<Route>> {
        let mut next = self.network.clone();
        let gone = next.apply(change).map_err(|e| Error::Invalid(e.to_string()))?;
        for (i, d) in next.interfaces.iter().zip(&self.config.devices) {
            let before = self.network.interfaces.iter().flat_map(|i| &i.addresses);
            for new in i.addresses.iter().filter(|a| before.clone().all(|b| b != *a)) {
                check_address(new, Some(d.mtu))?;
            }
        }
        self.put_in_force(self.beside_learnt(&next))?;
        self.store.publish(NETWORK, json!(next).to_string().into_bytes());
        self.keep_stored(NETWORK);
        self.network = next;
        Ok(gone)
    }
}
