//! Connections that TCP Fast Open began early, and that were reset: for a while they count on with those of their listener
//! that are unproven.

use alloc::collections::VecDeque;
use core::time::Duration;
use eft_base::Instant;

/// How long one that was reset counts on, as on Linux: whoever shows others' cookies makes their resets come.
const RESET_COUNTS: Duration = Duration::from_secs(60);

/// Unproven connections that were reset and count on with their listener (RFC 7413 §5.1).
#[derive(Default)]
pub(super) struct Resets(VecDeque<Counted>);

struct Counted {
    listener: u32,
    generation: u32,
    until: Instant,
}

impl Resets {
    /// One was reset.
    pub fn note(&mut self, now: Instant, listener: u32, generation: u32) {
        self.0.push_back(Counted { listener, generation, until: now + RESET_COUNTS });
    }

    /// One that counts no longer: its listener and the listener's generation.
    pub fn pop(&mut self, now: Instant) -> Option<(u32, u32)> {
        self.0
            .pop_front_if(|counted| counted.until <= now)
            .map(|counted| (counted.listener, counted.generation))
    }
}
