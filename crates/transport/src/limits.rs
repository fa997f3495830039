//! Rate limits for packets that strangers can make us send.

use eft_base::Instant;

/// A token bucket: `rate` per second, at most `rate` saved up, on average. A token costs a little more or less at
/// random, so that a host that counts our answers cannot tell whether another host got one (CVE-2016-5696).
pub(crate) struct Bucket {
    rate: u64,
    /// Tokens in billionths.
    level: u64,
    at: Instant,
}

const UNIT: u64 = 1_000_000_000;

impl Bucket {
    pub fn new(rate: u64) -> Bucket {
        Bucket { rate, level: rate * UNIT, at: Instant::ZERO }
    }

    /// Takes a token, if there is one. `noise` is any number that a stranger cannot guess.
    pub fn take(&mut self, now: Instant, noise: u64) -> bool {
        let passed = now.saturating_since(self.at).as_nanos().min(UNIT as u128) as u64;
        self.at = self.at.max(now);
        self.level = (self.level + passed * self.rate).min(self.rate * UNIT);
        let cost = UNIT / 2 + noise % UNIT;
        if self.level < cost {
            return false;
        }
        self.level -= cost;
        true
    }
}

#[cfg(test)]
mod tests;
