//! Each CPU's load, speed and state, cheap enough to be read a hundred times a second.
//!
//! `/proc/stat` counts ticks of 10 ms and is the most expensive file that the scheduler reads, since the kernel sums up
//! every interrupt for it: it is read at every second tick where that is cheap, and seldom where it is not.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use eft_base::Instant;
use eft_base::time::nanos;
use eft_cores::sample::CpuSample;
use eft_machine::{CpuId, CpuSet, Share};

use super::{Tree, tasks, topology};
use crate::actuators::held::{self, Held};
use crate::actuators::session::state_dir;
use crate::clock;

/// Times of CPUs are read anew after so long, within these bounds, that reading takes this share of a CPU: 8 us on four
/// CPUs, some hundred where thousands of interrupts are counted.
const TIMES_PERIOD_MIN: Duration = Duration::from_millis(20);
const TIMES_PERIOD_MAX: Duration = Duration::from_millis(100);
const TIMES_PER_READ: u32 = 1000;
/// How often the set of CPUs and what eft holds of them are read.
const STATE_PERIOD: Duration = Duration::from_millis(200);

/// `USER_HZ` of every Linux that eft runs on.
const TICK: Duration = Duration::from_millis(10);

/// A thread of ours that slows a CPU down, and what it has taken of it.
#[derive(Default)]
struct Burner {
    tid: i32,
    last_ticks: u64,
    taken_ticks: u64,
}

pub struct CpuSensor {
    tree: Tree,
    dir: PathBuf,
    managed: CpuSet,
    stat: Option<File>,
    buffer: Vec<u8>,
    cpus: Vec<CpuSample>,
    burners: BTreeMap<CpuId, Burner>,
    times_due: Instant,
    state_due: Instant,
}

impl CpuSensor {
    pub fn new(tree: Tree, managed: CpuSet) -> CpuSensor {
        CpuSensor {
            dir: state_dir(&tree),
            stat: File::open(tree.path("proc/stat")).ok(),
            managed,
            tree,
            buffer: vec![0; 64 << 10],
            cpus: Vec::new(),
            burners: BTreeMap::new(),
            times_due: Instant(0),
            state_due: Instant(0),
        }
    }

    pub fn read(&mut self, now: Instant) -> Vec<CpuSample> {
        if now >= self.state_due {
            self.state_due = now + STATE_PERIOD;
            self.read_state();
            self.times_due = now;
        }
        if now >= self.times_due {
            let began = clock::now();
            self.read_times();
            self.times_due = now + times_period(Duration::from_nanos(clock::now().0.saturating_sub(began.0)));
        }
        self.cpus.clone()
    }

    fn read_state(&mut self) {
        let Ok(sets) = topology::cpu_sets(&self.tree) else { return };
        let held: Held = held::load(&self.dir);
        let parked = held.parked();
        if !held.speeds.is_empty() {
            for (cpu, tid) in held::load_status(&self.dir).burners {
                let burner = self.burners.entry(cpu).or_default();
                if burner.tid != tid {
                    *burner = Burner { tid, last_ticks: 0, taken_ticks: burner.taken_ticks };
                }
            }
        }
        self.cpus.retain(|c| sets.present.contains(c.cpu));
        for cpu in sets.present.iter() {
            let at = self.cpus.binary_search_by_key(&cpu, |c| c.cpu).unwrap_or_else(|at| {
                self.cpus.insert(at, CpuSample { cpu, ..CpuSample::default() });
                at
            });
            let sample = &mut self.cpus[at];
            sample.online = sets.online.contains(cpu);
            sample.managed = self.managed.contains(cpu);
            sample.parked = parked.contains(cpu);
            sample.speed = held.speeds.get(&cpu).map_or(Share::ALL, |speed| speed.share);
        }
    }

    fn read_times(&mut self) {
        for burner in self.burners.values_mut() {
            if let Some(task) = tasks::leader(&self.tree, burner.tid) {
                burner.taken_ticks += task.runtime_ticks.saturating_sub(burner.last_ticks);
                burner.last_ticks = task.runtime_ticks;
            }
        }
        let Some(n) = self.stat.as_ref().and_then(|f| f.read_at(&mut self.buffer, 0).ok()) else { return };
        let text = String::from_utf8_lossy(&self.buffer[..n]);
        // The first line is the sum, those of the CPUs follow it.
        for line in text.lines().skip(1).take_while(|line| line.starts_with("cpu")) {
            let Some((cpu, mut ticks)) = times(line) else { continue };
            if let Ok(at) = self.cpus.binary_search_by_key(&cpu, |c| c.cpu) {
                let burnt = self.burners.get(&cpu).map_or(0, |burner| burner.taken_ticks);
                ticks.busy = ticks.busy.saturating_sub(burnt);
                account(&mut self.cpus[at], ticks);
            }
        }
    }
}

/// How long the times stay valid if reading them took this long.
fn times_period(took: Duration) -> Duration {
    (took * TIMES_PER_READ).clamp(TIMES_PERIOD_MIN, TIMES_PERIOD_MAX)
}

/// Times never go back, for two reasons. A burner's time until it was noticed was counted as the CPU's work; later
/// counts compensate for it. And the kernel's own `iowait` sometimes decreases (proc_stat(5)).
fn account(cpu: &mut CpuSample, ticks: Ticks) {
    cpu.busy = cpu.busy.max(ticks_long(ticks.busy));
    cpu.idle = cpu.idle.max(ticks_long(ticks.idle));
    cpu.stolen = cpu.stolen.max(ticks_long(ticks.stolen));
}

fn ticks_long(count: u64) -> Duration {
    Duration::from_nanos(count.saturating_mul(nanos(TICK)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    idle: u64,
    stolen: u64,
}

/// CPU and ticks of `cpuN user nice system idle iowait irq softirq steal ...`.
fn times(line: &str) -> Option<(CpuId, Ticks)> {
    let mut words = line.split_ascii_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let mut ticks = [0u64; 8];
    for (tick, word) in ticks.iter_mut().zip(words) {
        *tick = word.parse().ok()?;
    }
    let [user, nice, system, idle, iowait, irq, softirq, stolen] = ticks;
    Some((cpu, Ticks { busy: user + nice + system + irq + softirq, idle: idle + iowait, stolen }))
}

#[cfg(test)]
mod tests;
