//! The throughput of bulk data over time, and the pauses of each connection.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::loads::{BULK, Loads};

/// Time between two samples.
pub const TICK: Duration = Duration::from_millis(2);
/// What is kept of the time around a fault.
pub const BEFORE: Duration = Duration::from_millis(100);
pub const AFTER: Duration = Duration::from_millis(500);
/// How much of the past is kept.
const KEPT: usize = 20_000;

/// When, since the begin, and the bytes of each bulk connection until then.
type Sample = (Duration, [u64; BULK]);

/// Samples the bulk connections all the time, from a thread of its own.
pub struct Pulse {
    begin: Instant,
    samples: Arc<Mutex<Vec<Sample>>>,
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

    fn between(&self, from: Duration, to: Duration) -> Vec<Sample> {
        let samples = self.samples.lock().map(|samples| samples.clone()).unwrap_or_default();
        samples.into_iter().filter(|(at, _)| (from..to).contains(at)).collect()
    }

    /// The longest time without a byte of one of the connections that began after `from` and within [`AFTER`], in milliseconds. It
    /// counts until bytes come again, or until now.
    pub fn pause(&self, from: Duration) -> f64 {
        let samples = self.between(from, Duration::MAX);
        let of_one =
            |n: usize| longest_pause(samples.iter().map(|(at, bytes)| (*at, bytes[n])), from + AFTER);
        (0..BULK).map(of_one).max().unwrap_or_default().as_secs_f64() * 1e3
    }

    /// Milliseconds since `at`, and Gb/s.
    pub fn window(&self, at: Duration) -> Vec<(f64, f64)> {
        let samples = self.between(at.saturating_sub(BEFORE), at + AFTER);
        let rate = |w: &[Sample]| {
            let bytes = w[1].1.iter().sum::<u64>() - w[0].1.iter().sum::<u64>();
            let seconds = (w[1].0 - w[0].0).as_secs_f64();
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

/// Of one connection: the longest time between two samples of the same bytes that began before `limit`.
fn longest_pause(samples: impl Iterator<Item = (Duration, u64)>, limit: Duration) -> Duration {
    let mut longest = Duration::ZERO;
    let mut since: Option<(Duration, u64)> = None;
    for (at, bytes) in samples {
        match since {
            Some((from, then)) if from < limit => {
                longest = longest.max(at - from);
                if bytes != then {
                    since = Some((at, bytes));
                }
            }
            Some(_) => break,
            None => since = Some((at, bytes)),
        }
    }
    longest
}

#[cfg(test)]
mod tests;
