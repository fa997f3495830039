//! Parking by an isolated partition of cgroup v2: the parked CPUs belong exclusively to a cgroup without tasks. The
//! kernel moves every task away, whatever its affinity, and keeps new tasks out.

use eft_machine::{CpuId, CpuSet};

use crate::error::{Error, error};
use crate::journal::{Change, Journal};
use crate::sensors::Tree;

pub const OWN: &str = "eft-parked";

/// Where cgroup v2 is mounted with the cpuset controller, without the leading slash.
pub fn mount(tree: &Tree) -> Option<String> {
    let mounts = tree.text("proc/mounts")?;
    let mut mounted = mounts.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, at, "cgroup2", ..] = words[..] else {
            return None;
        };
        Some(at.trim_start_matches('/').to_string())
    });
    mounted.find(|at| {
        let controllers = tree.text(&format!("{at}/cgroup.controllers")).unwrap_or_default();
        controllers.split_whitespace().any(|controller| controller == "cpuset")
    })
}

/// A cgroup below the root, not ours, whose `cpuset.cpus` names the CPU. Two levels: slices and their services.
pub fn named_by_others(tree: &Tree, cpu: CpuId) -> Option<String> {
    let mount = mount(tree)?;
    let children = |dir: &str| -> Vec<String> {
        let dirs = tree.entries(dir).into_iter().map(|name| format!("{dir}/{name}"));
        dirs.filter(|path| tree.path(path).is_dir()).collect()
    };
    let own = format!("{mount}/{OWN}");
    let first = children(&mount);
    let second: Vec<String> = first.iter().flat_map(|dir| children(dir)).collect();
    let names = |path: &&String| {
        **path != own
            && tree.parsed::<CpuSet>(&format!("{path}/cpuset.cpus")).is_some_and(|cpus| cpus.contains(cpu))
    };
    first.iter().chain(&second).find(names).map(|path| format!("/{path}"))
}

/// Our cgroup, whether it exists or not.
pub fn own(tree: &Tree) -> Option<String> {
    Some(format!("{}/{OWN}", mount(tree)?))
}

pub fn set_up(journal: &mut Journal) -> Result<(), Error> {
    let tree = journal.tree().clone();
    let mount =
        mount(&tree).ok_or_else(|| error!(Missing, "no cgroup v2 with a cpuset controller is mounted"))?;
    enable_controller(journal, &mount)?;
    let own = format!("{mount}/{OWN}");
    if tree.exists(&own) {
        return Ok(());
    }
    let id = journal.announce(Change::MakeCgroup { path: own.clone() })?;
    std::fs::create_dir(tree.path(&own)).map_err(|error| {
        let _ = journal.done(id);
        error!(Denied, "/{own} cannot be made ({error}); this needs root on the host")
    })
}

fn enable_controller(journal: &mut Journal, mount: &str) -> Result<(), Error> {
    let path = format!("{mount}/cgroup.subtree_control");
    let enabled = journal.tree().text(&path).unwrap_or_default();
    if enabled.split_whitespace().any(|controller| controller == "cpuset") {
        return Ok(());
    }
    // This is not a plain value: a write to this file is a difference. A controller that stays enabled would change
    // nothing for others, but eft undoes what it has changed.
    let id = journal.announce(Change::Controller { path: path.clone() })?;
    journal.tree().write(&path, "+cpuset").inspect_err(|_| {
        let _ = journal.done(id);
    })
}

/// Makes `parked` the partition's CPUs. An empty set returns all CPUs.
pub fn apply(tree: &Tree, own: &str, parked: &CpuSet) -> Result<(), Error> {
    let (cpus, partition) = (format!("{own}/cpuset.cpus"), format!("{own}/cpuset.cpus.partition"));
    if parked.is_empty() {
        tree.write(&partition, "member")?;
        return tree.write(&cpus, "\n");
    }
    let before: Option<CpuSet> = tree.parsed(&cpus);
    let was_partition =
        tree.text(&partition).is_some_and(|state| matches!(state.as_str(), "isolated" | "root"));
    let applied = tree.write(&cpus, &parked.to_string()).and_then(|()| {
        if !was_partition {
            become_partition(tree, &partition)?;
        }
        match tree.text(&partition) {
            // "isolated invalid (reason)": the partition does not have the CPUs.
            Some(state) if state.contains("invalid") => {
                Err(error!(Refused, "the kernel refuses to isolate CPU {parked}: {state}"))
            }
            _ => Ok(()),
        }
    });
    applied.inspect_err(|_| {
        let back = before.filter(|_| was_partition);
        if back.is_none() {
            let _ = tree.write(&partition, "member");
        }
        let _ = tree.write(&cpus, &back.map_or("\n".into(), |before| before.to_string()));
    })
}

/// Older kernels have `root` only: tasks leave as with `isolated`, but load balancing stays on.
fn become_partition(tree: &Tree, partition: &str) -> Result<(), Error> {
    tree.write(partition, "isolated").or_else(|_| tree.write(partition, "root"))
}
