//! Affinities of guests' threads, journaled once each.
//!
//! Promises: a thread's first mask and the CPUs that eft may choose from are in the journal before it is touched; it is
//! never given a CPU outside of its first mask; a mask that another program set is reported and left alone.

use std::collections::{BTreeMap, BTreeSet};

use eft_machine::CpuSet;

use crate::actuators::affinity;
use crate::error::{Error, error};
use crate::journal::{Change, Journal};
use crate::sensors::tasks::{self, TaskId};
use crate::sensors::topology;

struct Placed {
    process: i32,
    /// The CPUs of this thread that eft may choose from.
    within: CpuSet,
    present: CpuSet,
    entry: u64,
}

pub struct Placer {
    journal: Journal,
    /// CPUs that eft may choose from.
    usable: CpuSet,
    placed: BTreeMap<TaskId, Placed>,
    /// Threads that another program has placed meanwhile.
    left_alone: BTreeMap<TaskId, String>,
    /// Threads that the kernel does not let us place; tried again after each [`Placer::check`].
    refused: BTreeSet<TaskId>,
    pub calls: u64,
}

impl Placer {
    pub fn new(journal: Journal, usable: CpuSet) -> Self {
        Self {
            journal,
            usable,
            placed: BTreeMap::new(),
            left_alone: BTreeMap::new(),
            refused: BTreeSet::new(),
            calls: 0,
        }
    }

    /// Takes a thread over; returns its first mask, within the CPUs that eft may use.
    pub fn take(&mut self, process: i32, id: TaskId) -> Result<CpuSet, Error> {
        if let Some(placed) = self.placed.get(&id) {
            return Ok(placed.within.clone());
        }
        let tree = self.journal.tree().clone();
        let gone = || error!(Gone, "thread {} has ended", id.tid);
        // The mask of `/proc` includes CPUs that are offline now; they belong to the thread again when they come back.
        let original = tasks::affinity(&tree, process, id.tid).ok_or_else(gone)?;
        tasks::read(&tree, process, id.tid).filter(|task| task.id == id).ok_or_else(gone)?;
        let within = original.and(&self.usable);
        if within.is_empty() {
            return Err(error!(
                Refused,
                "thread {} may run on CPU {original} only, and none of these is to be used", id.tid
            ));
        }
        let change = Change::Placed { process, thread: id, old: original.clone(), within: within.clone() };
        let entry = self.journal.announce(change)?;
        self.placed.insert(id, Placed { process, present: original, within: within.clone(), entry });
        Ok(within)
    }

    /// Puts a thread on `cpus`, as far as its operator allows. Returns whether anything changed. If the kernel refuses,
    /// the thread is left alone for a while.
    pub fn put(&mut self, id: TaskId, cpus: &CpuSet) -> Result<bool, Error> {
        let Some(placed) = self.placed.get_mut(&id) else { return Ok(false) };
        if self.left_alone.contains_key(&id) || self.refused.contains(&id) {
            return Ok(false);
        }
        let wanted = cpus.and(&placed.within);
        if wanted.is_empty() || wanted == placed.present {
            return Ok(false);
        }
        self.calls += 1;
        if let Err(reason) = affinity::set(self.journal.tree(), placed.process, id.tid, &wanted) {
            if affinity::get(self.journal.tree(), placed.process, id.tid).is_some() {
                self.refused.insert(id);
            }
            return Err(reason);
        }
        placed.present = wanted;
        Ok(true)
    }

    pub fn is_left_alone(&self, id: TaskId) -> bool {
        self.left_alone.contains_key(&id) || self.refused.contains(&id)
    }

    /// Checks whether all masks are as eft left them. If another program has changed a mask, that was on purpose: eft
    /// leaves the thread alone from now on. A change because CPUs went offline does not count.
    pub fn check(&mut self) -> Vec<String> {
        self.refused.clear();
        let tree = self.journal.tree();
        let online = topology::online(tree).unwrap_or_default();
        let mut changed = Vec::new();
        for (id, placed) in self.placed.iter_mut().filter(|(id, _)| !self.left_alone.contains_key(id)) {
            let Some(now) = affinity::get(tree, placed.process, id.tid) else { continue };
            let left = placed.present.and(&online);
            if now == placed.present || now == left {
                continue;
            }
            if left.is_empty() {
                // The kernel lets a thread run anywhere when the last CPU of its mask goes offline.
                placed.present = now;
                continue;
            }
            let told = format!("thread {}: another program put it on CPU {now}; it is left alone", id.tid);
            changed.push((*id, told));
        }
        self.left_alone.extend(changed.iter().cloned());
        changed.into_iter().map(|(_, told)| told).collect()
    }

    /// Releases a thread that has ended or is no longer managed.
    pub fn release(&mut self, id: TaskId) -> Result<(), Error> {
        self.left_alone.remove(&id);
        self.refused.remove(&id);
        let Some(placed) = self.placed.remove(&id) else { return Ok(()) };
        let notes = self.journal.undo(|entry| entry.id == placed.entry);
        notes.into_iter().next().map_or(Ok(()), |note| Err(Error::System(note)))
    }

    /// Restores everything as it was before; returns notes.
    pub fn restore(&mut self) -> Vec<String> {
        let entries: Vec<u64> = self.placed.values().map(|placed| placed.entry).collect();
        self.placed.clear();
        self.journal.undo(|entry| entries.contains(&entry.id))
    }
}

impl Drop for Placer {
    fn drop(&mut self) {
        // This also runs when a panic unwinds. Callers that want the notes call `restore` first.
        let _ = self.restore();
    }
}

#[cfg(test)]
mod tests;
