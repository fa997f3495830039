//! When to check for requests whose answer was lost: a damaged or forgotten message would hold a buffer for ever.
//!
//! A request that has waited for a whole round is repeated ([`Requests::next_round`](crate::Requests::next_round)). Whoever has
//! it under way ignores that; whoever has answered it answers again; and whoever has never heard of it carries it out.

use core::time::Duration;
use eft_base::Instant;

/// Far longer than an answer takes, shorter than a program's patience.
const ROUND: Duration = Duration::from_secs(1);
/// Requests to repeat in a round: their reader may have to search for each of them.
pub const REPEATED: usize = 64;

/// Runs while requests wait.
#[derive(Default)]
pub struct Rounds(Option<Instant>);

impl Rounds {
    /// At the end of a turn: begins a round if requests wait and none runs, and ends the one that runs if none wait.
    pub fn arm(&mut self, now: Instant, waiting: bool) {
        self.0 = waiting.then(|| self.0.unwrap_or(now + ROUND));
    }

    /// Whether a round is over. The next one begins with the next [`Rounds::arm`].
    pub fn expire(&mut self, now: Instant) -> bool {
        self.0.take_if(|end| *end <= now).is_some()
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.0
    }
}
