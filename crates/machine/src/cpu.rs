//! A machine's CPUs as the sensors read them, as plain data.
//!
//! Promises: a value that the machine does not provide is `None`, never a guess. The names in `--json`, which scripts
//! read, carry the units.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::CoreClass;
use crate::{CpuId, CpuSet, KiloHertz, Microseconds, Milliwatts, Nanoseconds, Share};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    pub model: Option<String>,
    pub online: CpuSet,
    pub offline: CpuSet,
    pub managed: CpuSet,
    pub parked: CpuSet,
    /// Whether this runs under a hypervisor, as the processor flags say.
    pub virtual_machine: bool,
    pub idle_driver: Option<String>,
    pub idle_governor: Option<String>,
    pub cpus: Vec<Cpu>,
}

impl Machine {
    /// Equal CPUs, all of them managed: for worlds that observe nothing, and for tests.
    pub fn of_equals(cpus: u32) -> Self {
        Self {
            online: (0..cpus).map(CpuId).collect(),
            managed: (0..cpus).map(CpuId).collect(),
            cpus: (0..cpus).map(CpuId).map(|cpu| Cpu { cpu, online: true, ..Cpu::default() }).collect(),
            ..Self::default()
        }
    }

    /// Whether every managed CPU has P-states of its own, so that no duty cycle is needed.
    pub fn has_frequencies(&self) -> bool {
        self.cpus.iter().filter(|cpu| self.managed.contains(cpu.cpu)).all(|cpu| cpu.frequency.is_some())
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cpu {
    pub cpu: CpuId,
    pub online: bool,
    pub parked: bool,
    pub managed: bool,
    pub isolated: bool,
    pub package: Option<u32>,
    pub die: Option<u32>,
    pub cluster: Option<u32>,
    pub core: Option<u32>,
    pub siblings: CpuSet,
    pub last_level_cache: Option<Cache>,
    pub numa_node: Option<u32>,
    pub class: CoreClass,
    /// What the class was decided from.
    pub class_from: Option<String>,
    pub capacity: Option<u32>,
    pub core_type: Option<String>,
    pub frequency: Option<Frequency>,
    pub p_states: Vec<PState>,
    pub throttle: Option<Throttle>,
    pub idle_states: Vec<IdleState>,
    pub interrupts_per_s: Option<f64>,
    pub load: Option<Share>,
    /// A speed that eft set: share of full speed, back end, phase.
    pub speed_set: Option<SpeedSet>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    pub level: u32,
    pub size_kib: Option<u64>,
    pub shared: CpuSet,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Frequency {
    #[serde(rename = "now_khz")]
    pub now: Option<KiloHertz>,
    #[serde(rename = "min_khz")]
    pub min: Option<KiloHertz>,
    #[serde(rename = "max_khz")]
    pub max: Option<KiloHertz>,
    #[serde(rename = "base_khz")]
    pub base: Option<KiloHertz>,
    #[serde(rename = "limit_min_khz")]
    pub limit_min: Option<KiloHertz>,
    #[serde(rename = "limit_max_khz")]
    pub limit_max: Option<KiloHertz>,
    #[serde(rename = "available_khz")]
    pub available: Vec<KiloHertz>,
    #[serde(rename = "transition_latency_ns")]
    pub transition_latency: Option<Nanoseconds>,
    pub boost: Option<bool>,
    pub governor: Option<String>,
    pub driver: Option<String>,
    /// CPUs that change their frequency together.
    pub domain: CpuSet,
}

/// One performance state. Power and latency are absent if cpufreq is the only source and lacks them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PState {
    #[serde(rename = "frequency_khz")]
    pub frequency: KiloHertz,
    #[serde(rename = "power_mw")]
    pub power: Option<Milliwatts>,
    #[serde(rename = "latency_us")]
    pub latency: Option<Microseconds>,
    pub source: PStateSource,
    /// The tables may give other states: they depend on hardware that could not be read.
    #[serde(default)]
    pub uncertain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PStateSource {
    Cpufreq,
    Acpi,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Throttle {
    pub core_events: u64,
    pub package_events: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdleState {
    pub name: String,
    pub description: Option<String>,
    #[serde(rename = "exit_latency_us")]
    pub exit_latency: Microseconds,
    #[serde(rename = "target_residency_us")]
    pub target_residency: Option<Microseconds>,
    pub disabled: bool,
    pub entered: u64,
    #[serde(rename = "time_us")]
    pub time: Microseconds,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeedSet {
    pub share: Share,
    pub back_end: String,
    pub phase: Option<String>,
}
