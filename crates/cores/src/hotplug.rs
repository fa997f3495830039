//! Where the time of a reconfiguration goes: the kernel's steps, grouped as in the figures of the paper (Bolt,
//! figures 1 and 2).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use eft_base::{Instant, time};

use eft_machine::CpuId;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepGroup {
    GracePeriods,
    StopMachine,
    ThreadParking,
    PerCpuAllocation,
    SysfsNodes,
    HardwareStart,
    Interrupts,
    Other,
}

impl StepGroup {
    pub const ALL: [Self; 8] = [
        Self::GracePeriods,
        Self::StopMachine,
        Self::ThreadParking,
        Self::PerCpuAllocation,
        Self::SysfsNodes,
        Self::HardwareStart,
        Self::Interrupts,
        Self::Other,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::GracePeriods => "grace periods",
            Self::StopMachine => "stop-machine",
            Self::ThreadParking => "thread parking",
            Self::PerCpuAllocation => "per-CPU allocation",
            Self::SysfsNodes => "sysfs nodes",
            Self::HardwareStart => "hardware start",
            Self::Interrupts => "interrupts",
            Self::Other => "other",
        }
    }
}

/// What a step of the kernel's hotplug state machine mostly does, by the name of its function
/// (`kernel/cpu.c`, `cpuhp_hp_states`, and the dynamic states of subsystems).
const KNOWN: [(&str, StepGroup); 38] = [
    ("sched_cpu_deactivate", StepGroup::GracePeriods),
    ("sched_cpu_activate", StepGroup::GracePeriods),
    ("rcutree", StepGroup::GracePeriods),
    ("synchronize", StepGroup::GracePeriods),
    ("takedown_cpu", StepGroup::StopMachine),
    ("sched_cpu_wait_empty", StepGroup::StopMachine),
    ("sched_cpu_dying", StepGroup::StopMachine),
    ("_dying", StepGroup::StopMachine),
    ("smpboot_park", StepGroup::ThreadParking),
    ("smpboot_unpark", StepGroup::ThreadParking),
    ("smpboot_create", StepGroup::ThreadParking),
    ("kthread", StepGroup::ThreadParking),
    ("workqueue", StepGroup::ThreadParking),
    ("slub", StepGroup::PerCpuAllocation),
    ("slab", StepGroup::PerCpuAllocation),
    ("page_alloc", StepGroup::PerCpuAllocation),
    ("memcg", StepGroup::PerCpuAllocation),
    ("zs_cpu", StepGroup::PerCpuAllocation),
    ("zswap", StepGroup::PerCpuAllocation),
    ("zcomp", StepGroup::PerCpuAllocation),
    ("perf_event", StepGroup::PerCpuAllocation),
    ("vmstat", StepGroup::PerCpuAllocation),
    ("percpu_counter", StepGroup::PerCpuAllocation),
    ("buffer", StepGroup::PerCpuAllocation),
    ("bio_cpu", StepGroup::PerCpuAllocation),
    ("trace_rb", StepGroup::PerCpuAllocation),
    ("hrtimers_prepare", StepGroup::PerCpuAllocation),
    ("timers_prepare", StepGroup::PerCpuAllocation),
    ("cacheinfo", StepGroup::SysfsNodes),
    ("topology", StepGroup::SysfsNodes),
    ("sysfs", StepGroup::SysfsNodes),
    ("cpuid_device", StepGroup::SysfsNodes),
    ("msr_device", StepGroup::SysfsNodes),
    ("mce_cpu", StepGroup::SysfsNodes),
    ("bringup", StepGroup::HardwareStart),
    ("cpuhp_kick", StepGroup::HardwareStart),
    ("irq", StepGroup::Interrupts),
    ("blk_mq", StepGroup::Interrupts),
];

pub fn group(function: &str) -> StepGroup {
    KNOWN.iter().find(|(part, _)| function.contains(part)).map_or(StepGroup::Other, |(_, group)| *group)
}

/// One event of the state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepEvent {
    pub at: Instant,
    pub cpu: CpuId,
    pub step: u32,
    /// Present when the step is entered.
    pub function: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimedStep {
    pub cpu: CpuId,
    pub step: u32,
    pub function: String,
    pub group: StepGroup,
    /// Since the beginning of the operation.
    #[serde(rename = "begin_us", with = "time::micros")]
    pub begin: Duration,
    /// The step's own time, without that of the steps inside it.
    #[serde(rename = "duration_us", with = "time::micros")]
    pub duration: Duration,
    #[serde(rename = "whole_us", with = "time::micros")]
    pub whole: Duration,
}

/// Pairs entries with exits. Steps that other steps run inside themselves (`takedown_cpu` waits for the dying ones)
/// are not counted twice: a step's time is its own.
pub fn pair(events: &[StepEvent], begin: Instant) -> Vec<TimedStep> {
    let mut open: Vec<(usize, &StepEvent)> = Vec::new();
    let mut steps: Vec<TimedStep> = Vec::new();
    let mut inner: Vec<Duration> = Vec::new();
    for event in events {
        if let Some(function) = &event.function {
            open.push((steps.len(), event));
            steps.push(TimedStep {
                cpu: event.cpu,
                step: event.step,
                function: function.to_string(),
                group: group(function),
                begin: event.at.saturating_since(begin),
                duration: Duration::ZERO,
                whole: Duration::ZERO,
            });
            inner.push(Duration::ZERO);
            continue;
        }
        // An exit without an entry, whose step was not traced, is skipped.
        let Some(at) = open.iter().rposition(|(_, entry)| entry.cpu == event.cpu && entry.step == event.step)
        else {
            continue;
        };
        let (index, entry) = open.remove(at);
        let whole = event.at.saturating_since(entry.at);
        steps[index].whole = whole;
        steps[index].duration = whole.saturating_sub(inner[index]);
        if let Some((outer, _)) = open.last() {
            inner[*outer] += whole;
        }
    }
    steps
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupTime {
    pub group: StepGroup,
    pub steps: usize,
    #[serde(rename = "duration_us", with = "time::micros")]
    pub duration: Duration,
}

/// Time by group. The time between the steps (waking the threads that run them) is not in it.
pub fn by_group(steps: &[TimedStep]) -> Vec<GroupTime> {
    let of = |group: StepGroup| {
        let members = steps.iter().filter(|step| step.group == group);
        GroupTime { group, steps: members.clone().count(), duration: members.map(|step| step.duration).sum() }
    };
    StepGroup::ALL.into_iter().map(of).filter(|time| time.steps > 0).collect()
}

#[cfg(test)]
mod tests;
