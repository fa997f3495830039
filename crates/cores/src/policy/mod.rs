//! Policies: plain functions from observations to plans, by name, with their state in a struct. `fixed` is not among
//! them: it observes nothing, and the engine leaves every component where the topology puts it.
//!
//! Promises of every policy: no clock, no I/O, no panic on any observation; its plans name only CPUs of the platform
//! that it was given. Unsound [observations](Observation::is_sound) never reach a policy: [`crate::scheduler`] then
//! keeps the last good plan.

use alloc::boxed::Box;
use alloc::string::String;

use eft_base::Instant;
use eft_component::scheduling::{PolicyName, Spare};
use eft_machine::Latency;

use crate::error::SchedulerError;
use crate::observation::Observation;
use crate::plan::Plan;
use crate::platform::Platform;
use crate::power::PowerModel;
use crate::profile::Profiles;

pub mod adaptive;
pub mod cost;
pub mod flapping;
pub mod follows;
pub mod known;
pub mod measure;
pub mod memory;
pub mod neighbours;
pub mod profile;
pub mod roles;
pub mod sharing;

pub use crate::goal::Goal;
pub use adaptive::Adaptive;
pub use profile::Profile;

/// The settings of every policy.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub goal: Goal,
    pub spare: Spare,
    pub power: PowerModel,
    /// For `profile`.
    pub profiles: Profiles,
    /// For `profile`: of loads that carry requests, the longest that an answer may take, as far as sweeps measured it.
    pub latency_max: Option<Latency>,
}

/// A plan, and why. `reason` is set when something was decided: changed, tried, taken back or refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    pub plan: Plan,
    pub reason: Option<String>,
}

#[derive(Clone, Debug)]
pub enum Policy {
    Adaptive(Box<Adaptive>),
    Profile(Box<Profile>),
}

impl Policy {
    pub fn by_name(
        name: PolicyName,
        platform: &Platform,
        settings: &Settings,
    ) -> Result<Self, SchedulerError> {
        match name {
            PolicyName::Adaptive => Ok(Self::Adaptive(Box::new(Adaptive::new(platform, settings)))),
            PolicyName::Profile => Ok(Self::Profile(Box::new(Profile::new(platform, settings)?))),
            PolicyName::Fixed => Err(SchedulerError::FixedDecidesNothing),
        }
    }

    pub fn name(&self) -> PolicyName {
        match self {
            Self::Adaptive(_) => PolicyName::Adaptive,
            Self::Profile(_) => PolicyName::Profile,
        }
    }

    pub fn decide(&mut self, time: Instant, seen: &Observation) -> Decision {
        match self {
            Self::Adaptive(policy) => policy.decide(time, seen),
            Self::Profile(policy) => policy.decide(time, seen),
        }
    }

    /// Goes on from the plan that a predecessor applied. It must pass the check of the machine.
    pub fn resume(&mut self, plan: Plan, time: Instant) {
        match self {
            Self::Adaptive(policy) => policy.resume(plan, time),
            Self::Profile(policy) => policy.resume(plan, time),
        }
    }

    /// Whether its plans depend on where the applications are.
    pub fn heeds_applications(&self) -> bool {
        matches!(self, Self::Adaptive(_))
    }

    /// Whether it keeps its plan as long as the load stays the same: then a few samples suffice.
    pub fn is_settled(&self) -> bool {
        match self {
            Self::Adaptive(policy) => policy.is_settled(),
            Self::Profile(policy) => policy.is_settled(),
        }
    }

    /// The plan that it begins with.
    pub fn plan(&self) -> &Plan {
        match self {
            Self::Adaptive(policy) => policy.plan(),
            Self::Profile(policy) => policy.plan(),
        }
    }
}
