//! Real offlining, and restoring what the kernel forgets by it.
//!
//! Offlining takes the CPU out of every v1 cpuset that names it and breaks the affinity of tasks bound to it; onlining
//! restores nothing. Promises: eft's cpusets and all affinities are recorded first and re-applied. A CPU that another
//! program's cpuset names is left alone unless `force` is set.

use eft_machine::{CpuId, CpuSet};

use super::{affinity, bolt, expedite, urgent};
use crate::error::{Error, error};
use crate::journal::{Change, Journal, TaskMask};
use crate::sensors::{Tree, tasks, topology};

use super::cpuset_v1;

#[derive(Clone, Copy, Debug, Default)]
pub struct HotplugOptions {
    /// Take it offline although another program's cpuset names it.
    pub force: bool,
    /// Do not expedite grace periods.
    pub native: bool,
}

/// What switches CPUs, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Bolt,
    Expedited,
    Native,
}

impl By {
    pub fn name(self) -> &'static str {
        match self {
            By::Bolt => "the kernel's Bolt",
            By::Expedited => "expedited hotplug",
            By::Native => "native hotplug",
        }
    }
}

/// The best way that this kernel has. With Bolt on, its `online` files use Bolt too, so `native` affects grace periods
/// only where Bolt is off.
pub fn way(tree: &Tree, options: HotplugOptions) -> By {
    match options.native {
        _ if bolt::is_on(tree) => By::Bolt,
        true => By::Native,
        false => By::Expedited,
    }
}

fn online_path(cpu: CpuId) -> String {
    format!("{}/online", topology::dir(cpu))
}

pub fn is_online(tree: &Tree, cpu: CpuId) -> bool {
    // CPU 0 has no such file on x86: it is always online.
    tree.number::<u32>(&online_path(cpu)).is_none_or(|flag| flag != 0)
}

/// Only switches the CPU; does nothing if it is already in this state.
pub fn set_online(tree: &Tree, cpu: CpuId, online: bool) -> Result<(), Error> {
    if is_online(tree, cpu) == online {
        return Ok(());
    }
    let verb = if online { "online" } else { "offline" };
    tree.write(&online_path(cpu), if online { "1" } else { "0" })
        .map_err(|reason| error!(Refused, "CPU {cpu} does not go {verb}: {reason}"))
}

/// Whether these CPUs may be switched at all.
pub fn check(tree: &Tree, cpus: &CpuSet) -> Result<(), Error> {
    match cpus.iter().find(|cpu| !tree.exists(&online_path(*cpu))) {
        Some(cpu) => Err(error!(
            Missing,
            "CPU {cpu} cannot be taken offline or brought online: the kernel has no switch for it"
        )),
        None => Ok(()),
    }
}

/// What offlining will make the kernel forget. It is collected in advance: with a thousand threads that takes
/// milliseconds.
pub struct Prepared {
    changes: Vec<(CpuId, Change)>,
}

impl Prepared {
    /// For callers that switch the CPUs by other means.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().map(|(_, change)| change)
    }
}

pub fn prepare(journal: &Journal, cpus: &CpuSet, options: HotplugOptions) -> Result<Prepared, Error> {
    let tree = journal.tree();
    check(tree, cpus)?;
    let online: Vec<CpuId> = cpus.iter().filter(|cpu| is_online(tree, *cpu)).collect();
    if !options.force {
        online.iter().try_for_each(|cpu| refuse_if_named_by_others(journal, *cpu))?;
    }
    let threads = all_threads(tree);
    let change = |cpu: CpuId| {
        let (cpusets, tasks) = (cpuset_v1::own_naming(tree, cpu), bound_to(tree, &threads, cpu));
        (cpu, Change::Offline { cpu, cpusets, tasks })
    };
    Ok(Prepared { changes: online.into_iter().map(change).collect() })
}

/// Takes CPUs offline: in one operation by the kernel's Bolt, else one after the other. All or none.
pub fn offline(
    journal: &mut Journal,
    cpus: &CpuSet,
    options: HotplugOptions,
) -> Result<Option<String>, Error> {
    with_grace_periods(journal, cpus, options, |journal| {
        if way(journal.tree(), options) == By::Bolt {
            return offline_at_once(journal, cpus, options);
        }
        let prepared = prepare(journal, cpus, options)?;
        let mut taken = CpuSet::new();
        for (cpu, change) in prepared.changes {
            if let Err(reason) = offline_one(journal, cpu, change) {
                // All or none: the CPUs that are already offline come back.
                let back = |entry: &crate::journal::Entry| matches!(&entry.change, Change::Offline { cpu, .. } if taken.contains(*cpu));
                journal.undo(back);
                return Err(reason);
            }
            taken.insert(cpu);
        }
        Ok(())
    })
}

