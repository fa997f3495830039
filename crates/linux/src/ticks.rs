//! A timer on the CPU time of this process's main thread, which counts its ticks in the status page.
//!
//! By the ticks, the supervisor judges whether a server computes without progress. A tick counts only while the thread
//! itself runs, and that is intended: the CPU-time clock also counts time that a hypervisor took away, but a tick that
//! became due ten times meanwhile is delivered once. A server that sleeps, or is stopped, throttled or not scheduled,
//! has no ticks. A tick costs one signal, so a busy server spends about a ten-thousandth of its time on them.

use crate::{Doing, Result};
use eft_channel::status::Status;
use eft_control::hang::TICK;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The word in which the handler counts.
static WORD: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn count(_signal: libc::c_int) {
    // SAFETY: null, or a word of a page that stays mapped until the process ends.
    if let Some(word) = unsafe { WORD.load(Ordering::Relaxed).as_ref() } {
        word.fetch_add(1, Ordering::Relaxed);
    }
}

/// From now on ticks are counted in this page.
pub fn count_in(status: &Status) {
    static KEPT: OnceLock<eft_channel::Shared<AtomicU64>> = OnceLock::new();
    let word: &AtomicU64 = KEPT.get_or_init(|| status.tick_word());
    WORD.store(std::ptr::from_ref(word).cast_mut(), Ordering::Relaxed);
}

/// Starts the timer of the calling thread. Threads and programs that it starts have none.
pub fn start() -> Result<()> {
    let failed = || std::io::Error::last_os_error();
    let interval = libc::timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as _ };
    let every = libc::itimerspec { it_interval: interval, it_value: interval };
    // SAFETY: plain calls with valid arguments that live through them; the handler is async-signal-safe.
    let done = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGPROF;
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer: libc::timer_t = std::mem::zeroed();
        libc::sigaction(libc::SIGPROF, &action, std::ptr::null_mut()) == 0
            && libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut timer) == 0
            && libc::timer_settime(timer, 0, &every, std::ptr::null_mut()) == 0
    };
    if done { Ok(()) } else { Err(failed()).doing("cannot start the timer on CPU time") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eft_host::clock;
    use std::time::Duration;

    #[test]
    fn a_thread_that_computes_has_ticks_and_one_that_sleeps_has_none() {
        let status = Status::heap();
        count_in(&status);
        start().unwrap();
        let used = || {
            let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: plain call with a valid out pointer.
            unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
            Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
        };
        let begin = used();
        // Time may be stolen meanwhile, so there may be fewer ticks than the time says, but never more.
        while status.ticks() < 5 {
            assert!(used() - begin < Duration::from_secs(60), "no ticks");
            std::hint::black_box(clock::now());
        }
        let ticks = status.ticks();
        assert!((used() - begin + TICK).as_millis() as u64 >= ticks * TICK.as_millis() as u64);
        std::thread::sleep(TICK * 5);
        // Falling asleep may cost one tick.
        assert!(status.ticks() <= ticks + 1);
    }
}
