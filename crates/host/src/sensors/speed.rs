//! The speed of a core as a program sees it: a busy loop over a second, and how late a sleeper wakes.
//!
//! Full speed is the rate that the same loop reached on that core before it was slowed, per second of its CPU time;
//! without such a run, the rate of its undisturbed chunks. Time that neither the loop nor the burner had (other
//! programs, kernel, hypervisor) would look like slowness: a twentieth of a core or more on a busy machine. CPU times
//! reveal it, and it counts as part of what the burner leaves; the share as seen with it is kept too.

use std::hint::black_box;
use std::time::Duration;

use eft_base::time::nanos;
use eft_machine::{CpuId, Latency, Share};
use serde::Serialize;

use crate::actuators::affinity;
use crate::actuators::burner::sleep_until;
use crate::clock;
use crate::error::{Error, error};
use crate::sensors::Tree;

#[derive(Clone, Debug, Serialize)]
pub struct SpeedMeasurement {
    pub cpu: CpuId,
    /// Share of full speed that the burner leaves to all else: the time that it does not take, at the loop's rate per
    /// CPU time.
    pub share: Share,
    /// The same over the whole time, others' part included.
    pub share_seen: Share,
    /// Part of the time that others had.
    pub others: Share,
    /// Chunks of the loop done in a second of its CPU time.
    pub rate: f64,
    pub seconds: f64,
    /// Over windows of 10 ms.
    pub window_min: Share,
    pub window_max: Share,
    pub window_deviation: Share,
    pub wake_delay: WakeDelay,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct WakeDelay {
    #[serde(rename = "median_us")]
    pub median: Latency,
    #[serde(rename = "p99_us")]
    pub p99: Latency,
    #[serde(rename = "max_us")]
    pub max: Latency,
}

const WINDOW_NS: u64 = 10_000_000;
/// One chunk takes some microseconds: short against the burner's period.
const CHUNK_ITERATIONS: u64 = 4_000;
const NICE: i32 = -20;

/// Measures on a thread of its own, bound to the CPU. `full_rate` is the `rate` that it had at full speed, `burner` the
/// thread that slows the CPU.
pub fn measure(
    cpu: CpuId,
    duration: Duration,
    full_rate: Option<f64>,
    burner: Option<i32>,
) -> Result<SpeedMeasurement, Error> {
    let thread = std::thread::spawn(move || {
        affinity::pin_myself(cpu)?;
        // SAFETY: plain numbers; 0 names the calling thread. Without the privilege the measurement is only noisier.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
        let burnt = || burner.and_then(|tid| cpu_time_ns(&Tree::live(), tid)).unwrap_or(0);
        let before = (own_cpu_time_ns(), burnt());
        let chunks = busy_loop(duration);
        let had = Had {
            loop_ns: own_cpu_time_ns().saturating_sub(before.0),
            burner_ns: burnt().saturating_sub(before.1),
        };
        let wake_delay = wake_delay(Duration::from_millis(300));
        Ok(summarise(cpu, &chunks, had, full_rate, wake_delay))
    });
    thread.join().map_err(|_| error!(System, "the measurement failed"))?
}

/// CPU time of the loop and the burner, which share the core.
#[derive(Clone, Copy)]
struct Had {
    loop_ns: u64,
    burner_ns: u64,
}

fn own_cpu_time_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Of any thread; `None` on a kernel without schedstat.
fn cpu_time_ns(tree: &Tree, tid: i32) -> Option<u64> {
    tree.text(&format!("proc/{tid}/schedstat"))?.split_whitespace().next()?.parse().ok()
}

/// The ends of all chunks, after the moment of the beginning.
fn busy_loop(duration: Duration) -> Vec<u64> {
    let mut ends = Vec::with_capacity(1 << 20);
    let begin = clock::now().0;
    let until = begin + nanos(duration);
    ends.push(begin);
    let mut sum = 0u64;
    loop {
        for iteration in 0..CHUNK_ITERATIONS {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(iteration));
        }
        let now = clock::now().0;
        ends.push(now);
        if now >= until {
            return ends;
        }
    }
}

fn summarise(
    cpu: CpuId,
    ends: &[u64],
    had: Had,
    full_rate: Option<f64>,
    wake_delay: WakeDelay,
) -> SpeedMeasurement {
    let mut lengths: Vec<u64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    lengths.sort_unstable();
    // Most chunks are not interrupted even at 1/8, where a burn of 875 us hits one chunk in some thirty.
    let median_ns = lengths.get(lengths.len() / 2).copied().unwrap_or(1).max(1) as f64;
    let chunk_ns = full_rate.filter(|rate| *rate > 0.0).map_or(median_ns, |rate| 1e9 / rate);
    let (begin, end) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
    let wall_ns = (end - begin).max(1);
    let ours_ns = (had.loop_ns + had.burner_ns).clamp(1, wall_ns);
    let left = wall_ns.saturating_sub(had.burner_ns) as f64 / wall_ns as f64;
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
        share: Share(left * share(lengths.len(), had.loop_ns)),
        share_seen: Share(share(lengths.len(), wall_ns)),
        others: Share(ours_ns as f64 / wall_ns as f64).rest(),
        rate: lengths.len() as f64 * 1e9 / had.loop_ns.max(1) as f64,
        seconds: (end - begin) as f64 / 1e9,
        window_min: Share(windows.iter().copied().fold(f64::INFINITY, f64::min)),
        window_max: Share(windows.iter().copied().fold(0.0, f64::max)),
        window_deviation: Share(variance.sqrt()),
        wake_delay,
    }
}

/// How late a thread that sleeps for 1.3 ms wakes: not in step with the burner's period.
fn wake_delay(duration: Duration) -> WakeDelay {
    let mut late = Vec::new();
    let until = clock::now() + duration;
    while clock::now() < until {
        let moment = clock::now() + Duration::from_micros(1300);
        sleep_until(moment);
        late.push(nanos(clock::now().saturating_since(moment)) as f64 / 1000.0);
    }
    late.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| late.get(((late.len() - 1) as f64 * part) as usize).copied().unwrap_or(0.0);
    let [median, p99, max] = [0.5, 0.99, 1.0].map(|part| Latency(at(part)));
    WakeDelay { median, p99, max }
}

/// The wake-up delay alone, on a CPU.
pub fn measure_wake_delay(cpu: CpuId, duration: Duration) -> Result<WakeDelay, Error> {
    let thread = std::thread::spawn(move || affinity::pin_myself(cpu).map(|()| wake_delay(duration)));
    thread.join().map_err(|_| error!(System, "the measurement failed"))?
}

#[cfg(test)]
mod tests;
