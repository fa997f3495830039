//! When to look for requests whose answer was lost: a damaged or forgotten receipt of ip would hold a ring for good.

use crate::timers::NEVER;
use core::time::Duration;
use eft_base::Instant;

/// Far above what an answer takes, below what a program waits for.
const ROUND: Duration = Duration::from_secs(1);
/// After so many rounds nothing of a request is on its way any more: longer than a nic that dies again and again stays away.
pub(crate) const LONG: u32 = 15;

pub(crate) struct Rounds(Instant);

impl Rounds {
    pub fn new() -> Rounds {
        Rounds(NEVER)
    }

    /// Requests wait, or none does.
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
