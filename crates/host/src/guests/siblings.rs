//! Whether the hardware threads of a core class had a busy sibling.
//!
//! Which threads share a core changes with every wake-up, and reading each thread's CPU would cost more than all of the
//! rest. So it is derived for each class and window from the CPUs' own accounts: if two threads of a core were busy for
//! longer than the window in sum, they ran side by side for the excess.

use std::collections::BTreeMap;

use eft_machine::{CpuId, CpuSet, Machine};
use eft_vcpu::host::Host;

use crate::sensors::Tree;

pub struct Siblings {
    /// Class and threads of each core that has more than one.
    cores: Vec<(usize, CpuSet)>,
    /// Ticks of each CPU at the last sample: busy, and all.
    last: BTreeMap<CpuId, (u64, u64)>,
    /// By class.
    busy: Vec<bool>,
}

impl Siblings {
    pub fn new(host: &Host, sets: &[CpuSet], machine: &Machine) -> Self {
        let mut cores: Vec<(usize, CpuSet)> = Vec::new();
        for (group, set) in sets.iter().enumerate() {
            let class = host.core_class_of(group);
            for cpu in machine.cpus.iter().filter(|cpu| set.contains(cpu.cpu)) {
                // A core's hardware threads count even if eft may not use them.
                let core = (class, cpu.siblings.and(&machine.online));
                if core.1.len() > 1 && !cores.contains(&core) {
                    cores.push(core);
                }
            }
        }
        Self { cores, last: BTreeMap::new(), busy: vec![false; host.classes.len()] }
    }

    /// Samples the CPUs' accounts, at the beginning and the end of a window. Costs nothing without hardware threads.
    pub fn sample(&mut self, tree: &Tree) {
        if !self.cores.is_empty() {
            self.add_stat(&tree.text("proc/stat").unwrap_or_default());
        }
    }

    /// Whether most run time on the class's cores was beside a busy sibling, between the last two samples.
    pub fn is_busy(&self, class: u8) -> bool {
        self.busy.get(usize::from(class)).copied().unwrap_or(false)
    }

    fn add_stat(&mut self, stat: &str) {
        let now: BTreeMap<CpuId, (u64, u64)> = stat.lines().filter_map(ticks).collect();
        let share = |cpu: CpuId| {
            let ((busy, all), (busy_then, all_then)) = (now.get(&cpu)?, self.last.get(&cpu)?);
            let passed = all.checked_sub(*all_then).filter(|passed| *passed > 0)?;
            Some(busy.saturating_sub(*busy_then) as f64 / passed as f64)
        };
        let mut sums = vec![(0.0, 0.0); self.busy.len()];
        for (class, threads) in &self.cores {
            let used: f64 = threads.iter().filter_map(share).sum();
            sums[*class].0 += used;
            sums[*class].1 += 2.0 * (used - 1.0).max(0.0);
        }
        self.busy = sums.into_iter().map(|(used, beside)| beside > used / 2.0).collect();
        self.last = now;
    }
}

/// CPU, busy ticks, all ticks. A guest's time is part of user time; a stolen tick ran nothing here.
fn ticks(line: &str) -> Option<(CpuId, (u64, u64))> {
    let mut words = line.split_ascii_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let ticks: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
    let [user, nice, system, _, _, irq, softirq, _] = ticks[..] else { return None };
    Some((cpu, (user + nice + system + irq + softirq, ticks.iter().sum())))
}

#[cfg(test)]
mod tests;
