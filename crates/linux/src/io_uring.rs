//! A program on a stack has no io_uring.
//!
//! The rings of io_uring bypass libc, and with it the preloaded library: a read from an eft descriptor would look like
//! the end of the stream. liburing issues its system calls itself, so the kernel has to refuse them. Programs that find
//! no io_uring fall back to epoll or report it.

use crate::{Doing, Result};
use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter, sock_fprog};

/// The offsets of the call's number and of the architecture in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

/// `AUDIT_ARCH_*` of this build. Programs of other architectures cannot load the library; the filter allows all their
/// calls.
#[cfg(target_arch = "x86_64")]
const OURS: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OURS: u32 = 0xc000_00b7;

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Continues if the loaded word is `k`, and otherwise skips `otherwise` statements.
fn unless_equal(k: u32, otherwise: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | BPF_JEQ | BPF_K) as u16, jt: 0, jf: otherwise, k }
}

/// Makes `io_uring_setup` fail with ENOSYS in this process and its descendants. Without CAP_SYS_ADMIN this needs
/// `no_new_privs`: setuid programs then run without their privilege.
pub fn deny() -> Result<()> {
    let load = BPF_LD | BPF_W | BPF_ABS;
    let mut filter = [
        statement(load, ARCHITECTURE),
        unless_equal(OURS, 3),
        statement(load, NUMBER),
        unless_equal(libc::SYS_io_uring_setup as u32, 1),
        statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // Uses prctl, which the filters of services (systemd's @system-service) allow; they do not allow seccomp.
    let install =
        // SAFETY: the filter and its head outlive the call, which copies them.
        || unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if install() == 0 {
        return Ok(());
    }
    rustix::thread::set_no_new_privs(true).doing("cannot deny io_uring to the program")?;
    match install() {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()).doing("cannot deny io_uring to the program"),
    }
}
