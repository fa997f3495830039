//! What each part of a load got. A part that is small must not be hidden by a large one, so one load's results are compared by
//! their geometric mean, which halves that far whichever part loses so much.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates {
    pub kbps: Vec<u64>,
}

impl Rates {
    /// From what each part had got before, and has now.
    pub fn of(before: &[u64], now: &[u64], ms: u64) -> Self {
        Self { kbps: now.iter().zip(before).map(|(now, before)| (now - before) * 8 / ms).collect() }
    }

    pub fn total(&self) -> u64 {
        self.kbps.iter().sum()
    }

    /// The geometric mean, by which loads are compared: that of a single part is its rate.
    pub fn mean(&self) -> u64 {
        let parts = self.kbps.len() as u32;
        let product = self.kbps.iter().fold(1u128, |product, kbps| product.saturating_mul((*kbps).into()));
        let (mut low, mut high) = (0, self.kbps.iter().max().copied().unwrap_or(0));
        while low < high {
            let middle = high - (high - low) / 2;
            let power = u128::from(middle).checked_pow(parts).unwrap_or(u128::MAX);
            if power <= product {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(kbps: &[u64]) -> u64 {
        Rates { kbps: kbps.to_vec() }.mean()
    }

    #[test]
    fn the_mean_is_the_geometric_one() {
        assert_eq!(mean(&[9_512_345]), 9_512_345);
        assert_eq!(mean(&[4, 9]), 6);
        assert_eq!(mean(&[10, 1_000, 100_000]), 1_000);
        assert_eq!(mean(&[25_000_000; 4]), 25_000_000, "four full wires");
        assert_eq!(mean(&[0, 1_000_000]), 0, "a part that starves");
        assert_eq!(mean(&[]), 0);
    }

    #[test]
    fn rates_are_of_the_bytes_since() {
        let rates = Rates::of(&[1000, 50], &[2000, 50], 8);
        assert_eq!(rates, Rates { kbps: vec![1000, 0] });
        assert_eq!(rates.total(), 1000);
    }
}
