//! Where a server lives: in namespaces of its own, before an empty root, in a Landlock domain without any rule.
//!
//! The list of system calls ([`super`]) forbids to open, to connect and to trace already. This is the second wall: who finds a
//! way round the list finds no file, no network, no other process to signal and no System V memory there.
//!
//! What works depends on the kernel and on who started the stack, so each is tried, and `eft ps --security` shows what is in
//! force.

use crate::{Doing, Result};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope,
};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

const OF_FILES: libc::c_int = libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC;

/// Moves this process into namespaces of its own: with `of_users`, where nobody has a name and no user any right, into a user
/// namespace, too. Descriptors go on to work, those of devices and sockets as well.
pub fn unshare(of_users: bool) {
    let enter = |flags| {
        // SAFETY: plain numbers; the process has one thread.
        unsafe { libc::unshare(flags) == 0 }
    };
    if of_users && enter(libc::CLONE_NEWUSER | OF_FILES) || enter(OF_FILES) {
        empty_root();
    }
}

/// The same for one that reads the host's files, as its user.
pub fn unshare_beside_files() {
    // SAFETY: as above. Where it cannot be, it is not: there is the list.
    let _ = unsafe { libc::unshare(OF_FILES) };
}

/// An empty folder becomes the root, and the mounts of the host go away, so that none of them is kept busy. What cannot be had is
/// not missed: no file can be opened anyway.
fn empty_root() {
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let options = Some(c"size=4k,nr_inodes=2,mode=555");
    // /proc is there, or there would be no stack.
    let empty = rustix::mount::mount_change("/", slave)
        .and_then(|()| rustix::mount::mount("eft", "/proc", "tmpfs", flags, options))
        .and_then(|()| rustix::process::chdir("/proc"));
    if empty.is_err() {
        return;
    }
    // The old root lies upon the new one, at the same place. Where it is that of an initramfs, it can only be hidden.
    let _ = rustix::process::pivot_root(".", ".")
        .and_then(|()| rustix::mount::unmount(".", UnmountFlags::DETACH))
        .or_else(|_| rustix::process::chroot("."))
        .and_then(|()| rustix::process::chdir("/"));
}

/// Gives up all files that are not open, all of the network and all signals to others. False: this kernel has no Landlock.
pub fn enter_landlock() -> Result<bool> {
    let abi = ABI::V6;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(abi)))
        .and_then(|rules| rules.scope(Scope::from_all(abi)))
        .and_then(|rules| rules.create()?.restrict_self())
        .doing("sandbox: landlock")?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}
