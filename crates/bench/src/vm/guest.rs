//! A guest of the benchmark, and the judge that watches two of them.

use crate::ground::End;
use anyhow::Result;
use std::process::Child;
use std::time::{Duration, Instant};

use eft_host::actuators::affinity;
use eft_host::sensors::{Tree, tasks};
use eft_machine::{CpuId, CpuSet};

/// A process with one thread that counts: the only one of a worker, the vCPU of a QEMU.
pub struct Guest {
    child: Child,
    thread: i32,
}

impl Guest {
    pub fn new(child: Child, thread: i32) -> Self {
        Self { child, thread }
    }

    pub fn set_thread(&mut self, thread: i32) {
        self.thread = thread;
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/task/{}/{name}", self.pid(), self.thread))
            .unwrap_or_default()
    }

    pub fn run_ns(&self) -> u64 {
        self.file("schedstat").split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    /// Where it is, or was last.
    fn cpu(&self) -> CpuId {
        let text = self.file("stat");
        let after = text.rsplit_once(')').map_or("", |(_, after)| after);
        after.split_whitespace().nth(36).and_then(|word| word.parse().ok()).unwrap_or(CpuId(0))
    }

    pub fn put(&self, cpus: &CpuSet) -> Result<()> {
        let tree = Tree::live();
        let threads = tasks::threads(&tree, self.pid());
        Ok(threads.into_iter().try_for_each(|tid| affinity::set(&tree, self.pid(), tid, cpus))?)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a guest was seen to do, in cores: its run time, and the part of it on the first of the two CPUs.
///
/// The slowed CPU is taken away for a part of each period, and is at full speed in between; so the kernel's run time of a
/// guest is the work that it did, on either CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Did {
    pub work: f64,
    pub fast: f64,
}

/// What the judge saw of a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Of the CPU-bound and of the paced guest.
    pub did: [Did; 2],
    /// Part of the time in which the fast CPU had neither guest while the CPU-bound one was on the slow one.
    pub left: f64,
    /// The longest such time.
    pub left_longest: Duration,
}

impl Seen {
    /// Each guest's part of the fast time that both got. Time that other programs took could not be dealt out.
    pub fn fast_parts(&self) -> [f64; 2] {
        parts(self.did.map(|did| did.fast))
    }
}

/// Each value's part of the sum.
pub fn parts(of: [f64; 2]) -> [f64; 2] {
    let sum = of[0] + of[1];
    if sum > 0.0 { of.map(|value| value / sum) } else { [0.0; 2] }
}

/// Samples the guests every 2 ms for `length`, and adds up where they ran.
pub fn judge(guests: &[Guest; 2], fast: CpuId, length: Duration, end: &End) -> Result<Seen> {
    let begin = Instant::now();
    let mut last = [0, 1].map(|i| guests[i].run_ns());
    let (mut did, mut left, mut stretch, mut longest) =
        ([Did::default(); 2], Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut sampled_at = begin;
    while begin.elapsed() < length {
        end.sleep(Duration::from_millis(2))?;
        let (now, mut is_used, mut waits) = (Instant::now(), false, false);
        for i in 0..2 {
            let (run, cpu) = (guests[i].run_ns(), guests[i].cpu());
            let ran = run.saturating_sub(last[i]) as f64 / 1e9;
            did[i].work += ran;
            if cpu == fast {
                did[i].fast += ran;
                // The CPU-bound guest always wants to run: it counts as there, even if another program has the CPU.
                is_used |= ran > 0.0 || i == 0;
            } else {
                waits |= i == 0;
            }
            last[i] = run;
        }
        let passed = now - sampled_at;
        sampled_at = now;
        stretch = if waits && !is_used { stretch + passed } else { Duration::ZERO };
        left += if stretch.is_zero() { Duration::ZERO } else { passed };
        longest = longest.max(stretch);
    }
    let seconds = begin.elapsed().as_secs_f64();
    Ok(Seen {
        did: did.map(|d| Did { work: d.work / seconds, fast: d.fast / seconds }),
        left: left.as_secs_f64() / seconds,
        left_longest: longest,
    })
}
