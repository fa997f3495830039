//! What a thread did: run and wait times from schedstat, counters where there are some, a progress counter if offered.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use eft_vcpu::guest::Count;

use super::perf::{Pmu, ThreadCounters};
use crate::sensors::Tree;
use crate::sensors::tasks::TaskId;

/// One watched thread. Its schedstat stays open: then a look is one system call.
pub struct Sensor {
    file: Option<File>,
    counters: Option<ThreadCounters>,
    progress: Option<PathBuf>,
    pub run_ns: u64,
    pub wait_ns: u64,
    pub counts: Vec<Count>,
    pub has_ended: bool,
}

impl Sensor {
    pub fn new(tree: &Tree, process: i32, id: TaskId, progress: Option<PathBuf>) -> Self {
        let path = tree.path(&format!("proc/{process}/task/{}/schedstat", id.tid));
        let file = File::open(path).ok();
        let has_ended = file.is_none();
        Self { file, counters: None, progress, run_ns: 0, wait_ns: 0, counts: Vec::new(), has_ended }
    }

    /// Opens counters; the reason if there are none.
    pub fn count(&mut self, pmus: &[Pmu], tid: i32, guest_only: bool) -> Result<(), String> {
        self.counters = Some(ThreadCounters::open(pmus, tid, guest_only)?);
        Ok(())
    }

    /// Whether `counts` holds the guest's own unit.
    pub fn own_unit(&self) -> bool {
        self.progress.is_some()
    }

    /// Run and wait times. A thread that has ended keeps its last.
    pub fn look(&mut self) {
        let mut bytes = [0u8; 80];
        let Some(length) = self.file.as_ref().and_then(|file| file.read_at(&mut bytes, 0).ok()) else {
            self.has_ended = true;
            return;
        };
        match parse(&bytes[..length]) {
            Some((run_ns, wait_ns)) => (self.run_ns, self.wait_ns) = (run_ns, wait_ns),
            None => self.has_ended = true,
        }
    }

    /// Counters, too; `class` is where the thread was placed.
    pub fn look_closely(&mut self, class: Option<u8>) {
        let run_before = self.run_ns;
        self.look();
        if let Some(path) = &self.progress {
            let total = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
            let known: u64 = self.counts.iter().map(|count| count.instructions).sum();
            let (done, ran) = (total.unwrap_or(known).saturating_sub(known), self.run_ns - run_before);
            add(&mut self.counts, class.unwrap_or(0), done, ran);
        } else if let Some(counters) = &mut self.counters {
            self.counts = counters.read(class);
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

/// Nanoseconds run, nanoseconds waited, time slices.
fn parse(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut words = std::str::from_utf8(bytes).ok()?.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensors::tasks;

    #[test]
    fn run_time_is_read_and_an_ended_thread_is_noticed() {
        assert_eq!(parse(b"64323853 122368241 28\n"), Some((64323853, 122368241)));
        assert_eq!(parse(b""), None);
        let tree = Tree::live();
        let me = tasks::myself(&tree);
        let mut sensor = Sensor::new(&tree, me.tid, me, None);
        sensor.look();
        assert!(!sensor.has_ended);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        let mut sensor = Sensor::new(&tree, pid, TaskId { tid: pid, started: 0 }, None);
        child.wait().unwrap();
        sensor.look();
        assert!(sensor.has_ended);
    }
}
