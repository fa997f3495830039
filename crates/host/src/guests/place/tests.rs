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
    assert!(notes.len() == 1 && notes[0].contains("another program"), "{notes:?}");
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
