//! A stack and its program in namespaces of their own, which an ordinary user may make.
//!
//! ```text
//! eft run --rootless      waits, and passes signals on
//!   init                  of the PID namespace: when it ends, the kernel ends everything in there
//!     supervisor          and its servers
//!     the program         in a further user namespace, in which it has its own user again, and no capability
//! ```
//!
//! The user is mapped to root in the stack's user namespace, so that the supervisor may make devices and servers may
//! enter their [sandbox](crate::sandbox). The folder of running stacks is a file system of the namespace's own, so that
//! nothing is left of it, however it ends.

mod folder;
mod network;
mod processes;

pub use network::{Network, make as make_network};
pub use processes::{Ended, run};

use crate::Result;
use crate::error::error;
use rustix::mount::{MountFlags, MountPropagationFlags};

/// What `eft run` itself must know of the user before it enters the namespaces.
#[derive(Clone, Copy, Debug)]
pub struct User {
    uid: u32,
    gid: u32,
}

impl User {
    pub fn current() -> User {
        User { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }
}

/// Enters the namespaces of the stack. Children are in the new PID namespace; the first is its init.
fn enter(user: User) -> Result<()> {
    let flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWPID;
    unshare(flags).and_then(|()| map(0, 0, user)).map_err(|e| {
        error!(
            Denied,
            "no user namespace: {e}; allow it with `sysctl user.max_user_namespaces=10000` and, where these exist, \
             `kernel.unprivileged_userns_clone=1` and `kernel.apparmor_restrict_unprivileged_userns=0`"
        )
    })
}

/// Gives the program its own user, in a namespace below the stack's.
fn become_user(user: User) -> Result<()> {
    unshare(libc::CLONE_NEWUSER)
        .and_then(|()| map(user.uid, user.gid, User { uid: 0, gid: 0 }))
        .map_err(|e| error!(Denied, "no user namespace for the program: {e}"))
}

fn unshare(flags: i32) -> std::io::Result<()> {
    // SAFETY: plain numbers; the process has one thread.
    match unsafe { libc::unshare(flags) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Maps one user and group of this process's new namespace to one outside (user_namespaces(7)).
fn map(uid: u32, gid: u32, outside: User) -> std::io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {} 1", outside.uid))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {} 1", outside.gid))
}

/// For init: mounts that no other namespace sees, and a /proc that shows the processes of this one.
fn own_mounts() -> Result<()> {
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount_change("/", slave)
        .and_then(|()| rustix::mount::mount("proc", "/proc", "proc", flags, None))
        .map_err(|e| {
            error!(Denied, "no /proc of its own: {e} (a container that hides parts of /proc forbids it)")
        })?;
    folder::make()
}
