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
            let told = format!("thread {}: somebody else put it on CPU {now}; it is left alone", id.tid);
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
mod tests {
    use super::*;
    use crate::sensors::Tree;
    use std::process::{Child, Command};

    fn sleeper() -> (Child, TaskId) {
        let child = Command::new("sleep").arg("100").spawn().unwrap();
        let id = tasks::leader(&Tree::live(), child.id() as i32).unwrap().id;
        (child, id)
    }

    fn mask(id: TaskId) -> CpuSet {
        affinity::get(&Tree::live(), id.tid, id.tid).unwrap()
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Two CPUs that this test may use; `None` if there is only one.
    fn two() -> Option<(CpuSet, CpuSet)> {
        let all = affinity::get(&Tree::live(), 0, 0)?;
        let mut cpus = all.iter();
        Some((CpuSet::one(cpus.next()?), CpuSet::one(cpus.next()?)))
    }

    #[test]
    fn masks_are_as_before_after_an_exit_and_after_a_crash() {
        let Some((one, two)) = two() else { return };
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::live();
        let (child, id) = sleeper();
        let before = mask(id);
        let mut placer = Placer::new(Journal::lock(&tree, dir.path()).unwrap(), one.union(&two));
        assert_eq!(placer.take(id.tid, id).unwrap(), one.union(&two));
        assert!(placer.put(id, &one).unwrap() && !placer.put(id, &one).unwrap());
        assert!(placer.put(id, &two).unwrap());
        assert_eq!(mask(id), two);
        let lines = std::fs::read_to_string(dir.path().join("journal")).unwrap().lines().count();
        assert_eq!(lines, 1, "journaled once, not at every turn");
        // A crash: nothing is restored, the lock is released, the journal stays.
        placer.placed.clear();
        drop(placer);
        let mut journal = Journal::lock(&tree, dir.path()).unwrap();
        assert_eq!(journal.undo(|_| true), Vec::<String>::new());
        assert_eq!(mask(id), before);
        drop(journal);
        let mut placer = Placer::new(Journal::lock(&tree, dir.path()).unwrap(), one.clone());
        placer.take(id.tid, id).unwrap();
        placer.put(id, &one).unwrap();
        drop(placer);
        assert_eq!(mask(id), before);
        end(child);
    }

    #[test]
    fn what_somebody_else_set_is_reported_and_left() {
        let Some((one, two)) = two() else { return };
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::live();
        let (child, id) = sleeper();
        let mut placer = Placer::new(Journal::lock(&tree, dir.path()).unwrap(), one.clone());
        placer.take(id.tid, id).unwrap();
        placer.put(id, &one).unwrap();
        affinity::set(&tree, id.tid, id.tid, &two).unwrap();
        assert_eq!(placer.check().len(), 1);
        assert_eq!(placer.check().len(), 0, "told once");
        assert!(!placer.put(id, &one).unwrap());
        let notes = placer.restore();
        assert!(notes.len() == 1 && notes[0].contains("somebody else"), "{notes:?}");
        assert_eq!(mask(id), two);
        end(child);
    }

    /// A thread of a recorded machine, whose CPUs come and go as the test says.
    #[test]
    fn cpus_that_go_offline_are_nobodys_meaning() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let fields = "0 ".repeat(20);
        put("proc/7/task/7/stat", &format!("7 (guest) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 {fields}"));
        put("proc/7/task/7/status", "Cpus_allowed_list:\t0-3\n");
        put("sys/devices/system/cpu/online", "0-3\n");
        let (tree, id) = (Tree::at(dir.path()), TaskId { tid: 7, started: 99 });
        let cpus = |text: &str| text.parse::<CpuSet>().unwrap();
        let journal = Journal::lock(&tree, &dir.path().join("state")).unwrap();
        let mut placer = Placer::new(journal, cpus("0-3"));
        placer.take(7, id).unwrap();
        placer.put(id, &cpus("2-3")).unwrap();
        put("sys/devices/system/cpu/online", "0-2\n");
        put("proc/7/task/7/status", "Cpus_allowed_list:\t2\n");
        assert_eq!(placer.check(), Vec::<String>::new(), "a part of its mask went offline");
        put("sys/devices/system/cpu/online", "0-1\n");
        put("proc/7/task/7/status", "Cpus_allowed_list:\t0-1\n");
        assert_eq!(placer.check(), Vec::<String>::new(), "all of its mask went offline");
        assert!(placer.put(id, &cpus("0")).unwrap(), "it is placed again");
        put("proc/7/task/7/status", "Cpus_allowed_list:\t1\n");
        assert_eq!(placer.check().len(), 1, "this one somebody meant");
    }

    #[test]
    fn nobody_gets_a_cpu_that_its_operator_did_not_allow() {
        let Some((one, two)) = two() else { return };
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::live();
        let (child, id) = sleeper();
        affinity::set(&tree, id.tid, id.tid, &one).unwrap();
        let mut placer = Placer::new(Journal::lock(&tree, dir.path()).unwrap(), one.union(&two));
        assert_eq!(placer.take(id.tid, id).unwrap(), one);
        assert!(!placer.put(id, &two).unwrap());
        assert_eq!(mask(id), one);
        let (other, gone) = sleeper();
        end(other);
        assert!(placer.take(gone.tid, gone).unwrap_err().to_string().contains("has ended"));
        end(child);
    }
}
