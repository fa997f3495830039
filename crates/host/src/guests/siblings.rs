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
mod tests {
    use super::*;
    use eft_machine::KiloHertz;
    use eft_machine::{CoreClass, Cpu, Frequency};
    use eft_vcpu::survey::survey;

    /// Two P cores with two threads each, and two E cores.
    fn machine() -> Machine {
        let cpu = |number: u32| {
            let (class, khz) =
                if number < 4 { (CoreClass::Big, 5_000_000) } else { (CoreClass::Little, 4_000_000) };
            let siblings = if number < 4 {
                format!("{}-{}", number / 2 * 2, number / 2 * 2 + 1)
            } else {
                number.to_string()
            };
            Cpu {
                cpu: CpuId(number),
                online: true,
                class,
                siblings: siblings.parse().unwrap(),
                frequency: Some(Frequency { max: Some(KiloHertz(khz)), ..Frequency::default() }),
                ..Cpu::default()
            }
        };
        Machine { cpus: (0..6).map(cpu).collect(), ..Machine::of_equals(6) }
    }

    fn stat(busy: [u64; 6], all: u64) -> String {
        let line = |(cpu, busy): (usize, &u64)| format!("cpu{cpu} {busy} 0 0 {} 0 0 0 0 0 0\n", all - busy);
        "cpu  1 2 3 4 5 6 7 8 9 10\n".to_string()
            + &busy.iter().enumerate().map(line).collect::<String>()
            + "intr 1\n"
    }

    #[test]
    fn a_class_has_busy_siblings_while_its_cores_run_two_threads() {
        let machine = machine();
        let (host, sets) = survey(&machine.cpus, &machine.online).unwrap();
        let mut siblings = Siblings::new(&host, &sets, &machine);
        assert_eq!(siblings.cores.len(), 2, "the second threads' group has no cores of its own");
        let mut after = |busy: [u64; 6]| {
            siblings.last.clear();
            siblings.add_stat(&stat([0; 6], 0));
            siblings.add_stat(&stat(busy, 200));
            (siblings.is_busy(0), siblings.is_busy(1))
        };
        assert_eq!(after([200, 0, 200, 0, 200, 200]), (false, false), "one thread a core");
        assert_eq!(after([100, 100, 100, 100, 0, 0]), (false, false), "one after the other");
        assert_eq!(after([200, 200, 200, 190, 200, 200]), (true, false), "side by side");
        assert_eq!(after([200, 200, 200, 0, 0, 0]), (true, false), "two of three threads do");
    }

    #[test]
    fn nonsense_and_absent_cpus_are_no_busy_siblings() {
        let machine = machine();
        let (host, sets) = survey(&machine.cpus, &machine.online).unwrap();
        let mut siblings = Siblings::new(&host, &sets, &machine);
        for text in ["", "cpu0 1", "cpu0 9 9 9 9 9 9 9 9", "cpu9 1 1 1 1 1 1 1 1"] {
            siblings.add_stat(text);
            assert!(!siblings.is_busy(0) && !siblings.is_busy(200));
        }
        // Without hardware threads nothing is read.
        let plain = Machine::of_equals(2);
        let (host, sets) = survey(&plain.cpus, &plain.online).unwrap();
        let mut none = Siblings::new(&host, &sets, &plain);
        none.sample(&Tree::at("/nowhere"));
        assert!(none.cores.is_empty() && none.last.is_empty());
    }
}
