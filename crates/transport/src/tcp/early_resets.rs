//! Connections that TCP Fast Open opened early and that were reset: for a while they still count as unproven connections
//! of their listener.

use alloc::collections::VecDeque;
use core::time::Duration;
use eft_base::Instant;

/// How long a reset connection still counts, as on Linux: an attacker that uses other hosts' cookies causes resets from
/// them.
const RESET_COUNTS: Duration = Duration::from_secs(60);

/// Unproven connections that were reset and still count for their listener (RFC 7413 §5.1).
#[derive(Default)]
pub(super) struct Resets(VecDeque<Counted>);

struct Counted {
    listener: u32,
    generation: u32,
    until: Instant,
}

impl Resets {
    /// Notes that one was reset.
    pub fn note(&mut self, now: Instant, listener: u32, generation: u32) {
        self.0.push_back(Counted { listener, generation, until: now + RESET_COUNTS });
    }

    /// Removes one that no longer counts: its listener and the listener's generation.
    pub fn pop(&mut self, now: Instant) -> Option<(u32, u32)> {
        self.0
            .pop_front_if(|counted| counted.until <= now)
            .map(|counted| (counted.listener, counted.generation))
    }
}
