//! The CPU time that a hypervisor stole while a benchmark ran: the more it is, the wider are the intervals.

use eft_machine::{CpuId, CpuSet};

pub struct Stolen {
    cpus: Option<CpuSet>,
    before: Times,
}

/// Sums over the CPUs that count, in ticks of `/proc/stat`.
#[derive(Clone, Copy, Default)]
struct Times {
    all: u64,
    stolen: u64,
}

impl Stolen {
    /// Counts from now on, for these CPUs or for all.
    pub fn begin(cpus: Option<&CpuSet>) -> Stolen {
        Stolen { cpus: cpus.cloned(), before: read(cpus) }
    }

    /// A line for the end of a report.
    pub fn describe(&self) -> String {
        let now = read(self.cpus.as_ref());
        let all = now.all.saturating_sub(self.before.all).max(1);
        let stolen = now.stolen.saturating_sub(self.before.stolen);
        format!(
            "stolen meanwhile by other guests: {:.1}% of the CPUs' time",
            stolen as f64 / all as f64 * 100.0
        )
    }
}

fn read(cpus: Option<&CpuSet>) -> Times {
    times(&std::fs::read_to_string("/proc/stat").unwrap_or_default(), cpus)
}

fn times(stat: &str, cpus: Option<&CpuSet>) -> Times {
    let mut sum = Times::default();
    for line in stat.lines() {
        let mut words = line.split_ascii_whitespace();
        let name = words.next().and_then(|name| name.strip_prefix("cpu"));
        let Some(Ok(cpu)) = name.map(str::parse::<CpuId>) else { continue };
        if cpus.is_some_and(|cpus| !cpus.contains(cpu)) {
            continue;
        }
        // user nice system idle iowait irq softirq steal; guest times are in user already.
        let ticks: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
        sum.all += ticks.iter().sum::<u64>();
        sum.stolen += ticks.get(7).copied().unwrap_or(0);
    }
    sum
}

#[cfg(test)]
mod tests;
