//! Rates from the difference of two readings: interrupts and load, from `/proc/interrupts` and `/proc/stat`.

use std::collections::BTreeMap;
use std::time::Duration;

use eft_machine::{CpuId, Machine, Share};

use super::Tree;

/// One reading, to be compared with a later one.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    pub interrupts: BTreeMap<CpuId, u64>,
    pub times: BTreeMap<CpuId, CpuTimes>,
}

/// In clock ticks, as `/proc/stat` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    pub busy: u64,
    pub idle: u64,
}

pub fn read(tree: &Tree) -> Reading {
    let stat = tree.text("proc/stat").unwrap_or_default();
    Reading {
        interrupts: total_interrupts(&interrupt_lines(tree)),
        times: stat.lines().filter_map(cpu_times).collect(),
    }
}

/// `cpuN user nice system idle iowait irq softirq steal ...`. Stolen time is not counted as load.
fn cpu_times(line: &str) -> Option<(CpuId, CpuTimes)> {
    let mut words = line.split_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let tick = |index: usize| ticks.get(index).copied().unwrap_or(0);
    let busy = tick(0) + tick(1) + tick(2) + tick(5) + tick(6);
    Some((cpu, CpuTimes { busy, idle: tick(3) + tick(4) }))
}

/// One row of `/proc/interrupts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptLine {
    pub name: String,
    pub counts: BTreeMap<CpuId, u64>,
    pub description: String,
}

pub fn interrupt_lines(tree: &Tree) -> Vec<InterruptLine> {
    let text = tree.text("proc/interrupts").unwrap_or_default();
    let mut lines = text.lines();
    // Offline CPUs have no column, so the heading tells which is which.
    let heading = lines.next().unwrap_or_default();
    let cpus: Vec<CpuId> =
        heading.split_whitespace().filter_map(|name| name.strip_prefix("CPU")?.parse().ok()).collect();
    lines.filter_map(|line| interrupt_line(line, &cpus)).collect()
}

fn interrupt_line(line: &str, cpus: &[CpuId]) -> Option<InterruptLine> {
    let (name, rest) = line.split_once(':')?;
    let mut counts = BTreeMap::new();
    let mut words = rest.split_whitespace().peekable();
    for cpu in cpus {
        let Some(count) = words.peek().and_then(|word| word.parse().ok()) else {
            break;
        };
        counts.insert(*cpu, count);
        words.next();
    }
    // ERR and MIS have a single total that belongs to no CPU.
    if counts.len() < cpus.len() {
        counts.clear();
    }
    Some(InterruptLine {
        name: name.trim().to_string(),
        counts,
        description: words.collect::<Vec<_>>().join(" "),
    })
}

fn total_interrupts(lines: &[InterruptLine]) -> BTreeMap<CpuId, u64> {
    let mut totals = BTreeMap::new();
    for (cpu, count) in lines.iter().flat_map(|line| &line.counts) {
        *totals.entry(*cpu).or_insert(0) += count;
    }
    totals
}

/// Fills in the rates of each CPU that was online at both readings, which are `elapsed` apart.
pub fn fill(machine: &mut Machine, earlier: &Reading, later: &Reading, elapsed: Duration) {
    if elapsed.is_zero() {
        return;
    }
    for cpu in &mut machine.cpus {
        if let (Some(before), Some(after)) =
            (earlier.interrupts.get(&cpu.cpu), later.interrupts.get(&cpu.cpu))
        {
            cpu.interrupts_per_s = Some(after.saturating_sub(*before) as f64 / elapsed.as_secs_f64());
        }
        if let (Some(before), Some(after)) = (earlier.times.get(&cpu.cpu), later.times.get(&cpu.cpu)) {
            let busy = after.busy.saturating_sub(before.busy) as f64;
            let idle = after.idle.saturating_sub(before.idle) as f64;
            cpu.load = (busy + idle > 0.0).then(|| Share(busy / (busy + idle)));
        }
    }
}
