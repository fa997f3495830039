//! How long answers took.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    pub answers: usize,
    pub median_ns: u32,
    /// Of a hundred answers ninety-nine took no longer.
    pub p99_ns: u32,
}

impl Latency {
    /// `None`: there was no answer.
    pub fn of(all_ns: &[u32]) -> Option<Self> {
        let mut sorted = all_ns.to_vec();
        sorted.sort_unstable();
        // The nearest rank, counted from 1.
        let percentile = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100);
            sorted.get(rank.checked_sub(1)?).copied()
        };
        Some(Self { answers: sorted.len(), median_ns: percentile(50)?, p99_ns: percentile(99)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let all: Vec<u32> = (1..=200).rev().collect();
        assert_eq!(Latency::of(&all), Some(Latency { answers: 200, median_ns: 100, p99_ns: 198 }));
        assert_eq!(Latency::of(&[7]), Some(Latency { answers: 1, median_ns: 7, p99_ns: 7 }));
        assert_eq!(Latency::of(&[]), None);
    }
}
