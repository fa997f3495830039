//! Addresses and routes of the running stack: an operator changes them, servers and programs are told, and a successor
//! of this supervisor gets them.

use super::Supervisor;
use super::kept::NETWORK;
use super::setup::{check_address, of_network, silence};
use crate::devices::packet::Silencer;
use crate::protocol::ToServer;
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
            .zip(&self.network.interfaces)
            .map(|(d, i)| {
                json!({ "interface": i.name, "device": d.text, "mac": d.mac.to_string(), "mtu": d.mtu,
                        "addresses": i.all_addresses(d.mac) })
            })
            .collect();
        let route = |r: &Route| {
            let device = self.network.device_of(r).map(|n| &self.network.interfaces[n].name);
            json!({ "destination": r.destination, "gateway": r.gateway, "interface": device, "metric": r.metric })
        };
        let routes: Vec<Value> = self.network.routes.iter().map(route).collect();
        Ok(json!({ "interfaces": interfaces, "routes": routes,
                  "neighbours": self.network.neighbours, "gone": gone }))
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
        let told = of_network(&self.config, &next);
        let (_, ip) = &told[0];
        (self.config.check_ip)(&String::from_utf8_lossy(ip)).map_err(Error::Invalid)?;
        // The kernel is kept from answering for a new address before the stack answers.
        let silencers = silence(&self.config, &next)?;
        std::mem::replace(&mut self.silencers, silencers).into_iter().for_each(Silencer::leave);
        for (key, value) in told {
            if self.store.get(key).is_some_and(|(_, old)| old == value) {
                continue;
            }
            for peer in self.store.publish(key, value.clone()).unwrap_or_default() {
                self.tell(peer, &ToServer::Configure { key: key.into(), value: value.clone() }, &[]);
            }
        }
        self.store.publish(NETWORK, json!(next).to_string().into_bytes());
        self.keep_stored(NETWORK);
        self.network = next;
        Ok(gone)
    }
}
