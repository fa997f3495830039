//! What a server may still do once it is set up: use the descriptors and memory it was given.
//!
//! No file can be opened, no socket made, no process started or traced, no capability is left. A
//! server that is taken over through a packet reaches only the segments that the supervisor mapped
//! into it, which is what the walls of the design promise.

use crate::{Doing, Result};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
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
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_fstat,
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
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_tgkill,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Gives up every capability and every system call that is not needed. Cannot be undone.
pub fn enter() -> Result<()> {
    drop_capabilities()?;
    let arch = std::env::consts::ARCH.try_into().doing("sandbox: architecture")?;
    let rules: BTreeMap<i64, Vec<_>> = ALLOWED.iter().map(|n| (*n, Vec::new())).collect();
    let deny = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, deny, SeccompAction::Allow, arch).doing("sandbox")?;
    let program: BpfProgram = filter.try_into().doing("sandbox")?;
    // Also sets no_new_privs.
    seccompiler::apply_filter(&program).doing("sandbox: seccomp")
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

/// `_LINUX_CAPABILITY_VERSION_3`.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

fn drop_capabilities() -> Result<()> {
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let none = [0u32; 6];
    // SAFETY: header and data have the layout of capset(2), version 3.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    if done < 0 { Err(std::io::Error::last_os_error()).doing("sandbox: capset") } else { Ok(()) }
}
