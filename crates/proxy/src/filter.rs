//! Chooses the system calls that are handed over: a program for the kernel's filter machine (seccomp(2)).
//!
//! These are `socket` for AF_INET and AF_INET6, and the calls on sockets except reads and writes. A `recvfrom` or
//! `sendto` without an address and without special flags, as `recv` and `send` make it, counts as a read or a write.
//! Calls of other architectures fail, because their effects are unknown.

use crate::sys::{Result, int, owned};
use libc::{
    BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter, sock_fprog,
};
use std::os::fd::OwnedFd;

/// `AUDIT_ARCH_*` of this build.
#[cfg(target_arch = "x86_64")]
const OURS: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OURS: u32 = 0xc000_00b7;
/// Numbers from here on belong to the x32 interface.
const X32: u32 = 0x4000_0000;

/// The offset of the call's number in `struct seccomp_data`.
const NUMBER: u32 = 0;
/// The offset of the architecture.
const ARCHITECTURE: u32 = 4;
/// The offset of the lower half of an argument.
const fn argument(n: u32) -> u32 {
    16 + 8 * n
}

/// Calls that are always handed over.
const CALLS: [i64; 14] = [
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_shutdown,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
];

/// With these flags, `recvfrom` and `sendto` still count as a read and a write.
const PLAIN: u32 = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_PEEK | libc::MSG_WAITALL) as u32;

fn load(offset: u32) -> sock_filter {
    sock_filter { code: (BPF_LD | BPF_W | BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

/// Skips `yes` statements if the comparison of the loaded word with `k` holds, and otherwise `no`.
fn skip_if(comparison: u32, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | comparison | BPF_K) as u16, jt: yes, jf: no, k }
}

fn end(action: u32) -> sock_filter {
    sock_filter { code: (BPF_RET | BPF_K) as u16, jt: 0, jf: 0, k: action }
}

/// The whole program.
fn program() -> Vec<sock_filter> {
    let (fail, notify, allow) = (
        end(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        end(libc::SECCOMP_RET_USER_NOTIF),
        end(libc::SECCOMP_RET_ALLOW),
    );
    let mut all = vec![
        load(ARCHITECTURE),
        skip_if(BPF_JEQ, OURS, 1, 0),
        fail,
        load(NUMBER),
        skip_if(BPF_JGE, X32, 0, 1),
        fail,
    ];
    for number in CALLS {
        all.extend([skip_if(BPF_JEQ, number as u32, 0, 1), notify]);
    }
    all.extend([
        skip_if(BPF_JEQ, libc::SYS_socket as u32, 0, 5),
        load(argument(0)),
        skip_if(BPF_JEQ, libc::AF_INET as u32, 2, 0),
        skip_if(BPF_JEQ, libc::AF_INET6 as u32, 1, 0),
        allow,
        notify,
    ]);
    all.extend([
        skip_if(BPF_JEQ, libc::SYS_recvfrom as u32, 2, 0),
        skip_if(BPF_JEQ, libc::SYS_sendto as u32, 1, 0),
        allow,
        load(argument(3)),
        skip_if(BPF_JSET, !PLAIN, 5, 0),
        load(argument(4)),
        skip_if(BPF_JSET, u32::MAX, 3, 0),
        load(argument(4) + 4),
        skip_if(BPF_JSET, u32::MAX, 1, 0),
        allow,
        notify,
    ]);
    all
}

/// Hands the calls of this process and its descendants over to the holder of the returned descriptor from now on.
/// `EBUSY`: another process handles them already. Without CAP_SYS_ADMIN this needs `no_new_privs`: setuid programs then
/// run without their privilege.
pub fn install() -> Result<OwnedFd> {
    let mut filter = program();
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let install = || {
        let place: *const sock_fprog = &program;
        // SAFETY: the filter and its head outlive the call, which copies them.
        owned(unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
                place,
            )
        } as libc::c_int)
    };
    match install() {
        Err(crate::sys::Errno(libc::EACCES)) => {
            // SAFETY: takes no addresses.
            int(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
            install()
        }
        done => done,
    }
}

#[cfg(test)]
mod tests;
