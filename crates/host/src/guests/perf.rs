//! Instructions and cycles of a thread, unscaled, by the class of core that counted them.
//!
//! On a hybrid machine each PMU counts on its own cores only. A thread's event is *enabled* all the time and *running*
//! only while the thread is on those cores. Dividing by the ratio, as is right for a multiplexed counter, would invent
//! counts for time that the thread spent elsewhere. Two events fit the fixed counters of every PMU, so the counts are
//! complete.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::time::Duration;

use eft_machine::CpuSet;
use eft_vcpu::guest::Count;

use crate::error::{Error, error};
use crate::sensors::perf_event::{self, CYCLES, INSTRUCTIONS, Target};
use crate::sensors::{Tree, topology};

/// One PMU's counts of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub instructions: u64,
    pub cycles: u64,
    pub enabled: Duration,
    pub running: Duration,
}

/// Number of events, time enabled, time running, then the events in the order in which they were opened.
pub fn parse(words: [u64; 5]) -> Option<Reading> {
    let [events, enabled_ns, running_ns, instructions, cycles] = words;
    let (enabled, running) = (Duration::from_nanos(enabled_ns), Duration::from_nanos(running_ns));
    (events == 2).then_some(Reading { instructions, cycles, enabled, running })
}

/// A PMU of this machine's cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    pub name: String,
    /// The type in `perf_event_attr`; `None` where all cores have the same PMU.
    pub kind: Option<u32>,
    /// Class of the cores that it counts on.
    pub class: u8,
}

/// PMUs with a list of CPUs: `cpu_core` and `cpu_atom` on Intel, one for each core type (`armv8_cortex_a76`) on ARM.
pub fn pmus(tree: &Tree, class_of: impl Fn(&CpuSet) -> Option<u8>) -> Vec<Pmu> {
    let kind = |name: &str| tree.number::<u32>(&format!("sys/bus/event_source/devices/{name}/type"));
    let of_cores =
        |name: &str| name.starts_with("cpu_") || name.starts_with("armv") || name.starts_with("apple_");
    let hybrid: Vec<Pmu> = topology::core_types(tree)
        .into_iter()
        .filter(|(name, _)| of_cores(name))
        .filter_map(|(name, cpus)| Some(Pmu { kind: Some(kind(&name)?), class: class_of(&cpus)?, name }))
        .collect();
    if hybrid.is_empty() { vec![Pmu { name: "cpu".into(), kind: None, class: 0 }] } else { hybrid }
}

/// The counters of one thread.
pub struct ThreadCounters {
    sets: Vec<Set>,
    counts: Vec<Count>,
}

struct Set {
    pmu: Pmu,
    leader: File,
    _member: File,
    /// The reading that is counted already.
    last: Reading,
}

impl ThreadCounters {
    /// With `guest_only`, what the host does for the guest is left out.
    pub fn open(pmus: &[Pmu], tid: i32, guest_only: bool) -> Result<Self, Error> {
        let open = |pmu: &Pmu| {
            let of = Target::Thread(tid);
            let leader = perf_event::open(INSTRUCTIONS, pmu.kind, of, None, guest_only)?;
            let member = perf_event::open(CYCLES, pmu.kind, of, Some(leader.as_raw_fd()), guest_only)?;
            Ok(Set { pmu: pmu.clone(), leader, _member: member, last: Reading::default() })
        };
        let sets: io::Result<Vec<_>> = pmus.iter().map(open).collect();
        sets.map(|sets| Self { sets, counts: Vec::new() }).map_err(|error| refusal(&error))
    }

    /// Whether all cores share one PMU, so that its counts belong to the class on which the thread was.
    pub fn is_of_all_classes(&self) -> bool {
        self.sets.len() == 1
    }

    /// Counts by class since the counters were opened; `here` is the class on which the thread was since the last
    /// call, and `busy` says whether hardware threads of a class had a busy sibling meanwhile. A set that can no
    /// longer be read counts nothing.
    pub fn read(&mut self, here: Option<u8>, busy: impl Fn(u8) -> bool) -> &[Count] {
        let is_hybrid = !self.is_of_all_classes();
        for set in &mut self.sets {
            let mut bytes = [0u8; 40];
            if set.leader.read_exact(&mut bytes).is_err() {
                continue;
            }
            let word = |i: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[i * 8 + byte]));
            if let Some(reading) = parse([word(0), word(1), word(2), word(3), word(4)]) {
                let class = if is_hybrid { set.pmu.class } else { here.unwrap_or(set.pmu.class) };
                add(&mut self.counts, (class, busy(class)), set.last, reading);
                set.last = reading;
            }
        }
        &self.counts
    }
}

/// Adds the counts between two readings to those of a class, with or without a busy sibling.
fn add(counts: &mut Vec<Count>, (class, sibling_busy): (u8, bool), last: Reading, now: Reading) {
    let is_it = |count: &Count| (count.class, count.sibling_busy) == (class, sibling_busy);
    let index = counts.iter().position(is_it).unwrap_or_else(|| {
        counts.push(Count { class, sibling_busy, ..Count::default() });
        counts.len() - 1
    });
    counts[index].instructions += now.instructions.saturating_sub(last.instructions);
    counts[index].cycles += now.cycles.saturating_sub(last.cycles);
}

pub fn count(class: u8, reading: Reading) -> Count {
    Count { class, sibling_busy: false, instructions: reading.instructions, cycles: reading.cycles }
}

fn refusal(error: &io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            error!(Missing, "this machine has no performance counters (PMU)")
        }
        Some(libc::EACCES | libc::EPERM) => {
            error!(Denied, "performance counters need root, or a lower kernel.perf_event_paranoid")
        }
        Some(libc::EMFILE) => error!(System, "too many open files for counters; raise the limit (ulimit -n)"),
        Some(libc::ESRCH) => error!(Gone, "the thread has ended"),
        _ => error!(System, "the kernel refuses performance counters ({error})"),
    }
}

#[cfg(test)]
mod tests;
