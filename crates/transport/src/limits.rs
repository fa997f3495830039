//! Rates of what strangers can make us send.

use eft_base::Instant;

/// A token bucket: `rate` per second, at most `rate` saved up, on average. A token costs a little more or less by
/// chance, so that who counts our answers cannot tell whether we gave one to another (as CVE-2016-5696 did).
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
mod tests {
    use super::*;

    #[test]
    fn a_bucket_refills_with_time_and_not_beyond_its_rate() {
        let mut b = Bucket::new(10);
        let mut take = |now| (0..100).filter(|_| b.take(Instant::from_millis(now), UNIT / 2)).count();
        assert_eq!(take(5_000), 10);
        assert_eq!(take(5_300), 3);
        assert_eq!(take(60_000), 10);
    }

    #[test]
    fn how_many_tokens_there_are_is_not_known_exactly() {
        let mut random = eft_base::Random::new(1);
        let mut b = Bucket::new(1000);
        let counts: alloc::vec::Vec<usize> = (1..100)
            .map(|s| (0..3000).filter(|_| b.take(Instant::from_millis(s * 5000), random.next_u64())).count())
            .collect();
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(*least > 900 && *most < 1100 && most - least > 20, "{least} to {most}");
    }
}
