//! Isolates a server: namespaces of its own, an empty root folder, a Landlock domain without any rule. `cores`, which reads the
//! host's files, has a domain with one rule.
//!
//! The list of system calls ([`super`]) already forbids to open, to connect and to trace. This is the second wall: an
//! attacker who finds a way around the list finds no file, no network, no other process to signal, and no System V
//! memory.
//!
//! What works depends on the kernel and on the user who started the stack. So each measure is tried, and `eft ps
//! --security` shows which are in force.

use crate::{Doing, Result, namespaces};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

const OF_FILES: libc::c_int = libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC;

/// Moves this process into its predecessor's namespaces, or into namespaces of its own. With `of_users` it also enters a user
/// namespace, in which no user has a name or a right. Its descriptors continue to work, including those of devices and sockets.
pub fn unshare(of_users: bool) {
    if namespaces::enter() {
        return;
    }
    let enter = |flags| {
        // SAFETY: plain numbers; the process has one thread.
        unsafe { libc::unshare(flags) == 0 }
    };
    if of_users && enter(libc::CLONE_NEWUSER | OF_FILES) || enter(OF_FILES) {
        empty_root();
    }
}

/// The same for a process that reads the host's files as its user.
pub fn unshare_beside_files() {
    // SAFETY: as above. If it fails, the list of system calls remains.
    if unsafe { libc::unshare(OF_FILES) } == 0 {
        hide_processes();
    }
}

/// Mounts a /proc in which this process sees only those that it may trace: none, in a Landlock domain. The right to count events
/// (CAP_PERFMON) would else show it their maps and variables. Where the kernel refuses it, as in most user namespaces, that
/// right is worth nothing there.
fn hide_processes() {
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ = rustix::mount::mount_change("/", slave)
        .and_then(|()| rustix::mount::mount("proc", "/proc", "proc", flags, Some(c"hidepid=ptraceable")));
}

/// Makes an empty folder the root and detaches the host's mounts, so that they can be unmounted. Failures do not
/// matter: no file can be opened anyway.
fn empty_root() {
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let options = Some(c"size=4k,nr_inodes=2,mode=555");
    // /proc exists; without it the stack would not have started.
    let empty = rustix::mount::mount_change("/", slave)
        .and_then(|()| rustix::mount::mount("eft", "/proc", "tmpfs", flags, options))
        .and_then(|()| rustix::process::chdir("/proc"));
    if empty.is_err() {
        return;
    }
    // The old root lies over the new one at the same place. If it is an initramfs, it can only be hidden.
    let _ = rustix::process::pivot_root(".", ".")
        .and_then(|()| rustix::mount::unmount(".", UnmountFlags::DETACH))
        .or_else(|_| rustix::process::chroot("."))
        .and_then(|()| rustix::process::chdir("/"));
}

const LANDLOCK: ABI = ABI::V6;

/// Gives up all files that are not open, all networking, and all signals to other processes. False: this kernel has no
/// Landlock.
pub fn enter_landlock() -> Result<bool> {
    restrict(BitFlags::empty(), Scope::from_all(LANDLOCK))
}

/// The same for a process that reads the host's files. It cannot read another's memory there: from inside a domain, only what
/// is in the same domain can be traced.
pub fn enter_landlock_reading() -> Result<bool> {
    restrict(AccessFs::ReadFile | AccessFs::ReadDir, Scope::from_all(LANDLOCK))
}

/// For a process that writes the host's files, and signals a holder that another one started: it gives up networking, mounting,
/// and tracing.
pub fn enter_landlock_writing() -> Result<bool> {
    restrict(AccessFs::from_all(LANDLOCK), Scope::AbstractUnixSocket.into())
}

/// Enters a domain in which only this may be done to files.
fn restrict(files: BitFlags<AccessFs>, scope: BitFlags<Scope>) -> Result<bool> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|rules| rules.scope(scope))
        .and_then(|rules| rules.create())
        .doing("sandbox: landlock")?;
    let ruleset = if files.is_empty() {
        ruleset
    } else {
        let root = PathFd::new("/").doing("sandbox: landlock: /")?;
        ruleset.add_rule(PathBeneath::new(root, files)).doing("sandbox: landlock")?
    };
    let status = ruleset.restrict_self().doing("sandbox: landlock")?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}
