//! The supervisor's side of `cores`: its settings at birth, operators' requests to it, and what is undone for it.
//!
//! The stack does not depend on `cores`: if it is dead, or was given up, all components run on where they are.

use super::Supervisor;
use super::member::Life;
use super::request::Scheduling as Question;
use super::say::say;
use crate::Result;
use crate::error::error;
use crate::protocol::ToServer;
use eft_component::scheduling::{PolicyName, Scheduling};
use eft_control::store::Store;
use eft_cores::member::Place;
use eft_cores::wanted::{CpuChange, Wanted};
use eft_host::actuators::change::Actuator;
use eft_messages::ComponentId;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Keys of the store.
pub const SETTINGS: &str = "scheduling";
const TOPOLOGY: &str = "topology.places";
pub const APPLIED: &str = "cores.applied";

/// Publishes what the topology says, for a newborn `cores`.
pub fn fill_store(store: &mut Store, topology: &eft_component::Topology, members: &[super::member::Member]) {
    let settings = topology.scheduling.clone().unwrap_or_default();
    let place =
        |m: &super::member::Member| (m.peer.to_string(), Place { cpu: m.cpu, dedicated: m.dedicated });
    let places: BTreeMap<String, Place> =
        members.iter().filter(|m| m.peer != ComponentId::CORES).map(place).collect();
    for (key, value) in [(SETTINGS, serde_json::to_vec(&settings)), (TOPOLOGY, serde_json::to_vec(&places))] {
        store.subscribe(key, ComponentId::CORES);
        store.publish(key, value.unwrap_or_default());
    }
    store.subscribe(APPLIED, ComponentId::CORES);
}

impl Supervisor {
    /// `eft sched …`: forwards the request to `cores`, whose answer comes later.
    pub(super) fn operator_schedules(
        &mut self,
        client: u64,
        what: Question,
        mut rest: Map<String, Value>,
    ) -> Result<()> {
        let Some(i) = self.index(ComponentId::CORES) else {
            return Err(error!(
                Missing,
                "stack `{}` has no cores component: add [[component]] name = \"cores\" to its topology",
                self.config.name
            ));
        };
        if self.members[i].life != Life::Running {
            return Err(error!(
                Busy,
                "cores is not running at the moment; the stack runs on under the last plan"
            ));
        }
        if what.name() == "policy"
            && rest.get("policy").is_some_and(|policy| policy != "fixed")
            && self.members.iter().any(|m| m.process.is_some())
        {
            return Err(error!(
                Refused,
                "only `fixed` is possible: others place every component for itself, and some of this stack's share a process"
            ));
        }
        let key = format!("cores.ask:{}:{client}", what.name());
        rest.insert("what".into(), what.name().into());
        let value = Value::Object(rest).to_string().into_bytes();
        let question = ToServer::Configure { key: key.clone(), value };
        self.tell_index(i, &question, &[]);
        self.waiting.push((key, client));
        Ok(())
    }

    /// The policy that is in force.
    pub(super) fn policy(&self) -> PolicyName {
        let stored = self.store.get(SETTINGS).filter(|_| self.index(ComponentId::CORES).is_some());
        let stored = stored.and_then(|(_, value)| serde_json::from_slice::<Scheduling>(value).ok());
        stored.map_or(PolicyName::Fixed, |settings| settings.policy)
    }

    /// `cores` has answered an operator. A policy that it accepted is kept for its successors.
    pub(super) fn cores_answered(&mut self, key: &str, value: &[u8]) {
        let answer: Value =
            serde_json::from_slice(value).unwrap_or_else(|_| json!({ "error": "cores answered nonsense" }));
        if key.starts_with("cores.ask:policy:") && answer.get("error").is_none() {
            self.store.publish(SETTINGS, answer["scheduling"].to_string().into_bytes());
            self.keep_stored(SETTINGS);
        }
        let Some((_, client)) = self.waiting.iter().find(|(k, _)| k == key).cloned() else { return };
        self.answer_client(client, &answer, &[]);
    }

    /// Keeps what is in force now, for its successor.
    pub(super) fn cores_applied(&mut self, value: Vec<u8>) {
        self.store.publish(APPLIED, value);
        self.keep_stored(APPLIED);
    }

    /// `cores` died: operators that wait for it get an answer.
    pub(super) fn cores_ended(&mut self) {
        let asked = |(key, client): &(String, u64)| key.starts_with("cores.ask:").then_some(*client);
        let clients: Vec<u64> = self.waiting.iter().filter_map(asked).collect();
        let answer =
            json!({ "error": "cores died over this question; the stack runs on under the last plan" });
        clients.into_iter().for_each(|c| self.answer_client(c, &answer, &[]));
    }

    /// At the end of the stack: undoes the changes to the host that a dead `cores` has left.
    pub(super) fn undo_for_cores(&mut self) {
        let Some((_, value)) = self.store.get(APPLIED) else { return };
        let applied: Wanted = serde_json::from_slice(value).unwrap_or_default();
        if !applied.touches_cpus() {
            return;
        }
        let undo = CpuChange::between(&applied, &applied.without_changes());
        let managed = self.config.topology.scheduling.as_ref().map(|s| s.managed.clone()).unwrap_or_default();
        if let Err(why) = Actuator::new(&managed).and_then(|a| a.change(&undo)) {
            say!("eft {}: not everything could be undone: {why}; try `eft cpu restore`", self.config.name);
        }
    }
}
