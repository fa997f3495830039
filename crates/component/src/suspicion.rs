//! A server's suspicion of a neighbour.

use core::time::Duration;
use eft_base::Instant;

/// Time between two accusations: the supervisor has judged by then.
const AGAIN: Duration = Duration::from_millis(10);

/// A neighbour that damages its queue or sends a line that is not a message is accused, repeatedly for as long as the
/// damage is there.
#[derive(Default)]
pub(crate) struct Suspicion {
    /// Its next line is not a message. Nothing more is taken, so that the supervisor can inspect the line.
    pub nonsense: bool,
    accused: Option<Instant>,
}

impl Suspicion {
    /// Whether to accuse it now; called when there is cause.
    pub fn accuses(&mut self, now: Instant) -> bool {
        let due = self.accused.is_none_or(|at| now.saturating_since(at) >= AGAIN);
        if due {
            self.accused = Some(now);
        }
        due
    }

    /// When the next accusation is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.accused.filter(|_| self.nonsense).map(|at| at + AGAIN)
    }
}
