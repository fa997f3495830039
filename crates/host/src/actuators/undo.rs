//! Undoing the changes in the journal.
//!
//! Promises: a value that another program has changed meanwhile is left alone, with a note; an object that is gone
//! needs no undoing.

use eft_machine::CpuSet;

use super::{affinity, clock_modulation, expedite, hotplug, urgent};
use crate::error::{Error, error};
use crate::journal::{Change, Entry, Journal, TaskMask, same_value};
use crate::sensors::{Tree, tasks};

impl Journal {
    /// Undoes the entries that `choose` picks, last first. An entry that cannot be undone stays; a note says why.
    pub fn undo(&mut self, choose: impl Fn(&Entry) -> bool) -> Vec<String> {
        let chosen: Vec<Entry> = self.entries().iter().rev().filter(|entry| choose(entry)).cloned().collect();
        let mut notes = Vec::new();
        for entry in chosen {
            let is_last_hold =
                self.entries().iter().filter(|other| other.change == Change::Expedite).count() <= 1;
            match undo(self.tree(), &entry.change, is_last_hold) {
                Ok(note) => {
                    notes.extend(note);
                    notes.extend(self.done(entry.id).err().map(|error| error.to_string()));
                }
                Err(reason) => notes.push(format!("not undone, and kept in the journal: {reason}")),
            }
        }
        notes
    }

    /// Undoes what dead processes left behind. Returns the number of changes and notes on them.
    pub fn recover(&mut self) -> (usize, Vec<String>) {
        let live = Tree::live();
        let before = self.entries().len();
        let notes = self.undo(|entry| !tasks::is_alive(&live, entry.owner));
        (before - self.entries().len(), notes)
    }
}

/// `Ok`, perhaps with a note; `Err` if it must be tried again.
fn undo(tree: &Tree, change: &Change, is_last_hold: bool) -> Result<Option<String>, Error> {
    match change {
        Change::Write { path, old, new } => undo_write(tree, path, old, new),
        Change::MakeCgroup { path } => remove_cgroup(tree, path).map(|()| None),
        Change::Controller { path } => {
            // The kernel refuses this while other cpusets below are in use: then the controller stays enabled.
            let _ = tree.write(path, "-cpuset");
            Ok(None)
        }
        Change::Attach { processes, from, to } => {
            for process in processes.iter().filter(|process| is_same(tree, process)) {
                if is_member(tree, process.tid, to) {
                    // A process that ends meanwhile is no failure.
                    let _ = tree.write(&format!("{from}/cgroup.procs"), &process.tid.to_string());
                }
            }
            Ok(None)
        }
        Change::Masks { tasks } => {
            restore_masks(tree, tasks);
            Ok(None)
        }
        Change::Placed { process, thread, old, within } => {
            restore_placed(tree, *process, *thread, old, within)
        }
        Change::Offline { cpu, cpusets, tasks } => {
            hotplug::bring_back(tree, *cpu, cpusets, tasks).map(|()| None)
        }
        Change::Online { cpu } => hotplug::set_online(tree, *cpu, false).map(|()| None),
        Change::Expedite if is_last_hold => expedite::lower(tree).map(|()| None),
        Change::Expedite => Ok(None),
        Change::Urgent { threads } => {
            let live = threads.iter().filter(|thread| tree.is_live() && is_same(tree, &thread.id));
            urgent::lower(&live.copied().collect::<Vec<_>>());
            Ok(None)
        }
        Change::Msr { cpu, register, old, new } => match clock_modulation::read(tree, *cpu, *register) {
            Ok(now) if now == *new => clock_modulation::write(tree, *cpu, *register, *old).map(|()| None),
            Ok(now) if now == *old => Ok(None),
            Ok(_) => Ok(Some(format!(
                "MSR {register:#x} of CPU {cpu} was changed by another program; left as it is"
            ))),
            Err(reason) => Err(reason),
        },
    }
}

fn undo_write(tree: &Tree, path: &str, old: &str, new: &str) -> Result<Option<String>, Error> {
    if !tree.exists(path) {
        return Ok(None);
    }
    let now = tree.read(path)?;
    if same_value(&now, old) {
        return Ok(None);
    }
    if !same_value(&now, new) {
        return Ok(Some(format!("/{path} was set to '{}' by another program; left as it is", now.trim())));
    }
    // An empty list is written as a line of its own: a write of no bytes does nothing.
    let value = if old.is_empty() { "\n" } else { old };
    tree.write(path, value).map(|()| None)
}

fn is_same(tree: &Tree, id: &tasks::TaskId) -> bool {
    tasks::leader(tree, id.tid).is_some_and(|task| task.id.started == id.started)
}

fn is_member(tree: &Tree, pid: i32, cgroup: &str) -> bool {
    let members = tree.text(&format!("{cgroup}/cgroup.procs")).unwrap_or_default();
    members.lines().any(|line| line.trim().parse() == Ok(pid))
}

fn restore_masks(tree: &Tree, tasks: &[TaskMask]) {
    for task in tasks {
        let same = tasks::read(tree, task.process, task.id.tid).is_some_and(|found| found.id == task.id);
        let untouched = tasks::affinity(tree, task.process, task.id.tid).is_some_and(|mask| mask == task.new);
        if same && untouched {
            // The task may end between the check and the call.
            let _ = affinity::set(tree, task.process, task.id.tid, &task.old);
        }
    }
}

/// Restores a thread that is where eft may have put it; if it is elsewhere, another program has placed it.
fn restore_placed(
    tree: &Tree,
    process: i32,
    id: tasks::TaskId,
    old: &CpuSet,
    within: &CpuSet,
) -> Result<Option<String>, Error> {
    if tasks::read(tree, process, id.tid).is_none_or(|found| found.id != id) {
        return Ok(None);
    }
    let Some(now) = affinity::get(tree, process, id.tid) else { return Ok(None) };
    if now == *old {
        return Ok(None);
    }
    if !now.is_subset(within) {
        return Ok(Some(format!("thread {} was put on CPU {now} by another program; left as it is", id.tid)));
    }
    affinity::set(tree, process, id.tid, old).map(|()| None)
}

/// Moves the tasks of a cgroup to its parent and removes it, children first.
fn remove_cgroup(tree: &Tree, path: &str) -> Result<(), Error> {
    if !tree.exists(path) {
        return Ok(());
    }
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    // Tasks fork while they are moved; a few rounds catch the new ones.
    for _ in 0..16 {
        let members = tree.text(&format!("{path}/cgroup.procs")).unwrap_or_default();
        if members.is_empty() {
            break;
        }
        for process in members.lines() {
            let _ = tree.write(&format!("{parent}/cgroup.procs"), process);
        }
        if !tree.is_live() {
            let _ = std::fs::remove_dir_all(tree.path(path));
        }
    }
    let removed = if tree.is_live() {
        std::fs::remove_dir(tree.path(path))
    } else {
        std::fs::remove_dir_all(tree.path(path))
    };
    match removed {
        Err(error) if tree.exists(path) => Err(error!(System, "/{path} cannot be removed ({error})")),
        _ => Ok(()),
    }
}
