//! Which decider a policy's name stands for, and the two that observe nothing.

use std::time::Duration;

use eft_component::scheduling::PolicyName;
use eft_cores::sample::Sample;

use super::decide::{Decider, Decision, Ground, Wanted};
use super::policy::Scheduled;

/// Makes the decider of the policy that is named, or says why that cannot be.
pub fn decider(ground: &Ground) -> Result<Box<dyn Decider>, String> {
    match ground.settings.policy {
        PolicyName::Fixed => Ok(Box::new(Fixed::new(ground))),
        PolicyName::Adaptive | PolicyName::Profile => Ok(Box::new(Scheduled::new(ground)?)),
    }
}

/// Leaves everybody where the topology, or an operator since, put them. If it was chosen while running, it first puts
/// back what another policy had changed.
struct Fixed {
    first: Option<Decision>,
}

impl Fixed {
    fn new(ground: &Ground) -> Fixed {
        let wanted = Wanted { places: ground.topology.clone(), ..Wanted::default() };
        let first = Decision {
            wanted: Some(wanted),
            reason: "policy fixed: everything as the topology says".into(),
            readings: serde_json::Value::Null,
        };
        Fixed { first: ground.chosen.then_some(first) }
    }
}

impl Decider for Fixed {
    fn period(&self) -> Option<Duration> {
        None
    }

    fn decide(&mut self, _sample: &Sample) -> Option<Decision> {
        self.first.take()
    }
}

/// Decides nothing: stands in where the policy that was asked for cannot be had.
pub struct Idle;

impl Decider for Idle {
    fn period(&self) -> Option<Duration> {
        None
    }

    fn decide(&mut self, _sample: &Sample) -> Option<Decision> {
        None
    }
}
