//! The process of one server or several, and what procfs says about it.

use crate::fatal;
use crate::operator::has_ended;
use eft_control::hang::ThreadState;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, pidfd_send_signal, waitid,
};
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

/// The process of running servers.
pub enum Running {
    Ours(Child),
    /// A child of a predecessor, which somebody else reaps. Its number may be another's soon after its end; its descriptor
    /// is not.
    Adopted {
        pid: u32,
        pidfd: OwnedFd,
    },
}

/// A process, shared by the members that run in it.
pub type Process = Rc<RefCell<Running>>;

impl Running {
    pub fn id(&self) -> u32 {
        match self {
            Running::Ours(child) => child.id(),
            Running::Adopted { pid, .. } => *pid,
        }
    }

    /// A descriptor of it. A child's number is its own until it is buried.
    pub fn pidfd(&self) -> Option<OwnedFd> {
        match self {
            Running::Ours(child) => pidfd_open(Pid::from_raw(child.id() as i32)?, PidfdFlags::empty()).ok(),
            Running::Adopted { pidfd, .. } => pidfd.try_clone().ok(),
        }
    }

    pub fn kill(&mut self) {
        match self {
            Running::Ours(child) => drop(child.kill()),
            Running::Adopted { pidfd, .. } => drop(pidfd_send_signal(pidfd, Signal::KILL)),
        }
    }

    /// Asks one that hangs to write what it was at. It ends by that.
    pub fn ask_for_the_hang(&self) {
        let asks = Signal::from_named_raw(fatal::HANGS).unwrap_or(Signal::KILL);
        match self {
            Running::Ours(child) => {
                let pid = Pid::from_raw(child.id() as i32);
                let _ = pid.map(|pid| kill_process(pid, asks));
            }
            Running::Adopted { pidfd, .. } => drop(pidfd_send_signal(pidfd, asks)),
        }
    }

    /// Waits for its end, and clears it away.
    pub fn wait(&mut self) {
        match self {
            Running::Ours(child) => drop(child.wait()),
            Running::Adopted { pidfd, .. } => drop(poll(&mut [PollFd::new(pidfd, PollFlags::IN)], None)),
        }
    }

    /// Clears away what the kernel keeps of a process that has ended. False: it is still being taken apart.
    pub fn bury(&mut self) -> bool {
        match self {
            Running::Ours(child) => !matches!(child.try_wait(), Ok(None)),
            Running::Adopted { pidfd, .. } => has_ended(pidfd),
        }
    }

    /// How it ended, if it did. It stays to be buried.
    pub fn ending(&self) -> Option<String> {
        let child = match self {
            Running::Ours(child) => child,
            // Only its parent is told how.
            Running::Adopted { pidfd, .. } => return has_ended(pidfd).then(|| "unknown".into()),
        };
        let pid = Pid::from_raw(child.id() as i32)?;
        let looks = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(pid), looks).ok().flatten()?;
        Some(match (status.terminating_signal(), status.exit_status()) {
            (Some(n), _) => format!("signal {n}"),
            (None, Some(c)) => format!("exit status {c}"),
            _ => "unknown".into(),
        })
    }
}

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

/// Whether the kernel has a signal for the first thread, which blocks it.
pub fn holds_signal(pid: u32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let is_in = |set: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(set));
        let set = line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok());
        set.is_some_and(|set| set >> (signal - 1) & 1 != 0)
    };
    is_in("SigPnd:") && is_in("SigBlk:")
}

/// Whether something outside decides when it runs: a debugger that executes it step by step, or a frozen cgroup.
pub fn is_held(pid: u32) -> bool {
    is_traced(pid) || is_frozen(pid)
}

pub fn is_traced(pid: u32) -> bool {
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

#[cfg(test)]
mod tests;
