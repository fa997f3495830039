//! Rates of what strangers can make us send.

use eft_base::Instant;

/// A token bucket: `rate` per second, at most `rate` saved up.
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

    /// Takes a token, if there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_since(self.at).as_nanos().min(UNIT as u128) as u64;
        self.at = self.at.max(now);
        self.level = (self.level + passed * self.rate).min(self.rate * UNIT);
        if self.level < UNIT {
            return false;
        }
        self.level -= UNIT;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_refills_with_time_and_not_beyond_its_rate() {
        let mut b = Bucket::new(10);
        let mut now = Instant::from_millis(5_000);
        assert_eq!((0..100).filter(|_| b.take(now)).count(), 10);
        now = Instant::from_millis(5_300);
        assert_eq!((0..100).filter(|_| b.take(now)).count(), 3);
        now = Instant::from_millis(60_000);
        assert_eq!((0..100).filter(|_| b.take(now)).count(), 10);
    }
}
