//! What a server holds against a neighbour.

use core::time::Duration;
use eft_base::Instant;

/// Until it says so again: who judges has looked by then.
const AGAIN: Duration = Duration::from_millis(10);

/// A neighbour that damages its queue, or sends what is no message, is accused, and again as long as that is to be seen.
#[derive(Default)]
pub(crate) struct Suspicion {
    /// Its next message is none. Nothing more is taken, so that the line stays for whoever judges.
    pub nonsense: bool,
    accused: Option<Instant>,
}

impl Suspicion {
    /// Whether it is to be accused now, when there is cause.
    pub fn accuses(&mut self, now: Instant) -> bool {
        let due = self.accused.is_none_or(|at| now.saturating_since(at) >= AGAIN);
        if due {
            self.accused = Some(now);
        }
        due
    }

    /// When there will be a word to say again.
    pub fn deadline(&self) -> Option<Instant> {
        self.accused.filter(|_| self.nonsense).map(|at| at + AGAIN)
    }
}
