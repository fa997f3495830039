//! What to do about a death: the first three restarts at once, later ones after a delay that grows to ten seconds. No
//! component is given up: the rest of the stack runs on, and connections can wait.

use core::time::Duration;
use eft_base::Instant;

/// Restarts without delay.
pub const FREE: u32 = 3;
/// The longest delay.
const DELAY_MAX: Duration = Duration::from_secs(10);
/// A stack in which a component died so often before it was ready will never become ready.
const HOPELESS: u32 = 12;
/// A component that lived this long has proven itself: its history is forgotten.
const PROBATION: Duration = Duration::from_secs(60);

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Now,
    After(Duration),
}

/// The history of one component.
#[derive(Clone, Debug, Default)]
pub struct Restarts {
    recent: u32,
    total: u32,
    started: Instant,
}

impl Restarts {
    pub fn started(&mut self, now: Instant) {
        self.started = now;
    }

    /// Decides after a death at `now`. `on_purpose` (an operator's kill) does not count against it.
    pub fn died(&mut self, now: Instant, on_purpose: bool) -> Decision {
        self.total += 1;
        if now.saturating_since(self.started) >= PROBATION {
            self.recent = 0;
        }
        if on_purpose {
            return Decision::Now;
        }
        self.recent += 1;
        match self.recent {
            n if n <= FREE => Decision::Now,
            n => Decision::After(Duration::from_millis(100 << (n - FREE - 1).min(10)).min(DELAY_MAX)),
        }
    }

    /// Deaths in a row, none of them on purpose.
    pub fn in_a_row(&self) -> u32 {
        self.recent
    }

    /// Whether a component that has never been ready is unlikely to become so.
    pub fn is_hopeless(&self) -> bool {
        self.recent > HOPELESS
    }

    /// Deaths so far.
    pub fn total(&self) -> u32 {
        self.total
    }
}

#[cfg(test)]
mod tests;
