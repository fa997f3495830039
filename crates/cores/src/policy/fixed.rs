//! `fixed`: what the topology says, whatever is observed. The reference that the other policies are compared with.

use alloc::string::String;

use crate::placement;
use crate::plan::{Plan, check};
use crate::platform::Platform;
use crate::policy::{Decision, Settings};

#[derive(Clone, Debug)]
pub struct Fixed {
    plan: Plan,
}

impl Fixed {
    /// Components that the topology does not place share the base CPU.
    pub fn new(platform: &Platform, settings: &Settings) -> Result<Self, String> {
        let mut plan = settings.fixed.clone().unwrap_or_default();
        let base = platform.base();
        let seat = crate::plan::Seat { cpu: base, dedicated: false };
        for name in platform.components() {
            plan.seats.entry(name.clone()).or_insert(seat);
        }
        if settings.fixed.is_none() {
            placement::complete(platform, &mut plan, settings.spare);
        }
        check(&plan, platform.machine())?;
        Ok(Self { plan })
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn decide(&self) -> Decision {
        Decision { plan: self.plan.clone(), reason: None }
    }
}
