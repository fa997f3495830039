//! Instructions and cycles of a thread, raw, by the kind of core that counted them.
//!
//! On a hybrid machine each PMU counts on its own cores only. A thread's event is *enabled* all the time and *running*
//! only while the thread is on those cores; dividing by the ratio, as is right for a counter that takes turns with
//! others, makes up counts for time that the thread spent elsewhere. Two events fit the fixed counters of every PMU, so
//! what was counted is all there was.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

use eft_machine::CpuSet;
use eft_vcpu::guest::Count;

use crate::sensors::{Tree, topology};

/// What one PMU says of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub instructions: u64,
    pub cycles: u64,
    pub enabled_ns: u64,
    pub running_ns: u64,
}

/// Number of events, time enabled, time running, then the events in the order in which they were opened.
pub fn parse(words: [u64; 5]) -> Option<Reading> {
    let [events, enabled_ns, running_ns, instructions, cycles] = words;
    (events == 2).then_some(Reading { instructions, cycles, enabled_ns, running_ns })
}

/// A PMU of this machine's cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    pub name: String,
    /// As `perf_event_attr` names it; `None` where all cores have the same one.
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
    sets: Vec<(Pmu, File, File)>,
}

impl ThreadCounters {
    /// With `guest_only`, what the host does for the guest is left out.
    pub fn open(pmus: &[Pmu], tid: i32, guest_only: bool) -> Result<Self, String> {
        let open = |pmu: &Pmu| {
            let leader = open_event(INSTRUCTIONS, pmu.kind, tid, -1, guest_only)?;
            let member = open_event(CYCLES, pmu.kind, tid, leader.as_raw_fd(), guest_only)?;
            Ok((pmu.clone(), leader, member))
        };
        let sets: io::Result<Vec<_>> = pmus.iter().map(open).collect();
        sets.map(|sets| Self { sets }).map_err(|error| refusal(&error))
    }

    /// Counts by class; a set that cannot be read any more counts nothing.
    pub fn read(&mut self, here: Option<u8>) -> Vec<Count> {
        let is_hybrid = self.sets.len() > 1;
        let mut counts = Vec::with_capacity(self.sets.len());
        for (pmu, leader, _) in &mut self.sets {
            let mut bytes = [0u8; 40];
            if leader.read_exact(&mut bytes).is_err() {
                continue;
            }
            let word = |i: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[i * 8 + byte]));
            if let Some(reading) = parse([word(0), word(1), word(2), word(3), word(4)]) {
                let class = if is_hybrid { pmu.class } else { here.unwrap_or(pmu.class) };
                counts.push(count(class, reading));
            }
        }
        counts
    }
}

pub fn count(class: u8, reading: Reading) -> Count {
    Count { class, sibling_busy: false, instructions: reading.instructions, cycles: reading.cycles }
}

const INSTRUCTIONS: u64 = 1;
const CYCLES: u64 = 0;
const PERF_TYPE_HARDWARE: u32 = 0;
const PMU_TYPE_SHIFT: u32 = 32;
/// Time enabled, time running, one read for the whole group.
const READ_FORMAT: u64 = 1 | 2 | 8;
const EXCLUDE_HOST: u64 = 1 << 19;
const FLAG_CLOEXEC: u64 = 8;

/// `struct perf_event_attr` as far as `PERF_ATTR_SIZE_VER0` goes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

fn open_event(event: u64, pmu: Option<u32>, tid: i32, group: i32, guest_only: bool) -> io::Result<File> {
    let attributes = Attributes {
        kind: PERF_TYPE_HARDWARE,
        size: size_of::<Attributes>() as u32,
        config: u64::from(pmu.unwrap_or(0)) << PMU_TYPE_SHIFT | event,
        read_format: READ_FORMAT,
        flags: if guest_only { EXCLUDE_HOST } else { 0 },
        ..Attributes::default()
    };
    // SAFETY: the attributes live through the call and state their own size; the kernel only reads them. The other
    // arguments are plain numbers.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &attributes, tid, -1, group, FLAG_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor and nobody else owns it.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

fn refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "this machine has no performance counters (PMU)".into()
        }
        Some(libc::EACCES | libc::EPERM) => {
            "performance counters need root, or a lower kernel.perf_event_paranoid".into()
        }
        Some(libc::EMFILE) => "too many open files for counters; raise the limit (ulimit -n)".into(),
        Some(libc::ESRCH) => "the thread has ended".into(),
        _ => format!("the kernel refuses performance counters ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded on an Alder Lake, as the kernel's tools/perf/Documentation/intel-hybrid.txt shows it: a program bound to
    /// an E core after its start. perf printed 233,066,666 cycles on P cores, extrapolated from 0.43% of the time, and
    /// 604,097,080 on E cores from 99.57%.
    #[test]
    fn time_on_the_other_type_is_not_extrapolated() {
        let (second, scaled) = (1_000_000_000u64, [(233_066_666u64, 43u64), (604_097_080, 9957)]);
        let raw = |(printed, share): (u64, u64)| printed * share / 10_000;
        let reading = |of: (u64, u64)| parse([2, second, second * of.1 / 10_000, 0, raw(of)]).unwrap();
        let counts = [count(0, reading(scaled[0])), count(1, reading(scaled[1]))];
        // The E core did all but 0.2% of the cycles; the extrapolated figures say 28% on P cores.
        let all: u64 = counts.iter().map(|count| count.cycles).sum();
        assert_eq!(counts[0].cycles * 1000 / all, 1);
        assert!(scaled[0].0 * 1000 / (scaled[0].0 + scaled[1].0) > 270);
    }

    /// The same machine family, system wide (the commit message of Linux 3612ca8e2935): IPC 0.44 on P and 0.52 on E cores.
    #[test]
    fn each_type_has_its_own_ipc() {
        let of = |instructions, cycles| count(0, parse([2, 1, 1, instructions, cycles]).unwrap());
        let milli = |count: Count| count.instructions * 1000 / count.cycles;
        assert_eq!(milli(of(4_268_965, 9_733_603)), 438);
        assert_eq!(milli(of(9_423_111, 18_205_487)), 517);
        assert_eq!(parse([4, 1, 1, 1, 1]), None, "another set of events");
    }

    #[test]
    fn pmus_are_known_by_their_cpus_on_intel_and_arm() {
        let dir = tempfile::tempdir().unwrap();
        let device = |name: &str, kind: &str, cpus: &str| {
            let at = dir.path().join("sys/bus/event_source/devices").join(name);
            std::fs::create_dir_all(&at).unwrap();
            std::fs::write(at.join("type"), kind).unwrap();
            std::fs::write(at.join("cpus"), cpus).unwrap();
        };
        let class_of = |cpus: &CpuSet| Some(u8::from(!cpus.contains(0)));
        device("armv8_cortex_a76", "8", "0-1");
        device("armv8_cortex_a55", "9", "2-5");
        device("uncore_dsu", "11", "0-5");
        let found = pmus(&Tree::at(dir.path()), class_of);
        let plain: Vec<(&str, Option<u32>, u8)> =
            found.iter().map(|p| (p.name.as_str(), p.kind, p.class)).collect();
        assert_eq!(plain, [("armv8_cortex_a55", Some(9), 1), ("armv8_cortex_a76", Some(8), 0)]);
        assert_eq!(pmus(&Tree::at("/nowhere"), class_of)[0].kind, None);
    }
}
