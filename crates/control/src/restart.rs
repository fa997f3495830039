//! What to do about a death: the first three restarts at once, later ones after a delay that grows to ten seconds. No
//! component is given up: the rest of the stack runs on, and connections can wait.

use core::time::Duration;
use eft_base::Instant;

/// Restarts without delay.
const FREE: u32 = 3;
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
mod tests {
    use super::*;

    #[test]
    fn three_at_once_then_growing_then_at_a_steady_rate() {
        let mut r = Restarts::default();
        let now = Instant::from_millis(1000);
        r.started(now);
        assert_eq!([r.died(now, false), r.died(now, false), r.died(now, false)], [Decision::Now; 3]);
        let mut last = Duration::ZERO;
        for _ in 0..9 {
            let Decision::After(d) = r.died(now, false) else { panic!("it is hurried") };
            assert!(d > last || d == DELAY_MAX);
            last = d;
        }
        assert!(!r.is_hopeless());
        for _ in 0..1000 {
            assert_eq!(r.died(now, false), Decision::After(DELAY_MAX));
        }
        assert!(r.is_hopeless());
        assert_eq!((r.total(), r.in_a_row()), (1012, 1012));
    }

    #[test]
    fn a_minute_of_life_forgives_and_kills_on_purpose_do_not_count() {
        let mut r = Restarts::default();
        for _ in 0..100 {
            assert_eq!(r.died(Instant::ZERO, true), Decision::Now);
        }
        for _ in 0..4 {
            r.died(Instant::ZERO, false);
        }
        assert_eq!(r.died(Instant::ZERO + PROBATION, false), Decision::Now);
    }
}
