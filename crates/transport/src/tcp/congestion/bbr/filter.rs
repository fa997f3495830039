//! The largest value of the last rounds.

/// Rounds that count.
const ROUNDS: usize = 10;

#[derive(Clone, Copy, Debug, Default)]
pub struct Maximum {
    /// The largest value of each round, at its number modulo the length.
    of_round: [u64; ROUNDS],
    round: u64,
}

impl Maximum {
    /// Takes a value of `round`, which is not before the last one's.
    pub fn update(&mut self, round: u64, value: u64) {
        let passed = round.saturating_sub(self.round).min(ROUNDS as u64);
        for i in 0..passed {
            self.of_round[((round - i) % ROUNDS as u64) as usize] = 0;
        }
        self.round = self.round.max(round);
        let slot = &mut self.of_round[(self.round % ROUNDS as u64) as usize];
        *slot = value.max(*slot);
    }

    pub fn get(&self) -> u64 {
        self.of_round.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_is_forgotten_after_its_rounds() {
        let mut maximum = Maximum::default();
        maximum.update(3, 100);
        maximum.update(3, 50);
        for round in 4..13 {
            maximum.update(round, round);
            assert_eq!(maximum.get(), 100, "round {round}");
        }
        maximum.update(13, 1);
        assert_eq!(maximum.get(), 12);
        maximum.update(1000, 7);
        assert_eq!(maximum.get(), 7);
    }
}
