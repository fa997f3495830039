//! Tasks of the whole machine: whether each is a kernel thread, and where it ran last.

use eft_machine::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};

use super::Tree;

/// `PF_KTHREAD` and `PF_NO_SETAFFINITY` of `include/linux/sched.h`; field 9 of `/proc/PID/stat` shows them.
const PF_KTHREAD: u64 = 0x0020_0000;
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

/// A thread, named so that a reused id is never taken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskId {
    pub tid: i32,
    /// Clock ticks since boot.
    pub started: u64,
}

/// A thread's scheduling class as it was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadClass {
    pub id: TaskId,
    pub policy: i32,
    pub priority: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    pub id: TaskId,
    pub process: i32,
    pub parent: i32,
    pub name: String,
    pub kernel: bool,
    pub pinned_by_kernel: bool,
    pub state: char,
    pub last_cpu: CpuId,
    pub runtime_ticks: u64,
}

pub fn read(tree: &Tree, process: i32, tid: i32) -> Option<Task> {
    parse(process, tid, &tree.text(&format!("proc/{process}/task/{tid}/stat"))?)
}

/// A process's leader, found by its id alone.
pub fn leader(tree: &Tree, pid: i32) -> Option<Task> {
    parse(pid, pid, &tree.text(&format!("proc/{pid}/stat"))?)
}

fn parse(process: i32, tid: i32, stat: &str) -> Option<Task> {
    // The name may hold blanks and parentheses; the last one closes it.
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_string();
    let words: Vec<&str> = after.split_whitespace().collect();
    let number = |field: usize| words.get(field - 3)?.parse::<u64>().ok();
    let flags = number(9)?;
    Some(Task {
        id: TaskId { tid, started: number(22)? },
        process,
        parent: number(4)? as i32,
        name,
        kernel: flags & PF_KTHREAD != 0,
        pinned_by_kernel: flags & PF_NO_SETAFFINITY != 0,
        state: words.first()?.chars().next()?,
        last_cpu: CpuId(number(39)? as u32),
        runtime_ticks: number(14)? + number(15)?,
    })
}

pub fn processes(tree: &Tree) -> Vec<i32> {
    tree.numbered("proc", "").into_iter().filter_map(|pid| i32::try_from(pid).ok()).collect()
}

pub fn threads(tree: &Tree, process: i32) -> Vec<i32> {
    tree.numbered(&format!("proc/{process}/task"), "")
        .into_iter()
        .filter_map(|tid| i32::try_from(tid).ok())
        .collect()
}

/// Every thread of the machine.
pub fn all(tree: &Tree) -> Vec<Task> {
    let of =
        |process: i32| threads(tree, process).into_iter().filter_map(move |tid| read(tree, process, tid));
    processes(tree).into_iter().flat_map(of).collect()
}

pub fn is_alive(tree: &Tree, id: TaskId) -> bool {
    leader(tree, id.tid).is_some_and(|task| task.id.started == id.started && task.state != 'Z')
}

pub fn myself(tree: &Tree) -> TaskId {
    let pid = std::process::id() as i32;
    leader(tree, pid).map_or(TaskId { tid: pid, started: 0 }, |task| task.id)
}

/// The process that a thread belongs to.
pub fn process_of(tree: &Tree, tid: i32) -> Option<i32> {
    let status = tree.text(&format!("proc/{tid}/status"))?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

/// The affinity mask of a thread, as `/proc` shows it.
pub fn affinity(tree: &Tree, process: i32, tid: i32) -> Option<CpuSet> {
    let status = tree.text(&format!("proc/{process}/task/{tid}/status"))?;
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")?.parse().ok())
}
