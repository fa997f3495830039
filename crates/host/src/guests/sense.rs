//! What a thread did: run and wait times from schedstat, PMU counters and a progress counter where available.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use eft_base::time::nanos;
use eft_machine::Ppm;
use eft_vcpu::guest::Count;

use super::perf::{Pmu, ThreadCounters};
use crate::error::Error;
use crate::sensors::Tree;
use crate::sensors::tasks::TaskId;

/// One watched thread. Its schedstat stays open, so that a sample is one system call.
pub struct Sensor {
    file: Option<File>,
    counters: Option<ThreadCounters>,
    progress: Option<PathBuf>,
    /// Total time that it occupied a core, and that it waited for one.
    pub ran: Duration,
    pub waited: Duration,
    /// The kernel's last figures.
    times: RunTimes,
    /// Time on its core relative to the time that it ran there: a core of emulated speed is unavailable
    /// for a part of each period, which the kernel counts as waiting, and runs at full speed in between.
    pub stretch: Ppm,
    pub counts: Vec<Count>,
    pub has_ended: bool,
}

impl Sensor {
    pub fn new(tree: &Tree, process: i32, id: TaskId, progress: Option<PathBuf>) -> Self {
        let path = tree.path(&format!("proc/{process}/task/{}/schedstat", id.tid));
        let file = File::open(path).ok();
        let has_ended = file.is_none();
        Self {
            file,
            counters: None,
            progress,
            ran: Duration::ZERO,
            waited: Duration::ZERO,
            times: RunTimes::default(),
            stretch: Ppm::ALL,
            counts: Vec::new(),
            has_ended,
        }
    }

    /// Opens counters; an error says why there are none.
    pub fn count(&mut self, pmus: &[Pmu], tid: i32, guest_only: bool) -> Result<(), Error> {
        self.counters = Some(ThreadCounters::open(pmus, tid, guest_only)?);
        Ok(())
    }

    /// Whether `counts` holds the guest's own unit.
    pub fn own_unit(&self) -> bool {
        self.progress.is_some()
    }

    /// Samples run and wait times. A thread that has ended keeps its last ones.
    pub fn sample(&mut self) {
        let mut bytes = [0u8; 80];
        let Some(length) = self.file.as_ref().and_then(|file| file.read_at(&mut bytes, 0).ok()) else {
            self.has_ended = true;
            return;
        };
        match parse(&bytes[..length]) {
            Some(times) => self.add_times(times),
            None => self.has_ended = true,
        }
    }

    fn add_times(&mut self, times: RunTimes) {
        let ran = times.ran.saturating_sub(self.times.ran);
        let waited = times.waited.saturating_sub(self.times.waited);
        let occupied = self.stretch.part_of_time(ran);
        self.ran += occupied;
        self.waited += waited.saturating_sub(occupied.saturating_sub(ran));
        self.times = times;
    }

    /// Samples counters, too; `class` is where the thread was placed, `busy` says whether a class had busy siblings.
    pub fn sample_counters(&mut self, class: Option<u8>, busy: impl Fn(u8) -> bool) {
        let ran_before = self.ran;
        self.sample();
        if let Some(path) = &self.progress {
            let total = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
            let known: u64 = self.counts.iter().map(|count| count.instructions).sum();
            let (done, ran) = (total.unwrap_or(known).saturating_sub(known), self.ran - ran_before);
            add(&mut self.counts, class.unwrap_or(0), done, nanos(ran));
        } else if let Some(counters) = &mut self.counters {
            counters.read(class, busy).clone_into(&mut self.counts);
        }
    }

    /// The thread leaves a class: what a PMU that all classes share has counted until now belongs to that class.
    pub fn leave(&mut self, class: Option<u8>, busy: impl Fn(u8) -> bool) {
        if let Some(counters) = self.counters.as_mut().filter(|counters| counters.is_of_all_classes()) {
            counters.read(class, busy);
        }
    }
}

fn add(counts: &mut Vec<Count>, class: u8, instructions: u64, cycles: u64) {
    if !counts.iter().any(|count| count.class == class) {
        counts.push(Count { class, ..Count::default() });
    }
    for count in counts.iter_mut().filter(|count| count.class == class) {
        count.instructions += instructions;
        count.cycles += cycles;
    }
}

/// Run and wait times as the kernel reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RunTimes {
    ran: Duration,
    waited: Duration,
}

impl RunTimes {
    fn from_nanos(ran: u64, waited: u64) -> Self {
        Self { ran: Duration::from_nanos(ran), waited: Duration::from_nanos(waited) }
    }
}

/// Nanoseconds run, nanoseconds waited, time slices.
fn parse(bytes: &[u8]) -> Option<RunTimes> {
    let mut words = bytes.split(|byte| byte.is_ascii_whitespace());
    Some(RunTimes::from_nanos(number(words.next()?)?, number(words.next()?)?))
}

fn number(digits: &[u8]) -> Option<u64> {
    let add = |sum: u64, digit: &u8| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    };
    digits.iter().try_fold(0, add).filter(|_| !digits.is_empty())
}

#[cfg(test)]
mod tests;
