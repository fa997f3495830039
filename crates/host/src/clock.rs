//! The world's clock: CLOCK_MONOTONIC.

use eft_base::Instant;
use std::time::Duration;

pub fn now() -> Instant {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Through libc and thus the vDSO: every turn of every server asks for the time.
    // SAFETY: plain call with a valid out pointer; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    Instant(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// CPU time of another process, all threads. `None` if it is gone.
pub fn process_cpu(pid: u32) -> Option<Duration> {
    // MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of the kernel's posix-timers.h.
    let id = (!(pid as libc::clockid_t) << 3) | 2;
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: plain call with a valid out pointer.
    let ok = unsafe { libc::clock_gettime(id, &mut t) } == 0;
    ok.then(|| Duration::new(t.tv_sec as u64, t.tv_nsec as u32))
}
