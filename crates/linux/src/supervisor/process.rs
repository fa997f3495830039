//! The process of one server or several, and what procfs says about it.

use eft_control::hang::ThreadState;
use std::cell::RefCell;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStderr};
use std::rc::Rc;

/// A started process, the supervisor's ends of its servers' control sockets, and its standard error.
pub struct Spawned {
    pub child: Child,
    pub controls: Vec<OwnedFd>,
    pub stderr: Option<ChildStderr>,
}

/// A process, shared by the members that run in it.
pub type Process = Rc<RefCell<Child>>;

/// The state letter of /proc/PID/stat. `None`: the process is gone.
pub fn thread_state(pid: u32) -> Option<ThreadState> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    match stat.rsplit_once(") ")?.1.chars().next()? {
        'S' | 'I' => Some(ThreadState::Sleeping),
        // A page that is being read from a disk is not the server's fault, and no signal would end the wait.
        'T' | 't' | 'D' => Some(ThreadState::Paused),
        _ => Some(ThreadState::Runnable),
    }
}

/// Whether something outside decides when it runs: a debugger that executes it step by step, or a frozen cgroup.
pub fn is_held(pid: u32) -> bool {
    is_traced(pid) || is_frozen(pid)
}

fn is_traced(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

/// Whether its cgroup (version 2) is frozen. A task that version 1 froze shows the same state as one that waits for a
/// disk.
fn is_frozen(pid: u32) -> bool {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let Some(group) = groups.lines().find_map(|line| line.strip_prefix("0::/")) else { return false };
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    mounts.iter().any(|mount| {
        let events = fs::read_to_string(Path::new(mount).join(group).join("cgroup.events"));
        events.is_ok_and(|events| events.lines().any(|line| line == "frozen 1"))
    })
}