fn offline_at_once(journal: &mut Journal, cpus: &CpuSet, options: HotplugOptions) -> Result<(), Error> {
    let prepared = prepare(journal, cpus, options)?;
    let (mut leaving, mut announced) = (CpuSet::new(), Vec::new());
    for (cpu, change) in prepared.changes {
        announced.push(journal.announce(change)?);
        leaving.insert(cpu);
    }
    bolt::set_online(journal.tree(), &leaving, false).or_else(|reason| {
        announced.into_iter().try_for_each(|id| journal.done(id))?;
        Err(reason)
    })
}

/// Carries out the operation with urgency: a change that interrupts every CPU must end soon, and must not queue behind
/// the threads that it interrupts.
fn with_grace_periods(
    journal: &mut Journal,
    cpus: &CpuSet,
    options: HotplugOptions,
    operation: impl FnOnce(&mut Journal) -> Result<(), Error>,
) -> Result<Option<String>, Error> {
    match way(journal.tree(), options) {
        By::Native => operation(journal).map(|()| None),
        // Bolt waits for no grace period.
        By::Bolt => urgent::while_urgent(journal, cpus, |journal| operation(journal).map(|()| None)),
        By::Expedited => urgent::while_urgent(journal, cpus, |journal| {
            expedite::while_expedited(journal, operation).map(|((), why_not)| why_not)
        }),
    }
}

fn refuse_if_named_by_others(journal: &Journal, cpu: CpuId) -> Result<(), Error> {
    match cpuset_v1::named_by_others(journal.tree(), cpu) {
        Some(cpuset) => Err(error!(
            Refused,
            "CPU {cpu} is named by the cpuset {cpuset}, which is not eft's (systemd or a container runtime); it would lose the CPU. Use --force if that is meant"
        )),
        None => Ok(()),
    }
}

fn offline_one(journal: &mut Journal, cpu: CpuId, change: Change) -> Result<(), Error> {
    let id = journal.announce(change)?;
    match set_online(journal.tree(), cpu, false) {
        Ok(()) => Ok(()),
        Err(reason) => {
            journal.done(id)?;
            Err(reason)
        }
    }
}

/// User threads whose mask names this CPU, but not all CPUs: the kernel forgets the CPU for them.
fn bound_to(tree: &Tree, threads: &[(Option<i32>, i32)], cpu: CpuId) -> Vec<TaskMask> {
    let online = topology::online(tree).unwrap_or_default();
    let mask = |&(process, tid): &(Option<i32>, i32)| {
        // This skips almost all of a thousand threads.
        if tree.is_live() && !affinity::get(tree, tid, tid).is_some_and(|mask| is_bound(&mask, cpu, &online))
        {
            return None;
        }
        let process = process.or_else(|| tasks::process_of(tree, tid))?;
        let task = tasks::read(tree, process, tid).filter(|task| !task.kernel)?;
        let old = tasks::affinity(tree, process, tid).filter(|mask| is_bound(mask, cpu, &online))?;
        let rest = old.minus(&CpuSet::one(cpu));
        // If no CPU is left, the kernel lets the task run on any allowed CPU.
        let new = if rest.is_empty() { online.minus(&CpuSet::one(cpu)) } else { rest };
        Some(TaskMask { process, id: task.id, old, new })
    };
    threads.iter().filter_map(mask).collect()
}

fn is_bound(mask: &CpuSet, cpu: CpuId, online: &CpuSet) -> bool {
    mask.contains(cpu) && !online.is_subset(mask)
}

/// Every thread, with its process where that is known without reading more files.
fn all_threads(tree: &Tree) -> Vec<(Option<i32>, i32)> {
    if let Some(threads) = cpuset_v1::all_threads(tree).filter(|_| tree.is_live()) {
        return threads.into_iter().map(|tid| (None, tid)).collect();
    }
    let of = |process: i32| tasks::threads(tree, process).into_iter().map(move |tid| (Some(process), tid));
    tasks::processes(tree).into_iter().flat_map(of).collect()
}

