//! What remains on a parked CPU: interrupts, kernel threads, time not idle.

use std::collections::BTreeMap;

use eft_machine::{CpuId, CpuSet};
use serde::Serialize;

use super::{Tree, rates, tasks};

#[derive(Clone, Debug, Default, Serialize)]
pub struct Residue {
    pub cpu: CpuId,
    /// Interrupts that arrived there during the interval, by name.
    pub interrupts: BTreeMap<String, u64>,
    /// Kernel threads bound to the CPU: the kernel will not move these.
    pub bound_kernel_threads: Vec<String>,
    /// User tasks that ran there last, or may still run there.
    pub user_tasks: Vec<String>,
    /// Time not idle, ms; at the resolution of the kernel's tick.
    pub foreign_ms: f64,
}

pub struct Before {
    lines: Vec<rates::InterruptLine>,
    reading: rates::Reading,
}

pub fn begin(tree: &Tree) -> Before {
    Before { lines: rates::interrupt_lines(tree), reading: rates::read(tree) }
}

/// `/proc/stat` counts in ticks of USER_HZ, which is 100 on every architecture that Linux has left.
const TICK_MS: f64 = 10.0;

/// What happened on `cpus` since `before`.
pub fn end(tree: &Tree, before: &Before, cpus: &CpuSet) -> Vec<Residue> {
    let lines = rates::interrupt_lines(tree);
    let reading = rates::read(tree);
    let all = tasks::all(tree);
    let of = |cpu: CpuId| {
        let busy = |reading: &rates::Reading| reading.times.get(&cpu).map_or(0, |times| times.busy);
        Residue {
            cpu,
            interrupts: arrived(&before.lines, &lines, cpu),
            bound_kernel_threads: bound(tree, &all, cpu),
            user_tasks: staying(tree, &all, cpu),
            foreign_ms: busy(&reading).saturating_sub(busy(&before.reading)) as f64 * TICK_MS,
        }
    };
    cpus.iter().map(of).collect()
}

fn arrived(
    before: &[rates::InterruptLine],
    after: &[rates::InterruptLine],
    cpu: CpuId,
) -> BTreeMap<String, u64> {
    let earlier: BTreeMap<&str, u64> =
        before.iter().filter_map(|line| Some((line.name.as_str(), *line.counts.get(&cpu)?))).collect();
    let count = |line: &rates::InterruptLine| {
        let new = line.counts.get(&cpu)?.saturating_sub(*earlier.get(line.name.as_str())?);
        (new > 0).then(|| (format!("{} {}", line.name, line.description).trim().to_string(), new))
    };
    after.iter().filter_map(count).collect()
}

fn bound(tree: &Tree, all: &[tasks::Task], cpu: CpuId) -> Vec<String> {
    let is_bound = |task: &&tasks::Task| {
        task.kernel
            && tasks::affinity(tree, task.process, task.id.tid).is_some_and(|mask| mask == CpuSet::one(cpu))
    };
    all.iter().filter(is_bound).map(|task| format!("{} ({})", task.name, task.id.tid)).collect()
}

/// Leaves out sleeping tasks that ran there last but may not run there again.
fn staying(tree: &Tree, all: &[tasks::Task], cpu: CpuId) -> Vec<String> {
    let stays = |task: &&tasks::Task| {
        !task.kernel
            && (task.last_cpu == cpu)
            && (task.state == 'R'
                || tasks::affinity(tree, task.process, task.id.tid).is_some_and(|mask| mask.contains(cpu)))
    };
    all.iter().filter(stays).map(|task| format!("{} ({})", task.name, task.id.tid)).collect()
}
