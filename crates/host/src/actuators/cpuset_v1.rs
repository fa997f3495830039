//! Parking by a cpuset of cgroup v1: processes are attached once to a cpuset of ours, which then shrinks and grows.

use std::collections::HashSet;

use eft_machine::{CpuId, CpuSet};

use super::affinity;
use super::scope::{self, Scope};
use crate::error::{Error, error};
use crate::journal::{Change, Journal, TaskMask};
use crate::sensors::{Tree, tasks, topology};

pub const OWN: &str = "eft";

/// Where the v1 cpuset hierarchy is mounted, without the leading slash.
pub fn mount(tree: &Tree) -> Option<String> {
    let mounts = tree.text("proc/mounts")?;
    mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, at, "cgroup", options, ..] = words[..] else {
            return None;
        };
        options.split(',').any(|option| option == "cpuset").then(|| at.trim_start_matches('/').to_string())
    })
}

/// Our cpuset, whether it exists or not.
pub fn own(tree: &Tree) -> Option<String> {
    Some(format!("{}/{OWN}", mount(tree)?))
}

/// Every cpuset below the root, as paths.
fn cpusets(tree: &Tree) -> Vec<String> {
    let Some(mount) = mount(tree) else {
        return Vec::new();
    };
    let (mut open, mut found) = (vec![mount], Vec::new());
    while let Some(dir) = open.pop() {
        for name in tree.entries(&dir) {
            let child = format!("{dir}/{name}");
            if tree.path(&child).is_dir() {
                found.push(child.clone());
                open.push(child);
            }
        }
    }
    found
}

/// Every thread of the machine; `None` without cpusets. Reads one file for each cpuset, not one folder for each
/// process.
pub fn all_threads(tree: &Tree) -> Option<Vec<i32>> {
    let mount = mount(tree)?;
    let of = |path: String| tree.text(&format!("{path}/tasks"));
    let root = of(mount)?;
    let texts = std::iter::once(root).chain(cpusets(tree).into_iter().filter_map(of));
    Some(
        texts
            .flat_map(|text| text.lines().filter_map(|line| line.trim().parse().ok()).collect::<Vec<_>>())
            .collect(),
    )
}

fn names(tree: &Tree, cpuset: &str, cpu: CpuId) -> Option<CpuSet> {
    tree.parsed::<CpuSet>(&format!("{cpuset}/cpuset.cpus")).filter(|cpus| cpus.contains(cpu))
}

/// A cpuset, v1 or v2, that is not ours and names the CPU.
pub fn named_by_others(tree: &Tree, cpu: CpuId) -> Option<String> {
    let own = own(tree).unwrap_or_default();
    let foreign =
        cpusets(tree).into_iter().filter(|path| *path != own && !path.starts_with(&format!("{own}/")));
    let v1 = foreign.into_iter().find(|path| names(tree, path, cpu).is_some()).map(|path| format!("/{path}"));
    v1.or_else(|| super::cpuset_v2::named_by_others(tree, cpu))
}

/// Our cpusets that name the CPU, with all that they name.
pub fn own_naming(tree: &Tree, cpu: CpuId) -> Vec<(String, CpuSet)> {
    let Some(own) = own(tree) else {
        return Vec::new();
    };
    names(tree, &own, cpu).map(|cpus| vec![(own, cpus)]).unwrap_or_default()
}

/// Makes the cpuset, with `cpus`, and attaches the scope. Returns how many processes were attached, and which could not
/// be.
pub fn set_up(journal: &mut Journal, scope: &Scope, cpus: &CpuSet) -> Result<(usize, Vec<String>), Error> {
    let tree = journal.tree().clone();
    let mount = mount(&tree).ok_or_else(|| error!(Missing, "no cpuset hierarchy of cgroup v1 is mounted"))?;
    let own = format!("{mount}/{OWN}");
    if !tree.exists(&own) {
        let id = journal.announce(Change::MakeCgroup { path: own.clone() })?;
        let made = std::fs::create_dir(tree.path(&own))
            .map_err(|error| error!(System, "/{own} cannot be made ({error})"));
        let mems = tree.text(&format!("{mount}/cpuset.mems")).unwrap_or_else(|| "0".into());
        let filled = made.and_then(|()| tree.write(&format!("{own}/cpuset.mems"), &mems));
        if let Err(reason) = filled.and_then(|()| apply(&tree, &own, cpus)) {
            let _ = std::fs::remove_dir(tree.path(&own));
            journal.done(id)?;
            return Err(reason);
        }
    }
    attach(journal, &mount, scope)
}

