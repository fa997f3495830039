//! Parking a whole set of CPUs at once: the critical part of Bolt's reconfiguration, over three back ends.
//!
//! Promises: [`Parking::apply`] is absolute: it makes exactly `parked` parked, and returns when no task of the scope runs
//! there. If it cannot do that, it changes nothing. The lazy part is in [`super::lazy`].

use std::collections::HashSet;
use std::time::{Duration, Instant};

use eft_cores::park::ParkBackEnd;
use eft_machine::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};

use super::interrupts::InterruptReport;
use super::scope::{self, Scope};
use super::{affinity, cpuset_v1, cpuset_v2, hotplug, interrupts};
use crate::error::{Error, error};
use crate::journal::{Change, Journal, TaskMask};
use crate::sensors::{Tree, tasks, topology};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParkOptions {
    /// `None`: the first that this machine has.
    pub back_end: Option<ParkBackEnd>,
    pub scope: Scope,
    /// Interrupts that stay spread over the managed CPUs.
    pub spread: Vec<u32>,
    pub managed: CpuSet,
    /// Park although another program's cpuset names the CPU; the tasks of that cpuset may stay.
    pub force: bool,
}

/// A thread of a component, and where it goes.
#[derive(Clone, Debug)]
pub struct ComponentMove {
    pub process: i32,
    pub tid: i32,
    pub cpus: CpuSet,
}

/// What set-up did, once.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SetUp {
    pub back_end: String,
    pub processes_attached: usize,
    /// Processes that could not be attached: they may stay on parked CPUs.
    pub refused: Vec<String>,
    pub interrupts: InterruptReport,
}

#[derive(Clone, Debug)]
pub struct Parking {
    back_end: ParkBackEnd,
    scope: Scope,
    /// Our cpuset; searched for only once, since the search takes longer than parking.
    cpuset: String,
}

/// Which back ends this machine has, in order of preference.
pub fn available(tree: &Tree) -> Vec<ParkBackEnd> {
    let has = |back_end: &ParkBackEnd| match back_end {
        ParkBackEnd::V2 => cpuset_v2::mount(tree).is_some(),
        ParkBackEnd::V1 => cpuset_v1::mount(tree).is_some(),
        ParkBackEnd::Affinity => true,
    };
    ParkBackEnd::IN_ORDER.into_iter().filter(has).collect()
}

/// The back end that [`Parking::set_up`] will use.
pub fn choose(tree: &Tree, options: &ParkOptions) -> Result<ParkBackEnd, Error> {
    let available = available(tree);
    match options.back_end {
        Some(named) if !available.contains(&named) => {
            Err(error!(Missing, "the back end {named} is not available: no such cpuset is mounted"))
        }
        Some(ParkBackEnd::V2) if options.scope != Scope::All => {
            Err(error!(Refused, "the back end v2 isolates CPUs from everybody; a scope needs v1 or affinity"))
        }
        Some(named) => Ok(named),
        None => {
            let fits = |back_end: &&ParkBackEnd| **back_end != ParkBackEnd::V2 || options.scope == Scope::All;
            available.iter().find(fits).copied().ok_or_else(|| error!(Missing, "no back end is available"))
        }
    }
}

impl Parking {
    /// The back end as it was set up before.
    pub fn resume(tree: &Tree, back_end: ParkBackEnd, scope: Scope) -> Self {
        let cpuset = match back_end {
            ParkBackEnd::V2 => cpuset_v2::own(tree),
            ParkBackEnd::V1 => cpuset_v1::own(tree),
            ParkBackEnd::Affinity => None,
        };
        // Without a cpuset the later write fails with an error.
        Self { back_end, scope, cpuset: cpuset.unwrap_or_default() }
    }

    pub fn back_end(&self) -> ParkBackEnd {
        self.back_end
    }

    /// Done once: cpusets, attaching, interrupts to the base CPUs.
    pub fn set_up(journal: &mut Journal, options: &ParkOptions) -> Result<(Self, SetUp), Error> {
        let tree = journal.tree().clone();
        let back_end = choose(&tree, options)?;
        if !options.force {
            for cpu in options.managed.iter() {
                if let Some(cpuset) = cpuset_v1::named_by_others(&tree, cpu) {
                    return Err(error!(
                        Refused,
                        "CPU {cpu} is named by the cpuset {cpuset}, which is not eft's (systemd or a container runtime); its tasks would stay. Use --force to park all the same"
                    ));
                }
            }
        }
        let online = topology::cpu_sets(&tree)?.online;
        let base = online.minus(&options.managed);
        let base = if base.is_empty() { CpuSet::one(CpuId(0)) } else { base };
        let (processes_attached, refused) = match back_end {
            ParkBackEnd::V2 => cpuset_v2::set_up(journal).map(|()| (0, Vec::new()))?,
            ParkBackEnd::V1 => cpuset_v1::set_up(journal, &options.scope, &online)?,
            ParkBackEnd::Affinity => {
                scope::processes(&tree, &options.scope).map(|found| (found.len(), Vec::new()))?
            }
        };
        let interrupts = interrupts::set_base(journal, &base, &options.managed, &options.spread)?;
        let set_up = SetUp { back_end: back_end.name().into(), processes_attached, refused, interrupts };
        Ok((Self::resume(&tree, back_end, options.scope.clone()), set_up))
    }

