//! Instructions, cycles and cache misses by perf events, per thread or per CPU.
//!
//! Promises: on hybrids one event set per core type, since a set counts only on its own cores; without a PMU an error
//! that says so. A count is scaled by the time that the kernel gave the counter, as `perf stat` does, and
//! `running_share` says how much that was.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

use eft_machine::{CpuId, CpuSet, Share};
use serde::Serialize;

pub use super::perf_event::Target;
use super::perf_event::{self, CACHE_MISSES, CACHE_REFERENCES, CYCLES, INSTRUCTIONS};
use super::{Tree, topology};

use crate::error::{Error, error};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counts {
    /// The PMU's name; `cpu` where all cores are of one type.
    pub core_type: String,
    pub cpu: Option<CpuId>,
    pub instructions: u64,
    pub cycles: u64,
    pub cache_misses: u64,
    pub cache_references: u64,
    /// Of the time in which it was enabled.
    pub running_share: Share,
}

impl Counts {
    pub fn instructions_per_cycle(&self) -> Option<f64> {
        (self.cycles > 0).then(|| self.instructions as f64 / self.cycles as f64)
    }
}

/// Open counters; they count from creation.
pub struct Counters {
    sets: Vec<EventSet>,
}

struct EventSet {
    core_type: String,
    cpu: Option<CpuId>,
    leader: File,
    _members: Vec<File>,
}

/// Instructions, cycles, cache misses, cache references, in the order in which they are read back.
const EVENTS: [u64; 4] = [INSTRUCTIONS, CYCLES, CACHE_MISSES, CACHE_REFERENCES];

impl Counters {
    pub fn open(tree: &Tree, target: Target) -> Result<Self, Error> {
        let types = core_types(tree, target);
        let open = |(name, pmu): &(String, Option<u32>)| EventSet::open(name, *pmu, target);
        let sets: io::Result<Vec<EventSet>> = types.iter().map(open).collect();
        sets.map(|sets| Self { sets }).map_err(|error| refusal(target, &error))
    }

    pub fn read(&mut self) -> Result<Vec<Counts>, Error> {
        self.sets
            .iter_mut()
            .map(|set| {
                set.read().map_err(|error| error!(System, "performance counters cannot be read ({error})"))
            })
            .collect()
    }
}

/// Which PMUs count on the target: a thread may run on cores of any type, a CPU is of one.
pub fn core_types(tree: &Tree, target: Target) -> Vec<(String, Option<u32>)> {
    let counts_there = |cpus: &CpuSet| match target {
        Target::Thread(_) => true,
        Target::Cpu(cpu) => cpus.contains(cpu),
    };
    let number = |name: &str| tree.number::<u32>(&format!("sys/bus/event_source/devices/{name}/type"));
    let hybrid = topology::core_types(tree)
        .into_iter()
        .filter(|(name, cpus)| name.starts_with("cpu_") && counts_there(cpus));
    let types: Vec<_> = hybrid.filter_map(|(name, _)| Some((name.clone(), Some(number(&name)?)))).collect();
    if types.is_empty() { vec![("cpu".into(), None)] } else { types }
}

fn refusal(target: Target, error: &io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            error!(Missing, "not available: this machine has no performance counters (PMU)")
        }
        Some(libc::EACCES | libc::EPERM) => {
            error!(
                Denied,
                "not available: performance counters need root, or a lower kernel.perf_event_paranoid"
            )
        }
        Some(libc::ESRCH) => error!(Gone, "not available: {target:?} does not exist"),
        _ => error!(System, "not available: the kernel refuses performance counters ({error})"),
    }
}

impl EventSet {
    fn open(core_type: &str, pmu: Option<u32>, target: Target) -> io::Result<Self> {
        let leader = perf_event::open(EVENTS[0], pmu, target, None, false)?;
        let group = Some(leader.as_raw_fd());
        let members: io::Result<Vec<File>> =
            EVENTS[1..].iter().map(|event| perf_event::open(*event, pmu, target, group, false)).collect();
        let cpu = if let Target::Cpu(cpu) = target { Some(cpu) } else { None };
        Ok(Self { core_type: core_type.into(), cpu, leader, _members: members? })
    }

    fn read(&mut self) -> io::Result<Counts> {
        // Number of events, time enabled, time running, one value per event.
        let mut bytes = [0u8; 8 * (3 + EVENTS.len())];
        self.leader.read_exact(&mut bytes)?;
        let word = |index: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[index * 8 + byte]));
        let running = if word(1) == 0 { 0.0 } else { word(2) as f64 / word(1) as f64 };
        let count = |index: usize| {
            if running > 0.0 { (word(3 + index) as f64 / running) as u64 } else { 0 }
        };
        Ok(Counts {
            core_type: self.core_type.clone(),
            cpu: self.cpu,
            instructions: count(0),
            cycles: count(1),
            cache_misses: count(2),
            cache_references: count(3),
            running_share: Share(running),
        })
    }
}
