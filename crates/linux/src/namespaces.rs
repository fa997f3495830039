//! A server's namespaces, kept for its successors.
//!
//! To make a mount namespace with an empty root, its maker detaches the host's mounts, and the kernel then waits until every CPU has
//! passed a quiescent state (`synchronize_rcu_expedited`): that takes milliseconds while another CPU takes the dead server apart,
//! and was seen to take seconds beside processes that give up mounts of their own. A successor that enters the namespaces of its
//! predecessor waits for nobody. It finds there what that one left: an empty folder that nobody can write, a network without
//! devices, and no shared memory.

use crate::protocol::CONTROL_FD;
use rustix::fs::{Mode, OFlags, fstat, open, stat};
use rustix::io::fcntl_dupfd_cloexec;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The environment variable that says how many there are. It is no argument, since another version of eft would refuse one that
/// it does not know.
pub const COUNT: &str = "EFT_NAMESPACES";
/// The first of their descriptors in a newborn process: behind its control sockets.
pub const FIRST: i32 = CONTROL_FD + 60;
/// In the order in which they are entered: the user namespace gives the right to the others.
const KINDS: [&str; 4] = ["user", "mnt", "net", "ipc"];

/// The namespaces of a server.
pub struct Namespaces(Vec<OwnedFd>);

impl Namespaces {
    /// Those of a process that are not also the caller's. `None`: it has no mount namespace of its own, or they cannot be opened.
    pub fn of(pid: u32) -> Option<Namespaces> {
        let mut own = Vec::new();
        for kind in KINDS {
            let fd = open(format!("/proc/{pid}/ns/{kind}"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .ok()?;
            let ours = stat(format!("/proc/self/ns/{kind}")).ok()?;
            match fstat(&fd).ok()?.st_ino == ours.st_ino {
                true if kind == "mnt" => return None,
                true => {}
                // A newborn has other descriptors at the numbers below.
                false => own.push(fcntl_dupfd_cloexec(&fd, FIRST + KINDS.len() as i32).ok()?),
            }
        }
        Some(Namespaces(own))
    }

    pub fn fds(&self) -> &[OwnedFd] {
        &self.0
    }
}

/// Moves this process, which has one thread, into the namespaces that its starter passed on. False: into none, or not into all.
pub fn enter() -> bool {
    let count = std::env::var(COUNT).ok().and_then(|count| count.parse::<i32>().ok());
    let Some(count) = count.filter(|count| (1..=KINDS.len() as i32).contains(count)) else { return false };
    let mut entered = true;
    for number in FIRST..FIRST + count {
        // SAFETY: the starter passed this descriptor to this process alone.
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        // SAFETY: plain numbers. 0: whatever kind of namespace it is.
        entered &= unsafe { libc::setns(fd.as_raw_fd(), 0) } == 0;
    }
    entered
}
