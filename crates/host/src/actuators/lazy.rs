//! The lazy part of parking: steps that may wait, and are skipped if the CPU comes back first.
//!
//! Promises: each step is taken under the journal's lock, for CPUs that are parked at that moment.

use std::collections::{BTreeSet, HashSet};

use eft_base::Instant;
use eft_cores::park::{Delays, STEPS, Step, Urgency};
use eft_machine::{CpuId, CpuSet};

use super::parking::{Parking, give_masks_back};
use super::{affinity, hotplug, interrupts};
use crate::error::{Error, error};
use crate::journal::{Change, Journal, TaskMask};
use crate::sensors::{tasks, topology};

const WORKQUEUE_MASK: &str = "sys/devices/virtual/workqueue/cpumask";
const TIMER_MIGRATION: &str = "proc/sys/kernel/timer_migration";
const STAT_REFRESH: &str = "proc/sys/vm/stat_refresh";

/// The lazy work of one parking.
#[derive(Debug, Default)]
pub struct LazyWork {
    done: BTreeSet<(CpuId, Step)>,
    known: HashSet<i32>,
    swept_at: Instant,
    pub swept: usize,
    pub notes: Vec<String>,
}

/// One parked CPU and the moment it was parked, on any clock.
#[derive(Clone, Copy, Debug)]
pub struct ParkedSince {
    pub cpu: CpuId,
    pub since: Instant,
}

pub struct LazyOptions<'a> {
    pub delays: Delays,
    pub spread: &'a [u32],
    pub force: bool,
}

impl LazyWork {
    /// When the next step is due; `None` if nothing is parked.
    pub fn next(&self, parked: &[ParkedSince], delays: &Delays, sweeps: bool) -> Option<Instant> {
        let of = |cpu: &ParkedSince| {
            let open = STEPS
                .iter()
                .filter(|(step, _)| *step != Step::SweepNewcomers && !self.done.contains(&(cpu.cpu, *step)));
            open.filter_map(|(step, _)| delays.due(*step)).map(|due| cpu.since + due).min()
        };
        let sweep = (sweeps && !parked.is_empty()).then_some(self.swept_at + delays.sweep);
        parked.iter().filter_map(of).chain(sweep).min()
    }

    /// Takes every step that is due at `now`.
    pub fn run(
        &mut self,
        journal: &mut Journal,
        parking: &Parking,
        parked: &[ParkedSince],
        options: &LazyOptions,
        now: Instant,
    ) {
        let set: CpuSet = parked.iter().map(|cpu| cpu.cpu).collect();
        self.done.retain(|(cpu, _)| set.contains(*cpu));
        if set.is_empty() {
            return;
        }
        if now >= self.swept_at + options.delays.sweep {
            self.swept_at = now;
            match parking.sweep(journal, &set, &mut self.known) {
                Ok(count) => self.swept += count,
                Err(reason) => self.note(reason.to_string()),
            }
        }
        for (step, _) in
            STEPS.iter().filter(|(step, urgency)| *urgency == Urgency::Lazy && *step != Step::SweepNewcomers)
        {
            let Some(delay) = options.delays.due(*step) else {
                continue;
            };
            let due = |cpu: &&ParkedSince| now >= cpu.since + delay && !self.done.contains(&(cpu.cpu, *step));
            let due: CpuSet = parked.iter().filter(due).map(|cpu| cpu.cpu).collect();
            if due.is_empty() {
                continue;
            }
            if let Err(reason) = take(journal, *step, &set, &due, options) {
                self.note(format!("{step:?}: {reason}"));
            }
            self.done.extend(due.iter().map(|cpu| (cpu, *step)));
        }
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < 100 && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

fn take(
    journal: &mut Journal,
    step: Step,
    parked: &CpuSet,
    due: &CpuSet,
    options: &LazyOptions,
) -> Result<(), Error> {
    let usable = topology::cpu_sets(journal.tree())?.online.minus(parked);
    match step {
        Step::SweepKernelThreads => move_kernel_threads(journal, parked, &usable),
        Step::WorkqueueMask if journal.tree().exists(WORKQUEUE_MASK) => {
            journal.write(WORKQUEUE_MASK, &usable.to_mask())
        }
        // With this on, timers of an idle CPU are armed on other CPUs; pinned timers stay until real offlining.
        Step::MoveTimers if journal.tree().exists(TIMER_MIGRATION) => journal.write(TIMER_MIGRATION, "1"),
        Step::MoveInterrupts => {
            let report = interrupts::move_off(journal, &usable, parked, options.spread);
            let refused: Vec<String> = report.refused.iter().map(u32::to_string).collect();
            if refused.is_empty() {
                Ok(())
            } else {
                Err(error!(System, "the kernel will not move interrupt {}", refused.join(",")))
            }
        }
        // Folds the per-CPU counters of virtual memory; changes nothing, so nothing is journaled.
        Step::Statistics if journal.tree().exists(STAT_REFRESH) => journal.tree().write(STAT_REFRESH, "1"),
        Step::Offline => {
            let hotplug_options = hotplug::HotplugOptions { force: options.force, native: false };
            hotplug::offline(journal, due, hotplug_options).map(|_| ())
        }
        _ => Ok(()),
    }
}

/// Kernel threads that may run anywhere. Those bound to a CPU stay: the kernel parks them when it goes offline.
fn move_kernel_threads(journal: &mut Journal, parked: &CpuSet, usable: &CpuSet) -> Result<(), Error> {
    let tree = journal.tree().clone();
    let mask = |task: tasks::Task| {
        let old = tasks::affinity(&tree, task.process, task.id.tid)?;
        let new = old.minus(parked).and(usable);
        let moves = old.len() > 1 && !old.and(parked).is_empty() && !new.is_empty();
        moves.then_some(TaskMask { process: task.process, id: task.id, old, new })
    };
    let movable = tasks::processes(&tree).into_iter().filter_map(|pid| tasks::leader(&tree, pid));
    let masks: Vec<TaskMask> =
        movable.filter(|task| task.kernel && !task.pinned_by_kernel).filter_map(mask).collect();
    if masks.is_empty() {
        return Ok(());
    }
    journal.announce(Change::Masks { tasks: masks.clone() })?;
    for mask in masks {
        // The kernel may refuse; the residue shows the threads that stay.
        let _ = affinity::set(&tree, mask.process, mask.id.tid, &mask.new);
    }
    Ok(())
}

/// After CPUs came back: undoes the lazy steps that were taken for them.
pub fn give_back(journal: &mut Journal, parked: &CpuSet, spread: &[u32]) -> Result<Vec<String>, Error> {
    let mut notes = give_masks_back(journal, parked)?;
    notes.extend(interrupts::move_back(journal, spread));
    let is_global = |path: &str| path == WORKQUEUE_MASK || path == TIMER_MIGRATION;
    if parked.is_empty() {
        notes.extend(
            journal.undo(|entry| matches!(&entry.change, Change::Write { path, .. } if is_global(path))),
        );
    } else if journal
        .entries()
        .iter()
        .any(|entry| matches!(&entry.change, Change::Write { path, .. } if path == WORKQUEUE_MASK))
    {
        let usable = topology::cpu_sets(journal.tree())?.online.minus(parked);
        journal.write(WORKQUEUE_MASK, &usable.to_mask())?;
    }
    Ok(notes)
}
