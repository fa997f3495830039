//! The steps of parking a set of CPUs, each declared critical or lazy (Bolt, sections 3.1 and 3.2), and the checks
//! before the first of them.
//!
//! Promises: a plan is refused as a whole, with one reason, or made as a whole. Critical steps are what the next
//! instruction on the machine relies on; all else waits, and is cancelled if the CPU comes back first.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use eft_base::time;

use eft_machine::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Urgency {
    /// Done before the call returns.
    Critical,
    /// Done in the background, cancelled if the CPU comes back first.
    Lazy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Bolt's bitmask updates: the cpuset or the affinities no longer name the CPU.
    UpdateMasks,
    /// Bolt's state migration: tasks that run or wait there move elsewhere; the kernel does it with the mask.
    MoveTasks,
    MoveComponents,
    SweepNewcomers,
    SweepKernelThreads,
    WorkqueueMask,
    MoveTimers,
    MoveInterrupts,
    Statistics,
    ReleaseMemory,
    Offline,
}

/// Every step of parking, in order.
pub const STEPS: [(Step, Urgency); 11] = [
    (Step::UpdateMasks, Urgency::Critical),
    (Step::MoveTasks, Urgency::Critical),
    (Step::MoveComponents, Urgency::Critical),
    (Step::SweepNewcomers, Urgency::Lazy),
    (Step::SweepKernelThreads, Urgency::Lazy),
    (Step::WorkqueueMask, Urgency::Lazy),
    (Step::MoveTimers, Urgency::Lazy),
    (Step::MoveInterrupts, Urgency::Lazy),
    (Step::Statistics, Urgency::Lazy),
    (Step::ReleaseMemory, Urgency::Lazy),
    (Step::Offline, Urgency::Lazy),
];

/// How soon each lazy step becomes due after the park.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delays {
    #[serde(rename = "sweep_ms", with = "time::millis")]
    pub sweep: Duration,
    #[serde(rename = "background_ms", with = "time::millis")]
    pub background: Duration,
    /// `None`: never taken offline for real.
    #[serde(rename = "offline_after_ms", default, with = "time::millis::option")]
    pub offline_after: Option<Duration>,
}

impl Default for Delays {
    fn default() -> Self {
        Self { sweep: Duration::from_millis(5), background: Duration::from_millis(50), offline_after: None }
    }
}

impl Delays {
    /// How long after the park a lazy step is due; `None` if never, or if the step is critical.
    pub fn due(&self, step: Step) -> Option<Duration> {
        let urgency = STEPS.iter().find(|(known, _)| *known == step).map(|(_, urgency)| *urgency);
        match (urgency, step) {
            (Some(Urgency::Critical) | None, _) => None,
            (_, Step::SweepNewcomers) => Some(self.sweep),
            // Only the kernel can release per-CPU memory, when the CPU goes offline.
            (_, Step::Offline | Step::ReleaseMemory) => self.offline_after,
            _ => Some(self.background),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParkBackEnd {
    /// An isolated partition of cgroup v2's cpuset.
    V2,
    /// A cpuset of cgroup v1 that every process was attached to.
    V1,
    /// Each thread's own mask.
    Affinity,
}

impl ParkBackEnd {
    pub const IN_ORDER: [Self; 3] = [Self::V2, Self::V1, Self::Affinity];

    pub fn name(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V1 => "v1",
            Self::Affinity => "affinity",
        }
    }
}

impl fmt::Display for ParkBackEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ParkBackEnd {
    type Err = UnknownBackEnd;

    fn from_str(text: &str) -> Result<Self, UnknownBackEnd> {
        Self::IN_ORDER
            .into_iter()
            .find(|back_end| back_end.name() == text)
            .ok_or_else(|| UnknownBackEnd(text.into()))
    }
}

/// A name that is none of [`ParkBackEnd::IN_ORDER`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is no parking back end (v2, v1 or affinity)")]
pub struct UnknownBackEnd(pub String);

/// Why CPUs cannot be parked, taken offline or slowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParkError {
    #[error("no CPU was named")]
    NoneNamed,
    #[error("CPU {cpu} does not exist (this machine has {present})")]
    NoSuchCpu { cpu: CpuId, present: CpuSet },
    #[error("CPU {cpus} is not managed ({}); list it with --managed", only(managed))]
    NotManaged { cpus: CpuSet, managed: CpuSet },
    #[error("CPU 0 is the base CPU: it keeps the interrupts, and can be neither parked nor taken offline")]
    BaseCpu,
    #[error("CPU {cpu} is offline, and not by eft; bring it online first")]
    OfflineByOthers { cpu: CpuId },
    #[error("CPU {cpus} is the last one that runs tasks; something must be left to run on")]
    LastOnes { cpus: CpuSet },
}

fn only(managed: &CpuSet) -> String {
    if managed.is_empty() { "none".into() } else { format!("only {managed}") }
}

/// What the checks need to know.
#[derive(Clone, Debug, Default)]
pub struct Situation {
    pub present: CpuSet,
    pub online: CpuSet,
    pub managed: CpuSet,
    pub parked: CpuSet,
    /// CPUs that eft itself took offline; all other offline CPUs were taken offline by others.
    pub offlined: CpuSet,
}

impl Situation {
    /// The CPUs on which tasks may run.
    pub fn usable(&self) -> CpuSet {
        self.online.minus(&self.parked)
    }

    pub fn check_exists(&self, cpus: &CpuSet) -> Result<(), ParkError> {
        if cpus.is_empty() {
            return Err(ParkError::NoneNamed);
        }
        match cpus.minus(&self.present).first() {
            Some(cpu) => Err(ParkError::NoSuchCpu { cpu, present: self.present.clone() }),
            None => Ok(()),
        }
    }

    pub fn check_managed(&self, cpus: &CpuSet) -> Result<(), ParkError> {
        self.check_exists(cpus)?;
        let foreign = cpus.minus(&self.managed);
        if foreign.is_empty() {
            return Ok(());
        }
        Err(ParkError::NotManaged { cpus: foreign, managed: self.managed.clone() })
    }

    /// Checks whether these may be parked or taken offline.
    pub fn check_leave(&self, cpus: &CpuSet) -> Result<(), ParkError> {
        self.check_exists(cpus)?;
        if cpus.contains(CpuId(0)) {
            return Err(ParkError::BaseCpu);
        }
        self.check_managed(cpus)?;
        if let Some(cpu) = cpus.minus(&self.online).minus(&self.offlined).first() {
            return Err(ParkError::OfflineByOthers { cpu });
        }
        if self.usable().minus(cpus).is_empty() {
            return Err(ParkError::LastOnes { cpus: cpus.clone() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
