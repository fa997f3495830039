//! The speed of a core as a program sees it: a busy loop over a second, and how late a sleeper wakes.
//!
//! Full speed is what the same loop reached on that core before it was slowed; without such a run, what its undisturbed
//! chunks would make. Other programs on the core would be taken for slowness; the loop outweighs them with the highest
//! ordinary priority, so a few of them cost about a percent.

use std::hint::black_box;
use std::time::Duration;

use serde::Serialize;

use crate::actuators::affinity;
use crate::actuators::burner::{now_ns, sleep_until_ns};

#[derive(Clone, Debug, Serialize)]
pub struct SpeedMeasurement {
    pub cpu: u32,
    /// Share of full speed over the whole time.
    pub share: f64,
    /// Chunks of the loop done in a second.
    pub rate: f64,
    pub seconds: f64,
    /// Over windows of 10 ms.
    pub window_min: f64,
    pub window_max: f64,
    pub window_deviation: f64,
    pub wake_delay: WakeDelay,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct WakeDelay {
    pub median_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

const WINDOW_NS: u64 = 10_000_000;
/// One chunk takes some microseconds: short against the burner's period.
const CHUNK_ITERATIONS: u64 = 4_000;
const NICE: i32 = -20;

/// Measures on a thread of its own, bound to the CPU. `full_rate` is the `rate` that it had at full speed.
pub fn measure(cpu: u32, duration: Duration, full_rate: Option<f64>) -> Result<SpeedMeasurement, String> {
    let thread = std::thread::spawn(move || {
        affinity::pin_myself(cpu)?;
        // SAFETY: plain numbers; 0 names the calling thread. Without the privilege the measurement is only noisier.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
        let chunks = busy_loop(duration);
        let wake_delay = wake_delay(Duration::from_millis(300));
        Ok(summarise(cpu, &chunks, full_rate, wake_delay))
    });
    thread.join().map_err(|_| "the measurement failed".to_string())?
}

/// The ends of all chunks, after the moment of the beginning.
fn busy_loop(duration: Duration) -> Vec<u64> {
    let mut ends = Vec::with_capacity(1 << 20);
    let begin = now_ns();
    let until = begin + duration.as_nanos() as u64;
    ends.push(begin);
    let mut sum = 0u64;
    loop {
        for iteration in 0..CHUNK_ITERATIONS {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(iteration));
        }
        let now = now_ns();
        ends.push(now);
        if now >= until {
            return ends;
        }
    }
}

fn summarise(cpu: u32, ends: &[u64], full_rate: Option<f64>, wake_delay: WakeDelay) -> SpeedMeasurement {
    let mut lengths: Vec<u64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    lengths.sort_unstable();
    // Most chunks are not interrupted even at 1/8, where a burn of 875 us hits one chunk in some thirty.
    let median_ns = lengths.get(lengths.len() / 2).copied().unwrap_or(1).max(1) as f64;
    let chunk_ns = full_rate.filter(|rate| *rate > 0.0).map_or(median_ns, |rate| 1e9 / rate);
    let (begin, end) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
    let share = |count: usize, wall_ns: u64| count as f64 * chunk_ns / wall_ns.max(1) as f64;
    let mut windows: Vec<f64> = Vec::new();
    let mut from = 1;
    while begin + WINDOW_NS * (windows.len() as u64 + 1) <= end {
        let edge = begin + WINDOW_NS * (windows.len() as u64 + 1);
        let count = ends[from..].iter().take_while(|chunk| **chunk <= edge).count();
        windows.push(share(count, WINDOW_NS));
        from += count;
    }
    let mean = windows.iter().sum::<f64>() / windows.len().max(1) as f64;
    let variance =
        windows.iter().map(|window| (window - mean).powi(2)).sum::<f64>() / windows.len().max(1) as f64;
    SpeedMeasurement {
        cpu,
        share: share(lengths.len(), end - begin),
        rate: lengths.len() as f64 * 1e9 / (end - begin).max(1) as f64,
        seconds: (end - begin) as f64 / 1e9,
        window_min: windows.iter().copied().fold(f64::INFINITY, f64::min),
        window_max: windows.iter().copied().fold(0.0, f64::max),
        window_deviation: variance.sqrt(),
        wake_delay,
    }
}

/// How late a thread that sleeps for 1.3 ms wakes: not in step with the burner's period.
fn wake_delay(duration: Duration) -> WakeDelay {
    let mut late = Vec::new();
    let until = now_ns() + duration.as_nanos() as u64;
    while now_ns() < until {
        let moment = now_ns() + 1_300_000;
        sleep_until_ns(moment);
        late.push(now_ns().saturating_sub(moment) as f64 / 1000.0);
    }
    late.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| late.get(((late.len() - 1) as f64 * part) as usize).copied().unwrap_or(0.0);
    WakeDelay { median_us: at(0.5), p99_us: at(0.99), max_us: at(1.0) }
}

/// The wake-up delay alone, on a CPU.
pub fn measure_wake_delay(cpu: u32, duration: Duration) -> Result<WakeDelay, String> {
    let thread = std::thread::spawn(move || affinity::pin_myself(cpu).map(|()| wake_delay(duration)));
    thread.join().map_err(|_| "the measurement failed".to_string())?
}
