//! The throughput of bulk data over time, and its pauses.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::loads::Loads;

/// Time between two samples.
pub const TICK: Duration = Duration::from_millis(2);
/// What is kept of the time around a fault.
pub const BEFORE: Duration = Duration::from_millis(100);
pub const AFTER: Duration = Duration::from_millis(500);
/// How much of the past is kept.
const KEPT: usize = 20_000;

/// Samples the bulk connections all the time, from a thread of its own.
pub struct Pulse {
    begin: Instant,
    /// When, since the begin, and bytes until then.
    samples: Arc<Mutex<Vec<(Duration, u64)>>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pulse {
    pub fn start(loads: &Arc<Loads>) -> Pulse {
        // The load ends when its owner drops it, not with this thread.
        let loads = Arc::downgrade(loads);
        let mut pulse =
            Pulse { begin: Instant::now(), samples: Arc::default(), ends: Arc::default(), thread: None };
        let (begin, samples, ends) = (pulse.begin, pulse.samples.clone(), pulse.ends.clone());
        let thread = std::thread::spawn(move || {
            while !ends.load(Relaxed) {
                let Some(bytes) = loads.upgrade().map(|loads| loads.bulk()) else { return };
                if let Ok(mut samples) = samples.lock() {
                    samples.push((begin.elapsed(), bytes));
                    let many = samples.len().saturating_sub(KEPT);
                    samples.drain(..many / 2);
                }
                std::thread::sleep(TICK);
            }
        });
        pulse.thread = Some(thread);
        pulse
    }

    pub fn now(&self) -> Duration {
        self.time(Instant::now())
    }

    /// Since it began.
    pub fn time(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.begin)
    }

    /// The opposite.
    pub fn instant(&self, time: Duration) -> Instant {
        self.begin + time
    }

    fn between(&self, from: Duration, to: Duration) -> Vec<(Duration, u64)> {
        let samples = self.samples.lock().map(|samples| samples.clone()).unwrap_or_default();
        samples.into_iter().filter(|(at, _)| (from..to).contains(at)).collect()
    }

    /// The longest time without a byte that began within `limit` of `from`, in milliseconds.
    pub fn pause(&self, from: Duration, limit: Duration) -> f64 {
        longest_pause(&self.between(from, from + limit))
    }

    /// Milliseconds since `at`, and Gb/s.
    pub fn window(&self, at: Duration) -> Vec<(f64, f64)> {
        let samples = self.between(at.saturating_sub(BEFORE), at + AFTER);
        let rate = |w: &[(Duration, u64)]| {
            let (seconds, bytes) = ((w[1].0 - w[0].0).as_secs_f64(), w[1].1 - w[0].1);
            ((w[1].0.as_secs_f64() - at.as_secs_f64()) * 1e3, bytes as f64 * 8.0 / 1e9 / seconds.max(1e-6))
        };
        samples.windows(2).map(rate).collect()
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        // While it looks at the load, that would not end with its owner, and not at all if the process ends.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn longest_pause(samples: &[(Duration, u64)]) -> f64 {
    let mut longest = Duration::ZERO;
    let mut since = samples.first().copied();
    for &(at, bytes) in samples {
        match since {
            Some((_, then)) if bytes != then => {
                longest = longest.max(at - since.map_or(at, |(from, _)| from));
                since = Some((at, bytes));
            }
            _ => {}
        }
    }
    if let (Some((from, _)), Some((to, _))) = (since, samples.last()) {
        longest = longest.max(*to - from);
    }
    longest.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests;
