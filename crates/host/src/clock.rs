//! The world's clock: CLOCK_MONOTONIC.
//!
//! A reading goes through the vDSO, code that lies in this process and that a changed bit can make tell any time. So readings are
//! compared with what the kernel itself says ([`watch`]), and a process whose clock is wrong ends before it has used that time:
//! segments with timestamps of the future would make peers drop all that a successor sends (PAWS, RFC 7323 section 5).

mod watch;

use eft_base::{Instant, protection};
use std::cell::Cell;
use std::time::Duration;
use watch::Watch;

thread_local! {
    static WATCH: Cell<Watch> = const { Cell::new(Watch::new()) };
}

/// The time. Panics if this process cannot tell it any more.
#[inline]
pub fn now() -> Instant {
    let read = read();
    if !protection::is_on() {
        return Instant(read);
    }
    let mut watch = WATCH.get();
    if !watch.believes(read) {
        return ask(read);
    }
    WATCH.set(watch);
    Instant(read)
}

/// The time as the kernel says it. It is for those who have a reason to doubt what they read. Panics as [`now`] does.
pub fn confirmed() -> Instant {
    ask(read())
}

#[cold]
fn ask(read_before: u64) -> Instant {
    let said = said_by_kernel();
    let mut watch = WATCH.get();
    match watch.compare(read_before, said, read()) {
        Ok(now) => {
            WATCH.set(watch);
            Instant(now)
        }
        Err(wrong) => panic!("the clock of this process {wrong}: the code that reads it has changed"),
    }
}

/// Through libc and thus the vDSO: every turn of every server asks for the time.
fn read() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: plain call with a valid out pointer; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    nanos(t)
}

/// By the system call.
fn said_by_kernel() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut t) };
    nanos(t)
}

/// Wrong code may have written anything there.
fn nanos(t: libc::timespec) -> u64 {
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
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

#[cfg(test)]
mod tests;
