//! What interfaces have learnt by themselves: ip tells it, a successor of ip or of this supervisor gets it, and it is in force
//! beside what an operator configures.

use super::Supervisor;
use super::kept::AUTOCONF;
use super::say::say;
use super::setup::{InForce, of_network, silence};
use crate::devices::packet::Silencer;
use crate::protocol::ToServer;
use crate::{Error, Result};
use eft_autoconf::known;
use eft_control::network::Network;
use eft_messages::ComponentId;

impl Supervisor {
    /// The stack ends on purpose: ip gives back what servers have lent.
    pub(super) fn release_leases(&mut self) {
        if self.in_force.known.values().all(|known| known.lease4.is_none() && known.lease6.is_none()) {
            return;
        }
        self.tell(ComponentId::IP, &ToServer::Configure { key: "release".into(), value: Vec::new() }, &[]);
    }

    /// ip has learnt something, or what it knew has ended.
    pub(super) fn heard_of_autoconf(&mut self, text: Vec<u8>) {
        let next = InForce::of(&self.config, &self.network, known::parse(&text));
        if self.store.publish(AUTOCONF, text).is_none() {
            return;
        }
        self.keep_stored(AUTOCONF);
        if let Err(why) = self.put_in_force(next) {
            say!("eft {}: what an interface has learnt cannot be used: {why}", self.config.name);
        }
    }

    /// As a configuration would be with what is learnt.
    pub(super) fn beside_learnt(&self, network: &Network) -> InForce {
        InForce::of(&self.config, network, self.in_force.known.clone())
    }

    /// Tells servers, programs and the kernel of addresses and routes. If it fails, nothing is changed.
    pub(super) fn put_in_force(&mut self, next: InForce) -> Result<()> {
        let told = of_network(&self.config, &next);
        let (_, ip) = &told[0];
        (self.config.check_ip)(&String::from_utf8_lossy(ip)).map_err(Error::Invalid)?;
        if next.network.interfaces != self.in_force.network.interfaces {
            // The kernel is kept from answering for a new address before the stack answers.
            let silencers = silence(&self.config, &next.network)?;
            std::mem::replace(&mut self.silencers, silencers).into_iter().for_each(Silencer::leave);
        }
        for (key, value) in told {
            if self.store.get(key).is_some_and(|(_, old)| old == value) {
                continue;
            }
            for peer in self.store.publish(key, value.clone()).unwrap_or_default() {
                self.tell(peer, &ToServer::Configure { key: key.into(), value: value.clone() }, &[]);
            }
        }
        self.in_force = next;
        Ok(())
    }
}
