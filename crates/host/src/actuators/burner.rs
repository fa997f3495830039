//! The emulated speed: a real-time thread that holds a core for a part of each period.
//!
//! Limits, shown to the user: interrupts and softirqs are not slowed; the core stalls for a part of each period
//! instead of running slowly; the kernel's own placement notices the real-time load. Promises: without a burner
//! thread it costs nothing; a kernel or cgroup that refuses real-time threads is detected before anything is changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use eft_base::Instant;
use eft_cores::duty::{Duty, DutyOptions};
use eft_machine::CpuId;

use super::affinity;
use super::urgent::RealTime;

use crate::clock;
use crate::error::{Error, error};

/// Above ordinary real-time work, below the kernel's own watchdogs and migration threads (99).
const PRIORITY: i32 = 80;
pub const LIMITS: &str = "emulated: interrupts and softirqs are not slowed; the core stalls for a part of each period instead of running slowly; the kernel's own placement notices";

pub struct Burner {
    stop: Arc<AtomicBool>,
    tid: Arc<AtomicI32>,
    thread: Option<JoinHandle<()>>,
}

/// Tries to become real-time in a separate thread, and returns why the kernel refuses it.
pub fn check_allowed() -> Result<(), Error> {
    std::thread::spawn(become_real_time)
        .join()
        .unwrap_or_else(|_| Err(error!(System, "the real-time check failed")))
}

fn become_real_time() -> Result<(), Error> {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: the parameters live through the call, which only reads them; 0 names the calling thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(match error.raw_os_error() {
        Some(libc::EPERM) if rustix::process::geteuid().is_root() => {
            error!(
                Denied,
                "real-time threads are refused: this cgroup has no real-time budget (RT group scheduling: give it cpu.rt_runtime_us, or run eft in the root cgroup), or CAP_SYS_NICE is missing"
            )
        }
        Some(libc::EPERM) => error!(Denied, "real-time threads are refused: this needs root or CAP_SYS_NICE"),
        _ => error!(System, "real-time threads are refused ({error})"),
    })
}

impl Burner {
    pub fn start(cpu: CpuId, options: DutyOptions) -> Result<Self, Error> {
        let (stop, tid) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI32::new(0)));
        let (report, started) = std::sync::mpsc::channel();
        // The thread starts as a real-time thread: on a loaded CPU an ordinary thread may wait long before it first
        // runs, while its creator holds the lock (20 s were seen on Linux 6.18).
        let _urgent = RealTime::begin();
        let thread = {
            let (stop, tid) = (stop.clone(), tid.clone());
            std::thread::Builder::new()
                .name(format!("eft-burner-{cpu}"))
                .spawn(move || {
                    let ready = become_real_time().and_then(|()| affinity::pin_myself(cpu));
                    tid.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Release);
                    let is_ready = ready.is_ok();
                    let _ = report.send(ready);
                    if is_ready {
                        burn(options, &stop);
                    }
                })
                .map_err(|error| error!(System, "no thread can be started ({error})"))?
        };
        started.recv().map_err(|_| error!(System, "the burner thread ended"))??;
        Ok(Self { stop, tid, thread: Some(thread) })
    }

    pub fn tid(&self) -> i32 {
        self.tid.load(Ordering::Acquire)
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sleeps until a moment of the monotonic clock.
pub fn sleep_until(moment: Instant) {
    let since_boot = moment.saturating_since(Instant::ZERO);
    let until =
        libc::timespec { tv_sec: since_boot.as_secs() as i64, tv_nsec: i64::from(since_boot.subsec_nanos()) };
    // SAFETY: `until` lives through the call, which only reads it. A signal may end the sleep early; callers check
    // the clock.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut())
    };
}

fn burn(options: DutyOptions, stop: &AtomicBool) {
    let mut duty = Duty::new(options, clock::now());
    while !stop.load(Ordering::Acquire) {
        let burn = duty.next();
        sleep_until(burn.begin);
        let started = clock::now();
        let mut now = started;
        while now < started + burn.length {
            std::hint::spin_loop();
            now = clock::now();
        }
        duty.finish(started, now);
    }
}

/// The period of the design: each millisecond.
pub const PERIOD: Duration = Duration::from_millis(1);