/// Names the CPU again in the cpusets that lost it, if they are otherwise as they were.
pub fn give_back(tree: &Tree, cpu: CpuId, cpusets: &[(String, CpuSet)]) {
    for (path, before) in cpusets {
        let file = format!("{path}/cpuset.cpus");
        let now: CpuSet = tree.parsed(&file).unwrap_or_default();
        if tree.exists(&file) && now.is_subset(before) && !now.contains(cpu) {
            let mut cpus = now;
            cpus.insert(cpu);
            // A cpuset that was removed meanwhile needs nothing.
            let _ = tree.write(&file, &cpus.to_string());
        }
    }
}

/// Brings CPUs online. Those that eft took offline get their cpusets and masks back; others are journaled.
pub fn online(
    journal: &mut Journal,
    cpus: &CpuSet,
    options: HotplugOptions,
) -> Result<Option<String>, Error> {
    check(journal.tree(), cpus)?;
    with_grace_periods(journal, cpus, options, |journal| {
        if way(journal.tree(), options) == By::Bolt {
            online_at_once(journal, cpus)?;
        }
        for cpu in cpus.iter() {
            online_one(journal, cpu)?;
        }
        Ok(())
    })
}

/// Only switches the CPUs. What the kernel forgot is restored for each CPU, as without Bolt.
fn online_at_once(journal: &mut Journal, cpus: &CpuSet) -> Result<(), Error> {
    let tree = journal.tree().clone();
    let coming: CpuSet = cpus.iter().filter(|cpu| !is_online(&tree, *cpu)).collect();
    let foreign: Vec<CpuId> = coming.iter().filter(|cpu| taken_by_us(journal, *cpu).is_none()).collect();
    let announced = foreign
        .iter()
        .map(|cpu| journal.announce(Change::Online { cpu: *cpu }))
        .collect::<Result<Vec<_>, _>>()?;
    bolt::set_online(&tree, &coming, true).or_else(|reason| {
        announced.into_iter().try_for_each(|id| journal.done(id))?;
        Err(reason)
    })
}

fn taken_by_us(journal: &Journal, cpu: CpuId) -> Option<crate::journal::Entry> {
    let took = |entry: &&crate::journal::Entry| matches!(&entry.change, Change::Offline { cpu: own, .. } if *own == cpu);
    journal.entries().iter().find(took).cloned()
}

fn online_one(journal: &mut Journal, cpu: CpuId) -> Result<(), Error> {
    let offlined = taken_by_us(journal, cpu);
    let tree = journal.tree().clone();
    let Some(entry) = offlined else {
        if is_online(&tree, cpu) {
            return Ok(());
        }
        let id = journal.announce(Change::Online { cpu })?;
        return set_online(&tree, cpu, true).inspect_err(|_| {
            let _ = journal.done(id);
        });
    };
    if let Change::Offline { cpusets, tasks, .. } = &entry.change {
        bring_back(&tree, cpu, cpusets, tasks)?;
    }
    journal.done(entry.id)
}

/// Brings back a CPU that eft took offline, and restores the cpusets and masks that lost it.
pub fn bring_back(
    tree: &Tree,
    cpu: CpuId,
    cpusets: &[(String, CpuSet)],
    tasks: &[TaskMask],
) -> Result<(), Error> {
    set_online(tree, cpu, true)?;
    give_back(tree, cpu, cpusets);
    affinity::give_back(tree, tasks);
    Ok(())
}

/// CPUs that eft has taken offline.
pub fn offlined(journal: &Journal) -> CpuSet {
    let cpu = |entry: &crate::journal::Entry| {
        if let Change::Offline { cpu, .. } = entry.change { Some(cpu) } else { None }
    };
    journal.entries().iter().filter_map(cpu).filter(|cpu| !is_online(journal.tree(), *cpu)).collect()
}

/// Sets a thread's mask and remembers the old one.
pub fn move_component(journal: &mut Journal, process: i32, tid: i32, cpus: &CpuSet) -> Result<(), Error> {
    let tree = journal.tree().clone();
    let task = tasks::read(&tree, process, tid)
        .ok_or_else(|| error!(Missing, "thread {tid} of process {process} does not exist"))?;
    let old = tasks::affinity(&tree, process, tid).ok_or_else(|| error!(Gone, "thread {tid} has ended"))?;
    let id = journal
        .announce(Change::Masks { tasks: vec![TaskMask { process, id: task.id, old, new: cpus.clone() }] })?;
    affinity::set(&tree, process, tid, cpus).inspect_err(|_| {
        let _ = journal.done(id);
    })
}
