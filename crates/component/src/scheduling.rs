//! The `[scheduling]` table of a topology: which policy decides where components run, to what end, with which CPUs.

use alloc::string::String;
use eft_machine::{CpuSet, Latency, Share};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How the `cores` component decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scheduling {
    pub policy: PolicyName,
    pub objective: Objective,
    /// Share of the best throughput below which `least-power` must not fall.
    pub floor: Share,
    /// CPUs that may be slowed and parked, as the kernel writes lists (`1-3,6`). None by default.
    pub managed: CpuSet,
    pub unneeded: Spare,
    /// How often it samples while there is traffic.
    pub period_ms: u64,
    /// The file of recorded profiles.
    pub profiles: Option<String>,
    /// For `profile`, under loads of requests: configurations known to take longer are not chosen while
    /// there is a quicker one.
    #[serde(rename = "latency_us_max")]
    pub latency_max: Option<Latency>,
    /// Slow cores down by a real-time thread that takes a part of their time, where the hardware offers nothing else:
    /// for experiments, since it saves no power.
    pub emulate_speeds: bool,
}

impl Default for Scheduling {
    fn default() -> Self {
        Scheduling {
            policy: PolicyName::Fixed,
            objective: Objective::Throughput,
            floor: Share(0.95),
            managed: CpuSet::new(),
            unneeded: Spare::GiveBack,
            period_ms: 10,
            profiles: None,
            latency_max: None,
            emulate_speeds: false,
        }
    }
}

/// A policy by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyName {
    /// What the topology says.
    Fixed,
    /// Up and down a ladder of configurations.
    Adaptive,
    /// The nearest recorded profile.
    Profile,
}

impl PolicyName {
    pub fn name(self) -> &'static str {
        match self {
            PolicyName::Fixed => "fixed",
            PolicyName::Adaptive => "adaptive",
            PolicyName::Profile => "profile",
        }
    }
}

impl core::fmt::Display for PolicyName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

/// What a policy aims at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    #[default]
    Throughput,
    /// With throughput at or above the floor.
    LeastPower,
    ThroughputPerWatt,
}

/// What becomes of managed CPUs that the stack does not need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spare {
    /// Applications may use them.
    #[default]
    GiveBack,
    /// Nothing may use them.
    Park,
}

/// Why a table `[scheduling]` is refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SchedulingError {
    #[error("scheduling.floor is {0}: it is a share of the best throughput, above 0 and at most 1")]
    Floor(Share),
    #[error("scheduling.period_ms is {0}: it must be from 1 to 10000")]
    Period(u64),
    #[error("scheduling.latency_us_max is {}: it must be above 0", .0.0)]
    Latency(Latency),
    #[error("scheduling.policy `{0}` needs CPUs to place components on: scheduling.managed names none")]
    NoManagedCpus(PolicyName),
    #[error("scheduling.policy is `profile` but scheduling.profiles names no file")]
    NoProfiles,
}

impl Scheduling {
    /// Checks what the types do not say.
    pub fn check(&self) -> Result<(), SchedulingError> {
        if !self.floor.is_valid() || self.floor == Share::NONE {
            return Err(SchedulingError::Floor(self.floor));
        }
        if !(1..=10_000).contains(&self.period_ms) {
            return Err(SchedulingError::Period(self.period_ms));
        }
        if let Some(limit) = self.latency_max.filter(|limit| !limit.is_valid()) {
            return Err(SchedulingError::Latency(limit));
        }
        if self.policy != PolicyName::Fixed && self.managed.is_empty() {
            return Err(SchedulingError::NoManagedCpus(self.policy));
        }
        if self.policy == PolicyName::Profile && self.profiles.is_none() {
            return Err(SchedulingError::NoProfiles);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
