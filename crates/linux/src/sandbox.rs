//! What a server may do: use the descriptors and memory that it is given. It gives up all else before it is given any.
//!
//! It can open no file, make no socket, start or trace no process, and it has no capability. A server that an attacker
//! takes over by a packet reaches only the segments that the supervisor mapped into it; this is what the design's walls
//! promise. Behind the list of system calls stands a second wall: [namespaces and Landlock](isolation).

mod isolation;

use crate::{Doing, Result};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;

/// System calls that every server may make.
const ALLOWED: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    libc::SYS_accept4,
    libc::SYS_getsockopt,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_ppoll,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_fstat,
    // Where an arena was written, before it is recorded (`memory::each_written`).
    libc::SYS_lseek,
    libc::SYS_newfstatat,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// What `cores` may do besides while it only observes and places: read files, list folders, count with the PMU.
const ALLOWED_SENSORS: &[i64] =
    &[libc::SYS_pread64, libc::SYS_statx, libc::SYS_getdents64, libc::SYS_perf_event_open, libc::SYS_wait4];

/// Whether a server must know other users by their numbers. In a user namespace of its own it cannot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Users {
    Unknown,
    Known,
}

/// Gives up every capability, every system call that is not needed, and what namespaces and Landlock keep away. This
/// cannot be undone. Returns whether this kernel has Landlock.
pub fn enter(users: Users) -> Result<bool> {
    isolation::unshare(users == Users::Unknown);
    let landlock = isolation::enter_landlock()?;
    keep_capabilities(&[])?;
    // sockets asks the kernel who sends; servers set no other option of a socket.
    let is = |argument: u8, value: i32| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value as u64)
    };
    let rule = || SeccompRule::new(vec![is(1, libc::SOL_SOCKET)?, is(2, libc::SO_PASSCRED)?]);
    filter(&[], vec![(libc::SYS_setsockopt, vec![rule().doing("sandbox")?])])?;
    Ok(landlock)
}

/// For `cores` without managed CPUs: like a server, but it may read files (sysfs, procfs) and count performance events.
/// It cannot write a file, start a process, or move a thread of another process. It keeps the host's root folder,
/// because it reads the host's files, and the host's user namespace, because the right to count belongs to the host's
/// users. The owner of other servers' user namespaces may trace them; Landlock takes that away. Returns whether this kernel has
/// it.
pub fn enter_for_sensors() -> Result<bool> {
    isolation::unshare_beside_files();
    let landlock = isolation::enter_landlock_reading()?;
    keep_capabilities(&[CAP_PERFMON])?;
    let flags = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND) as u64;
    let read_only = SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flags), 0)
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .doing("sandbox")?;
    filter(ALLOWED_SENSORS, vec![(libc::SYS_openat, vec![read_only])])?;
    Ok(landlock)
}

/// For `cores` with managed CPUs: the actuators write sysfs and cgroups, read and write MSRs, move other processes'
/// threads, and start the holder. System calls are not filtered, because the holder would inherit the filter.
/// Capabilities are dropped, and no program that it starts can gain one. Returns whether this kernel has Landlock.
pub fn enter_for_actuators() -> Result<bool> {
    // SAFETY: plain call with plain numbers.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } < 0 {
        return Err(std::io::Error::last_os_error()).doing("sandbox: no_new_privs");
    }
    let landlock = isolation::enter_landlock_writing()?;
    keep_capabilities(&[
        CAP_DAC_OVERRIDE,
        CAP_KILL,
        CAP_SYS_RAWIO,
        CAP_SYS_ADMIN,
        CAP_SYS_NICE,
        CAP_SYS_RESOURCE,
        CAP_IPC_LOCK,
        CAP_PERFMON,
    ])?;
    Ok(landlock)
}

fn filter(more: &[i64], conditional: Vec<(i64, Vec<SeccompRule>)>) -> Result<()> {
    let arch = std::env::consts::ARCH.try_into().doing("sandbox: architecture")?;
    let mut rules: BTreeMap<i64, Vec<_>> = ALLOWED.iter().chain(more).map(|n| (*n, Vec::new())).collect();
    rules.extend(upon_itself()?);
    rules.extend(conditional);
    let deny = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, deny, SeccompAction::Allow, arch).doing("sandbox")?;
    let program: BpfProgram = filter.try_into().doing("sandbox")?;
    // This also sets no_new_privs.
    seccompiler::apply_filter(&program).doing("sandbox: seccomp")
}

/// Calls that a server may make for itself and its descriptors, but not for another process: all servers have the same
/// user, who may signal and move them.
fn upon_itself() -> Result<Vec<(i64, Vec<SeccompRule>)>> {
    let condition =
        |argument, op, value: u64| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value);
    let rule = |conditions| SeccompRule::new(conditions).doing("sandbox");
    let equal =
        |argument, value: u64| rule(vec![condition(argument, SeccompCmpOp::Eq, value).doing("sandbox")?]);
    let descriptors = FCNTL.iter().map(|command| equal(1, *command as u64)).collect::<Result<_>>()?;
    let but_owners = OWNING.iter().map(|request| condition(1, SeccompCmpOp::Ne, *request).doing("sandbox"));
    let but_owners = rule(but_owners.collect::<Result<_>>()?)?;
    Ok(vec![
        (libc::SYS_sched_setaffinity, vec![equal(0, 0)?]),
        (libc::SYS_tgkill, vec![equal(0, std::process::id().into())?]),
        (libc::SYS_fcntl, descriptors),
        (libc::SYS_ioctl, vec![but_owners]),
    ])
}

/// The commands that a server may apply to a descriptor. F_SETOWN is not among them: it names a process that gets
/// signals.
const FCNTL: [i32; 7] = [
    libc::F_DUPFD,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GET_SEALS,
];

/// `FIOSETOWN`, `SIOCSPGRP` and `FIOASYNC` (asm-generic/sockios.h, ioctls.h).
const OWNING: [u64; 3] = [0x8901, 0x8902, 0x5452];

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

/// `_LINUX_CAPABILITY_VERSION_3`.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

// Numbers of linux/capability.h.
const CAP_DAC_OVERRIDE: u32 = 1;
const CAP_KILL: u32 = 5;
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_RAWIO: u32 = 17;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_NICE: u32 = 23;
const CAP_SYS_RESOURCE: u32 = 24;
const CAP_PERFMON: u32 = 38;

/// Drops all capabilities except these. An unprivileged user's missing capabilities are not requested.
fn keep_capabilities(kept: &[u32]) -> Result<()> {
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    // Effective, permitted, inheritable: the low words of the three, then the high words.
    let mut present = [0u32; 6];
    // SAFETY: header and data have the layout of capget(2), version 3.
    if unsafe { libc::syscall(libc::SYS_capget, &raw const header, present.as_mut_ptr()) } < 0 {
        return Err(std::io::Error::last_os_error()).doing("sandbox: capget");
    }
    let mut wanted = [0u32; 6];
    for cap in kept {
        let (word, bit) = (*cap as usize / 32 * 3, 1 << (cap % 32));
        let allowed = present[word + 1] & bit;
        wanted[word] |= allowed;
        wanted[word + 1] |= allowed;
    }
    // SAFETY: header and data have the layout of capset(2), version 3.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, wanted.as_ptr()) };
    if done < 0 { Err(std::io::Error::last_os_error()).doing("sandbox: capset") } else { Ok(()) }
}
