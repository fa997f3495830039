//! What acknowledgments that come together deliver beyond the rate, so that the window has room for it.

use core::time::Duration;
use eft_base::Instant;

/// The allowance for acknowledgments that come together lasts for so many rounds, and is no more than the rate brings in this
/// time.
const AGGREGATION_ROUNDS: u64 = 5;
const AGGREGATION_MAX: Duration = Duration::from_millis(100);
#[derive(Clone, Copy, Debug, Default)]
pub struct Aggregation {
    since: Instant,
    acked: u64,
    /// The most of the present rounds and of those before.
    extra: [u64; 2],
    rounds: u64,
}

impl Aggregation {
    /// Bytes `acked` came, at a rate of `bandwidth`; `round_began`: and a round trip with them.
    pub fn on_ack(&mut self, now: Instant, acked: u64, bandwidth: u64, round_began: bool) {
        self.rounds += round_began as u64;
        if self.rounds >= AGGREGATION_ROUNDS {
            (self.rounds, self.extra) = (0, [0, self.extra[0]]);
        }
        if self.acked <= amount(bandwidth, now.saturating_since(self.since)) {
            (self.since, self.acked) = (now, 0);
        }
        let expected = amount(bandwidth, now.saturating_since(self.since));
        self.acked += acked;
        self.extra[0] = self.extra[0].max(self.acked.saturating_sub(expected));
    }

    /// Bytes to allow for.
    pub fn allowance(&self, bandwidth: u64) -> u64 {
        let extra = self.extra[0].max(self.extra[1]);
        extra.min(amount(bandwidth, AGGREGATION_MAX))
    }
}

/// Bytes that a rate delivers in a time.
pub fn amount(bandwidth: u64, time: Duration) -> u64 {
    (bandwidth as u128 * time.as_nanos() / 1_000_000_000).min(u64::MAX as u128) as u64
}
