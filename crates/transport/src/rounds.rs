//! When to check for requests whose answer was lost: a damaged or forgotten receipt of ip would hold a ring for ever.

use crate::timers::NEVER;
use core::time::Duration;
use eft_base::Instant;

/// Far longer than an answer takes, shorter than a program's patience.
const ROUND: Duration = Duration::from_secs(1);
/// After this many rounds no packet of a request is under way any more: longer than a nic that dies repeatedly stays away.
pub(crate) const LONG: u32 = 15;

pub(crate) struct Rounds(Instant);

impl Rounds {
    pub fn new() -> Rounds {
        Rounds(NEVER)
    }

    /// Starts or stops rounds: `waiting` says whether requests wait.
    pub fn arm(&mut self, now: Instant, waiting: bool) {
        match (waiting, self.0 == NEVER) {
            (true, true) => self.0 = now + ROUND,
            (false, false) if self.0 <= now => self.0 = NEVER,
            _ => {}
        }
    }

    /// Whether a round is over; then the next one has begun.
    pub fn expire(&mut self, now: Instant) -> bool {
        let over = self.0 <= now;
        if over {
            self.0 = now + ROUND;
        }
        over
    }

    pub fn deadline(&self) -> Option<Instant> {
        (self.0 != NEVER).then_some(self.0)
    }
}
