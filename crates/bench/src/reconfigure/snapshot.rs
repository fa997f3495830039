//! The machine as it was, to be compared with what it is afterwards: CPUs, masks, cpusets and every thread's affinity.

use std::collections::BTreeMap;

use eft_host::actuators::{cpuset_v1, cpuset_v2};
use eft_host::sensors::{Tree, tasks};
use eft_machine::CpuSet;

pub struct Snapshot {
    files: BTreeMap<String, String>,
    masks: Masks,
}

/// By thread id and start time, so that a number used again is not taken for the same thread.
pub type Masks = BTreeMap<(i32, u64), (String, CpuSet)>;

const FILES: [&str; 8] = [
    "proc/sys/kernel/cpu_bolt",
    "sys/devices/system/cpu/online",
    "sys/kernel/rcu_expedited",
    "sys/kernel/rcu_normal",
    "sys/devices/virtual/workqueue/cpumask",
    "proc/irq/default_smp_affinity",
    "proc/sys/kernel/timer_migration",
    "proc/sys/kernel/sched_rt_runtime_us",
];

pub fn take(tree: &Tree) -> Snapshot {
    Snapshot { files: files(tree), masks: user_masks(tree) }
}

fn files(tree: &Tree) -> BTreeMap<String, String> {
    let mut paths: Vec<String> = FILES.into_iter().map(String::from).collect();
    paths.extend(
        tree.numbered("proc/irq", "").into_iter().map(|irq| format!("proc/irq/{irq}/smp_affinity_list")),
    );
    for mount in cpuset_v1::mount(tree).into_iter().chain(cpuset_v2::mount(tree)) {
        for name in tree.entries(&mount) {
            let files = ["cpuset.cpus", "cpuset.cpus.partition", "cgroup.subtree_control"];
            paths.extend(files.into_iter().map(|file| format!("{mount}/{name}/{file}")));
        }
    }
    let value = |path: String| {
        let value = tree.text(&path).unwrap_or_default();
        (path, value)
    };
    paths.into_iter().map(value).collect()
}

/// Of every user thread. Those of the kernel are its own: it binds and unbinds them with each switch of a CPU.
fn user_masks(tree: &Tree) -> Masks {
    let users = tasks::processes(tree)
        .into_iter()
        .filter(|pid| tasks::leader(tree, *pid).is_some_and(|task| !task.kernel));
    users.flat_map(|pid| masks_of(tree, pid)).collect()
}

pub fn masks_of(tree: &Tree, process: i32) -> Masks {
    let one = |tid: i32| {
        let task = tasks::read(tree, process, tid)?;
        Some(((tid, task.id.started), (task.name, tasks::affinity(tree, process, tid)?)))
    };
    tasks::threads(tree, process).into_iter().filter_map(one).collect()
}

pub fn differences(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let changed = |(path, value): (&String, &String)| {
        let now = after.files.get(path).map_or("gone", String::as_str);
        (now != value).then(|| format!("/{path}: {value} -> {now}"))
    };
    let is_new = |path: &&String| !before.files.contains_key(*path);
    let mut found: Vec<String> = before.files.iter().filter_map(changed).collect();
    found.extend(after.files.keys().filter(is_new).map(|path| format!("/{path}: new")));
    found.extend(changed_masks(&before.masks, &after.masks));
    found
}

/// Threads that ended meanwhile, or came, are no difference.
pub fn changed_masks(before: &Masks, after: &Masks) -> Vec<String> {
    let changed = |(id, (name, mask)): (&(i32, u64), &(String, CpuSet))| {
        let (_, now) = after.get(id)?;
        (now != mask).then(|| format!("affinity of {name} ({}): {mask} -> {now}", id.0))
    };
    before.iter().filter_map(changed).collect()
}

#[cfg(test)]
mod tests;
