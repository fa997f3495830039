//! A guest that is a process: it works always, or for a share of its time.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::guest::Guest;

/// A paced guest works once in each.
const PERIOD: Duration = Duration::from_millis(20);

/// What this thread has used of a CPU.
pub fn own_cpu() -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: plain call with a valid out pointer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Starts a process that works at full speed for a share of its time; 1 is always.
pub fn start(share: f64) -> Result<Guest> {
    let program = std::env::current_exe()?;
    let child = Command::new(program)
        .args(["bench", "vm-worker", &share.to_string()])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| anyhow!("a worker cannot be started ({error})"))?;
    let pid = child.id() as i32;
    Ok(Guest::new(child, pid))
}

#[derive(clap::Args)]
pub struct WorkerArguments {
    /// Share of a full-speed CPU that its work takes; at 1 it never rests
    share: f64,
}

/// One worker: work at each beat, until its input closes.
pub fn worker(arguments: &WorkerArguments) -> Result<()> {
    let closed = std::thread::spawn(|| drop(std::io::stdin().read_to_end(&mut Vec::new())));
    let (beat, mut next) = (PERIOD.mul_f64(arguments.share.clamp(0.01, 1.0)), Instant::now());
    while !closed.is_finished() {
        // By its own CPU time: a beat is as much work on a slowed CPU as on a fast one.
        let begin = own_cpu();
        while own_cpu() - begin < beat {
            (0..4000u64)
                .fold(1u64, |x, i| std::hint::black_box(x.wrapping_mul(6364136223846793005).wrapping_add(i)));
        }
        if arguments.share < 1.0 {
            next = (next + PERIOD).max(Instant::now() - PERIOD);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }
    Ok(())
}