    /// Makes `parked` the parked set. Returns how long the call took.
    pub fn apply(
        &self,
        journal: &mut Journal,
        parked: &CpuSet,
        components: &[ComponentMove],
    ) -> Result<Duration, Error> {
        let begin = Instant::now();
        for component in components {
            hotplug::move_component(journal, component.process, component.tid, &component.cpus)?;
        }
        match self.back_end {
            ParkBackEnd::V2 => cpuset_v2::apply(journal.tree(), &self.cpuset, parked)?,
            ParkBackEnd::V1 => {
                let online = topology::online(journal.tree())?;
                cpuset_v1::apply(journal.tree(), &self.cpuset, &online.minus(parked))?;
            }
            ParkBackEnd::Affinity => {
                give_masks_back(journal, parked)?;
                take_from_masks(journal, &self.scope, parked)?;
            }
        }
        Ok(begin.elapsed())
    }

    /// Moves new tasks, which the critical step could not know. Returns how many were moved.
    pub fn sweep(
        &self,
        journal: &mut Journal,
        parked: &CpuSet,
        known: &mut HashSet<i32>,
    ) -> Result<usize, Error> {
        match self.back_end {
            // The kernel keeps new tasks out of a partition.
            ParkBackEnd::V2 => Ok(0),
            ParkBackEnd::V1 if self.scope == Scope::All => cpuset_v1::sweep(journal, known),
            // Descendants are born into the cpuset.
            ParkBackEnd::V1 => Ok(0),
            ParkBackEnd::Affinity => take_from_masks(journal, &self.scope, parked),
        }
    }
}

/// Affinity back end: takes `parked` out of every mask of the scope that names it. Twice, since new threads start.
fn take_from_masks(journal: &mut Journal, scope: &Scope, parked: &CpuSet) -> Result<usize, Error> {
    let tree = journal.tree().clone();
    if parked.is_empty() {
        return Ok(0);
    }
    let usable = topology::cpu_sets(&tree)?.online.minus(parked);
    let mut moved = 0;
    for _ in 0..2 {
        let leaders = scope::processes(&tree, scope)?;
        let masks: Vec<TaskMask> =
            leaders.iter().flat_map(|leader| masks_naming(&tree, leader.process, parked, &usable)).collect();
        if masks.is_empty() {
            break;
        }
        journal.announce(Change::Masks { tasks: masks.clone() })?;
        // A thread that ends meanwhile is no failure.
        moved += masks
            .iter()
            .filter(|mask| affinity::set(&tree, mask.process, mask.id.tid, &mask.new).is_ok())
            .count();
    }
    Ok(moved)
}

fn masks_naming(tree: &Tree, process: i32, parked: &CpuSet, usable: &CpuSet) -> Vec<TaskMask> {
    let mask = |tid: i32| {
        let old = tasks::affinity(tree, process, tid).filter(|mask| !mask.and(parked).is_empty())?;
        let rest = old.minus(parked).and(usable);
        let new = if rest.is_empty() { usable.clone() } else { rest };
        Some(TaskMask { process, id: tasks::read(tree, process, tid)?.id, old, new })
    };
    tasks::threads(tree, process).into_iter().filter_map(mask).collect()
}

/// Undoes mask changes, wholly or in part, that `parked` no longer needs; also those of kernel threads and components.
pub fn give_masks_back(journal: &mut Journal, parked: &CpuSet) -> Result<Vec<String>, Error> {
    let taken = |task: &TaskMask| task.old.minus(&task.new);
    let is_needed = |task: &TaskMask| !taken(task).and(parked).is_empty();
    let is_free = |change: &Change| matches!(change, Change::Masks { tasks } if !tasks.iter().any(is_needed));
    let notes = journal.undo(|entry| is_free(&entry.change));
    let tree = journal.tree().clone();
    for entry in journal.entries().to_vec() {
        let Change::Masks { tasks } = &entry.change else {
            continue;
        };
        if tasks.iter().all(|task| taken(task).is_subset(parked)) {
            continue;
        }
        let shrunk: Vec<TaskMask> =
            tasks.iter().map(|task| TaskMask { new: task.old.minus(parked), ..task.clone() }).collect();
        journal.announce(Change::Masks { tasks: shrunk.clone() })?;
        for (before, after) in tasks.iter().zip(&shrunk).filter(|(_, after)| !after.new.is_empty()) {
            if tasks::affinity(&tree, before.process, before.id.tid).is_some_and(|now| now == before.new) {
                // The task may end meanwhile.
                let _ = affinity::set(&tree, after.process, after.id.tid, &after.new);
            }
        }
        journal.done(entry.id)?;
    }
    Ok(notes)
}
