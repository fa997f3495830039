//! Real-time priority for switching a CPU: for the calling thread, and for the kernel threads that it waits for.
//!
//! Most of the time of a switch under load was waiting: the kernel's hotplug thread of the CPU (`cpuhp/N`, an ordinary
//! thread) queues behind everything that runs there, once to begin, and once more for each thread that it parks; and so
//! do the workers of expedited grace periods. Promises: raised only during one operation, journaled before, and lowered
//! by the next eft after a crash. Where real-time threads are refused it goes on without: slower, not wrong.

use eft_machine::CpuSet;

use crate::error::Error;
use crate::journal::{Change, Journal};
use crate::sensors::tasks::{self, TaskId, ThreadClass};
use crate::sensors::{Tree, topology};

const CALLER: i32 = 1;
/// Above the caller, which waits for them; below threaded interrupts (50).
const KERNEL: i32 = 2;
/// Machine-wide kernel threads that a switch waits for: RCU's workers, under the names of different kernels, and the
/// thread that makes device nodes.
const SHARED: [&str; 4] = ["rcu_exp_gp_kthre", "rcu_exp_par_gp_k", "rcu_preempt", "kdevtmpfs"];
/// One of each for every CPU: the state machine, and a thread that it parks and unparks.
const OF_CPU: [&str; 2] = ["cpuhp", "ksoftirqd"];

/// Runs `operation`, which switches `cpus`, urgently.
pub fn while_urgent<T>(
    journal: &mut Journal,
    cpus: &CpuSet,
    operation: impl FnOnce(&mut Journal) -> Result<T, Error>,
) -> Result<T, Error> {
    let caller = journal.tree().is_live().then(RealTime::begin).flatten();
    let raised = if caller.is_some() { raise(journal, cpus)? } else { None };
    let outcome = operation(journal);
    if let Some((id, threads)) = raised {
        lower(&threads);
        journal.done(id)?;
    }
    drop(caller);
    outcome
}

fn raise(journal: &mut Journal, cpus: &CpuSet) -> Result<Option<(u64, Vec<ThreadClass>)>, Error> {
    let threads: Vec<ThreadClass> =
        helpers(journal.tree(), cpus).into_iter().filter_map(class).filter(is_ordinary).collect();
    if threads.is_empty() {
        return Ok(None);
    }
    let id = journal.announce(Change::Urgent { threads: threads.clone() })?;
    for thread in &threads {
        // The kernel may refuse; the thread is then only slower.
        set_class(thread.id.tid, libc::SCHED_FIFO, KERNEL);
    }
    Ok(Some((id, threads)))
}

/// Restores the threads that are still as [`while_urgent`] left them.
pub fn lower(threads: &[ThreadClass]) {
    for thread in threads {
        let now = class(thread.id);
        if now.is_some_and(|now| (now.policy, now.priority) == (libc::SCHED_FIFO, KERNEL)) {
            set_class(thread.id.tid, thread.policy, thread.priority);
        }
    }
}

fn is_ordinary(class: &ThreadClass) -> bool {
    class.policy == libc::SCHED_OTHER
}

fn helpers(tree: &Tree, cpus: &CpuSet) -> Vec<TaskId> {
    let of_cpus: Vec<String> =
        cpus.iter().flat_map(|cpu| OF_CPU.map(|name| format!("{name}/{cpu}"))).collect();
    // Taking down is done by a worker of the first other CPU (`cpu_down_maps_locked` by `work_on_cpu`).
    let online = topology::online(tree).unwrap_or_default();
    let worker = online.minus(cpus).first().map(|cpu| format!("kworker/{cpu}:"));
    let is_wanted = |name: &str| {
        of_cpus.iter().any(|wanted| wanted == name)
            || SHARED.iter().any(|prefix| name.starts_with(prefix))
            || worker.as_ref().is_some_and(|prefix| is_ordinary_worker(name, prefix))
    };
    let named = |pid: &i32| tree.text(&format!("proc/{pid}/comm")).is_some_and(|name| is_wanted(&name));
    // Any program may have such a name; only kernel threads are meant.
    let task = |pid: i32| tasks::leader(tree, pid).filter(|task| task.kernel).map(|task| task.id);
    kernel_threads(tree).into_iter().filter(named).filter_map(task).collect()
}

/// `kworker/0:3-events`; those of the pool with high priority are called `kworker/0:3H`.
fn is_ordinary_worker(name: &str, prefix: &str) -> bool {
    let number = name.strip_prefix(prefix).and_then(|rest| rest.split('-').next());
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Children of kthreadd, where the kernel lists children; otherwise all processes, which the caller checks.
fn kernel_threads(tree: &Tree) -> Vec<i32> {
    match tree.text("proc/2/task/2/children") {
        Some(children) => children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        None => tasks::processes(tree),
    }
}

fn class(id: TaskId) -> Option<ThreadClass> {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: plain numbers, and parameters that live through the call.
    let (policy, known) =
        unsafe { (libc::sched_getscheduler(id.tid), libc::sched_getparam(id.tid, &mut parameters)) };
    (policy >= 0 && known == 0).then_some(ThreadClass { id, policy, priority: parameters.sched_priority })
}

fn set_class(tid: i32, policy: i32, priority: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters live through the call, which only reads them.
    unsafe { libc::sched_setscheduler(tid, policy, &parameters) == 0 }
}

/// The calling thread, real-time while this lives. Threads that it starts meanwhile begin as such.
pub struct RealTime(ThreadClass);

impl RealTime {
    /// `None` if the kernel refuses.
    pub fn begin() -> Option<Self> {
        let before = class(TaskId { tid: 0, started: 0 })?;
        set_class(0, libc::SCHED_FIFO, CALLER).then_some(Self(before))
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        set_class(0, self.0.policy, self.0.priority);
    }
}

#[cfg(test)]
mod tests;
