//! A thread's affinity mask.

use eft_machine::cpu_set::CPU_MAX;
use eft_machine::{CpuId, CpuSet};

use crate::error::{Error, error};
use crate::journal::TaskMask;
use crate::sensors::{Tree, tasks, topology};

const WORDS: usize = (CPU_MAX as usize + 1) / 64;

/// Sets the mask of a thread (0: of the calling one, live only). In a recorded tree the mask in its `status` changes.
pub fn set(tree: &Tree, process: i32, tid: i32, cpus: &CpuSet) -> Result<(), Error> {
    if !tree.is_live() {
        return set_recorded(tree, process, tid, cpus);
    }
    let mut mask = [0u64; WORDS];
    cpus.iter().for_each(|cpu| mask[cpu.0 as usize / 64] |= 1 << (cpu.0 % 64));
    // SAFETY: the mask is an array of `size_of_val` bytes that lives through the call; the kernel only reads it.
    let outcome = unsafe { libc::sched_setaffinity(tid, size_of_val(&mask), mask.as_ptr().cast()) };
    if outcome == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EINVAL) => Err(error!(
            Refused,
            "thread {tid} may not run on CPU {cpus}: it is offline, or its cpuset forbids it"
        )),
        Some(libc::EPERM) => {
            Err(error!(Denied, "the affinity of thread {tid} may not be changed: this needs root"))
        }
        _ => Err(error!(System, "the affinity of thread {tid} cannot be set ({error})")),
    }
}

/// The mask of a thread. On a live machine a system call reads it, not a file. The kernel leaves out CPUs that are
/// offline.
pub fn get(tree: &Tree, process: i32, tid: i32) -> Option<CpuSet> {
    if !tree.is_live() {
        return tasks::affinity(tree, process, tid);
    }
    let mut mask = [0u64; WORDS];
    // SAFETY: the kernel writes at most `size_of_val` bytes into the array, which lives through the call.
    let outcome = unsafe { libc::sched_getaffinity(tid, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    let bits = |(index, word): (usize, &u64)| {
        let word = *word;
        (0..64).filter(move |bit| word & 1 << bit != 0).map(move |bit| CpuId(index as u32 * 64 + bit))
    };
    let named = mask.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(bits);
    (outcome >= 0).then(|| named.collect())
}

fn set_recorded(tree: &Tree, process: i32, tid: i32, cpus: &CpuSet) -> Result<(), Error> {
    let path = format!("proc/{process}/task/{tid}/status");
    let status = tree.read(&path)?;
    let line = |line: &str| {
        if line.starts_with("Cpus_allowed_list:") {
            format!("Cpus_allowed_list:\t{cpus}")
        } else {
            line.into()
        }
    };
    tree.write(&path, &(status.lines().map(line).collect::<Vec<String>>().join("\n") + "\n"))
}

/// Pins the calling thread.
pub fn pin_myself(cpu: CpuId) -> Result<(), Error> {
    set(&Tree::live(), 0, 0, &CpuSet::one(cpu))
}

/// Restores masks after a CPU came back. Its tasks have the mask that offlining was expected to leave, or any mask: if
/// no CPU of a mask is left, the kernel may let the task run everywhere (`select_fallback_rq`).
pub fn give_back(tree: &Tree, tasks: &[TaskMask]) {
    let online = topology::online(tree).unwrap_or_default();
    for task in tasks {
        let now = get(tree, task.process, task.id.tid);
        let by_kernel = now.is_some_and(|now| now == task.new.and(&online) || online.is_subset(&now));
        if by_kernel && tasks::read(tree, task.process, task.id.tid).is_some_and(|found| found.id == task.id)
        {
            // The task may end between the check and the call.
            let _ = set(tree, task.process, task.id.tid, &task.old);
        }
    }
}
