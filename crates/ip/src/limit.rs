//! A token bucket: how many ICMP errors may leave (RFC 1812 §4.3.2.8), and resets for what the filter
//! blocks.

use eft_base::Instant;

const PER_SECOND: u64 = 200;
const BURST: u64 = 50;
const NANOS_PER_TOKEN: u64 = 1_000_000_000 / PER_SECOND;

/// Holds up to [`BURST`] tokens; one comes every [`NANOS_PER_TOKEN`].
pub(crate) struct Limiter {
    /// The bucket is full again at this time; each token taken moves it later.
    full_at: u64,
}

impl Limiter {
    pub fn new() -> Limiter {
        Limiter { full_at: 0 }
    }

    pub fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now.as_nanos()) + NANOS_PER_TOKEN;
        if full_at - now.as_nanos() > BURST * NANOS_PER_TOKEN {
            return false;
        }
        self.full_at = full_at;
        true
    }
}

#[cfg(test)]
mod tests;
