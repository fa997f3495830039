//! One part of the mixed load, and what came of it.

use std::fmt::Display;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::late::LateAnswers;

/// How many lost connections of a part are described.
const ENDS_KEPT: usize = 8;

/// One part of the load.
pub struct Part {
    pub name: &'static str,
    /// Connections that it keeps open; 0: a new one each time.
    pub connections: u64,
    pub progress: AtomicU64,
    pub lost: AtomicU64,
    pub damaged: AtomicU64,
    /// Requests whose answers came late.
    pub late: LateAnswers,
    /// How the last connections were lost.
    ends_seen: Mutex<Vec<String>>,
    ends: AtomicBool,
}

impl Part {
    pub fn new(name: &'static str, connections: u64) -> Part {
        let zero = || AtomicU64::new(0);
        let (progress, lost, damaged, late) = (zero(), zero(), zero(), LateAnswers::default());
        let (ends_seen, ends) = (Mutex::default(), AtomicBool::new(false));
        Part { name, connections, progress, lost, damaged, late, ends_seen, ends }
    }

    pub fn goes_on(&self) -> bool {
        !self.ends.load(Relaxed)
    }

    pub fn end(&self) {
        self.ends.store(true, Relaxed);
    }

    /// A connection that had begun at `begin` is lost, and this is what its program sees of it.
    pub fn lost(&self, begin: Instant, why: impl Display) {
        if let Ok(mut ends) = self.ends_seen.lock() {
            ends.push(format!("{why}, after {:.1} s", begin.elapsed().as_secs_f64()));
            let many = ends.len().saturating_sub(ENDS_KEPT);
            ends.drain(..many);
        }
        self.lost.fetch_add(1, Relaxed);
        std::thread::sleep(Duration::from_millis(50));
    }

    /// How the last `count` connections were lost, as far as that is kept.
    pub fn last_ends(&self, count: u64) -> String {
        let Ok(ends) = self.ends_seen.lock() else { return String::new() };
        ends[ends.len().saturating_sub(count as usize)..].join("; ")
    }
}
