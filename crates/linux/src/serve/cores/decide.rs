//! What decides: a policy behind one trait, so that the loop neither knows nor cares which.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use eft_component::scheduling::Scheduling;
use eft_cores::plan::{Plan, SPEED_EQUAL, Seat};
use eft_cores::sample::Sample;
use eft_machine::CpuSet;
use serde::{Deserialize, Serialize};

use crate::protocol::{MemberView, Place};

/// What shall be, absolutely: safe to apply again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// By the component's role, as in samples: `tcp`, `nic0`.
    pub places: BTreeMap<String, Place>,
    /// Shares of full speed; a managed CPU that is not named runs at full speed.
    pub speeds: BTreeMap<u32, f64>,
    pub parked: BTreeSet<u32>,
}

impl From<&Plan> for Wanted {
    fn from(plan: &Plan) -> Wanted {
        let place = |seat: &Seat| Place { cpu: Some(seat.cpu), dedicated: seat.dedicated };
        Wanted {
            places: plan.seats.iter().map(|(name, seat)| (name.clone(), place(seat))).collect(),
            speeds: plan
                .speeds
                .iter()
                .filter(|(_, s)| **s < 1.0 - SPEED_EQUAL)
                .map(|(c, s)| (*c, *s))
                .collect(),
            parked: plan.parked.iter().collect(),
        }
    }
}

/// A decision and what led to it.
#[derive(Clone, Debug)]
pub struct Decision {
    /// `None`: the plan stays, and why is worth noting.
    pub wanted: Option<Wanted>,
    pub reason: String,
    /// The readings that caused it.
    pub readings: serde_json::Value,
}

/// A policy at work.
pub trait Decider {
    /// How often it wants to look while there is traffic; `None`: it needs no samples.
    fn period(&self) -> Option<Duration>;

    /// Called with each sample, and once at the beginning. `None`: nothing changes.
    fn decide(&mut self, sample: &Sample) -> Option<Decision>;

    /// The process ends in good order, or another policy takes over.
    fn end(&mut self) {}

    /// Whether seldom looks will do until something happens that a glance shows.
    fn is_settled(&self) -> bool {
        false
    }

    /// What there is to say of its state, for `eft sched`.
    fn describe(&self) -> serde_json::Value {
        serde_json::Value::Null
    }
}

/// What a decider may know before it begins.
pub struct Ground<'a> {
    pub settings: &'a Scheduling,
    pub members: &'a [MemberView],
    /// What the topology said.
    pub topology: &'a BTreeMap<String, Place>,
    pub managed: &'a CpuSet,
    /// What is in force.
    pub applied: &'a Wanted,
    /// The operator chose this policy just now; otherwise the process is new and takes up where it was.
    pub chosen: bool,
}
