//! The modelled machine: capacities of its cores, what they share, and their power.
//!
//! It judges the scheduler, so it shares no arithmetic with it. The scheduler's own estimate of power makes other
//! assumptions: leakage, voltage at each clock, power of idle states and the package's sleep are this machine's own
//! figures, and a policy has to learn them from its power meter.

use std::collections::{BTreeMap, BTreeSet};

use eft_cores::plan::Plan;
use eft_machine::{CoreClass, Cpu, CpuId, CpuSet, Machine};

/// The busy share of the time of each CPU that is used.
pub type Activity = BTreeMap<CpuId, f64>;

/// The largest core at full speed, always busy, W.
const CORE_W: f64 = 9.0;
/// Leakage's part of it.
const LEAKS: f64 = 0.25;
/// Voltage at no and at full clock, relative to the latter: linear between.
const VOLTAGE: (f64, f64) = (0.55, 1.0);
/// Power of a core between two messages, relative to `CORE_W`; an unused core sleeps as deeply as it can.
const LIGHT_IDLE: f64 = 0.2;
const DEEP_IDLE: f64 = 0.03;
/// A core of half the capacity takes about a quarter of the power (Cortex-A7 beside A15).
const SIZE_EXPONENT: f64 = 1.9;
/// Caches, memory controller, interconnect of a package: while any of its cores is in use, and while none is, W. The
/// pauses of a load are too short for a package to sleep in.
const UNCORE_W: f64 = 7.0;
const UNCORE_ASLEEP_W: f64 = 1.5;
/// A core that is busy for less than this share of the time counts as unused.
const USED_MIN: f64 = 0.005;
/// A little core, where the machine gives no figures.
const LITTLE: f64 = 0.5;

pub struct Hardware {
    machine: Machine,
    /// Speeds are P-states; otherwise the clock is stopped for a part of the time.
    by_frequency: bool,
}

impl Hardware {
    pub fn new(machine: Machine, by_frequency: bool) -> Self {
        Self { machine, by_frequency }
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    pub fn by_frequency(&self) -> bool {
        self.by_frequency
    }

    fn cpu(&self, cpu: CpuId) -> Option<&Cpu> {
        self.machine.cpus.iter().find(|known| known.cpu == cpu)
    }

    pub fn package(&self, cpu: CpuId) -> u32 {
        self.cpu(cpu).and_then(|cpu| cpu.package).unwrap_or(0)
    }

    /// Hardware threads of the same core, itself included.
    pub fn siblings(&self, cpu: CpuId) -> CpuSet {
        self.cpu(cpu).map(|known| known.siblings.union(&CpuSet::one(cpu))).unwrap_or_default()
    }

    /// Work done per time at full speed, relative to the largest core here.
    pub fn capacity(&self, cpu: CpuId) -> f64 {
        let largest = self.machine.cpus.iter().filter_map(|cpu| cpu.capacity).max();
        let known = self.cpu(cpu);
        match (known.and_then(|cpu| cpu.capacity), largest) {
            (Some(capacity), Some(largest)) => f64::from(capacity) / f64::from(largest),
            _ if known.is_some_and(|cpu| cpu.class == CoreClass::Little) => LITTLE,
            _ => 1.0,
        }
    }

    /// A CPU's capacity under a plan while it has its core to itself.
    pub fn effective(&self, cpu: CpuId, plan: &Plan) -> f64 {
        self.capacity(cpu) * plan.speed(cpu)
    }

    /// Power of the packages that have managed CPUs, W.
    pub fn power_w(&self, plan: &Plan, activity: &Activity) -> f64 {
        let packages: BTreeSet<u32> = self.machine.managed.iter().map(|cpu| self.package(cpu)).collect();
        let uncore = |package: &u32| {
            let used = |(cpu, share): (&CpuId, &f64)| self.package(*cpu) == *package && *share >= USED_MIN;
            if activity.iter().any(used) { UNCORE_W } else { UNCORE_ASLEEP_W }
        };
        let core =
            |cpu: CpuId| self.core_w(cpu, plan.speed(cpu).0, activity.get(&cpu).copied().unwrap_or(0.0));
        packages.iter().map(uncore).sum::<f64>() + self.machine.managed.iter().map(core).sum::<f64>()
    }

    fn core_w(&self, cpu: CpuId, speed: f64, busy: f64) -> f64 {
        let full_w = CORE_W * self.capacity(cpu).powf(SIZE_EXPONENT);
        let busy = busy.clamp(0.0, 1.0);
        if busy < USED_MIN {
            return DEEP_IDLE * full_w;
        }
        // Under a duty cycle a core that is busy computes for a part of that time, and leaks all of it.
        let (clock, computes) = if self.by_frequency { (speed, 1.0) } else { (1.0, speed) };
        let voltage = VOLTAGE.0 + (VOLTAGE.1 - VOLTAGE.0) * clock;
        let leaks_w = LEAKS * full_w * voltage;
        let computes_w = (1.0 - LEAKS) * full_w * voltage * voltage * clock * computes;
        busy * (leaks_w + computes_w) + (1.0 - busy) * LIGHT_IDLE * full_w
    }
}

#[cfg(test)]
mod tests;