/// Attaches processes of the root only: a process in another cpuset was placed there on purpose.
fn attach(journal: &mut Journal, mount: &str, scope: &Scope) -> Result<(usize, Vec<String>), Error> {
    let tree = journal.tree().clone();
    let own = format!("{mount}/{OWN}");
    let (mut attached, mut refused) = (0, Vec::new());
    // Processes fork meanwhile. Children of attached processes are attached too; another pass finds the rest.
    for _ in 0..3 {
        let in_root = members(&tree, mount, "cgroup.procs");
        let leaders: Vec<tasks::Task> = scope::processes(&tree, scope)?
            .into_iter()
            .filter(|task| in_root.contains(&task.process))
            .collect();
        if leaders.is_empty() || !refused.is_empty() {
            break;
        }
        let masks = explicit_masks(&tree, &leaders);
        let processes = leaders.iter().map(|task| task.id).collect();
        journal.announce(Change::Attach { processes, from: mount.into(), to: own.clone() })?;
        for leader in &leaders {
            match tree.write(&format!("{own}/cgroup.procs"), &leader.process.to_string()) {
                Ok(()) => attached += 1,
                // The process has ended; there is nothing to attach.
                Err(_) if tasks::leader(&tree, leader.process).is_none() => {}
                Err(reason) => refused.push(format!("{} ({}): {reason}", leader.name, leader.process)),
            }
        }
        keep_masks(journal, masks)?;
        if !tree.is_live() {
            break;
        }
    }
    Ok((attached, refused))
}

/// Threads that may not run everywhere.
fn explicit_masks(tree: &Tree, leaders: &[tasks::Task]) -> Vec<TaskMask> {
    let online = topology::cpu_sets(tree).map(|sets| sets.online).unwrap_or_default();
    let of = |leader: &tasks::Task| {
        let process = leader.process;
        let mask = |tid: i32| {
            let old = tasks::affinity(tree, process, tid).filter(|mask| !online.is_subset(mask))?;
            Some(TaskMask { process, id: tasks::read(tree, process, tid)?.id, new: old.clone(), old })
        };
        tasks::threads(tree, process).into_iter().filter_map(mask).collect::<Vec<_>>()
    };
    leaders.iter().flat_map(of).collect()
}

/// Kernels before 6.2 forget explicit masks when a task is attached.
fn keep_masks(journal: &mut Journal, masks: Vec<TaskMask>) -> Result<(), Error> {
    let tree = journal.tree().clone();
    let lost = |mask: &TaskMask| {
        tasks::affinity(&tree, mask.process, mask.id.tid).is_some_and(|now| now != mask.old)
    };
    let lost: Vec<TaskMask> = masks.into_iter().filter(lost).collect();
    if lost.is_empty() {
        return Ok(());
    }
    journal.announce(Change::Masks { tasks: lost.clone() })?;
    for mask in lost {
        let _ = affinity::set(&tree, mask.process, mask.id.tid, &mask.old);
    }
    Ok(())
}

/// The one write that moves every attached task. In v1 it returns when they have left.
pub fn apply(tree: &Tree, own: &str, usable: &CpuSet) -> Result<(), Error> {
    tree.write(&format!("{own}/cpuset.cpus"), &usable.to_string())
}

fn members(tree: &Tree, cgroup: &str, file: &str) -> HashSet<i32> {
    let text = tree.text(&format!("{cgroup}/{file}")).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Attaches processes that have appeared in the root since. `known` avoids checking kernel threads again.
pub fn sweep(journal: &mut Journal, known: &mut HashSet<i32>) -> Result<usize, Error> {
    let tree = journal.tree().clone();
    let Some(mount) = mount(&tree) else {
        return Ok(0);
    };
    let now = members(&tree, &mount, "cgroup.procs");
    known.retain(|pid| now.contains(pid));
    let is_newcomer =
        |pid: &&i32| !known.contains(pid) && tasks::leader(&tree, **pid).is_some_and(|task| !task.kernel);
    let found = now.iter().filter(is_newcomer).count();
    let swept = if found > 0 { attach(journal, &mount, &Scope::All)?.0 } else { 0 };
    known.extend(members(&tree, &mount, "cgroup.procs"));
    Ok(swept)
}
