//! How what a policy reaches is judged: in integers, and not by the code with which policies judge their own plans.

use std::cmp::Reverse;

use eft_component::scheduling::Objective;
use eft_machine::Share;

/// What a configuration carries, and what the chip takes for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    pub kbps: u64,
    pub milliwatts: u64,
}

/// By what configurations are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judge {
    pub objective: Objective,
    /// For the least power: what has to remain of the most that any fixed configuration carries.
    floor_percent: u64,
}

/// The larger is the better one. What has too little of the rate comes behind all that have enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Worth(bool, Reverse<u64>, u64);

impl Judge {
    pub const THROUGHPUT: Self = Self { objective: Objective::Throughput, floor_percent: 100 };
    pub const THROUGHPUT_PER_WATT: Self =
        Self { objective: Objective::ThroughputPerWatt, floor_percent: 100 };

    /// `floor_percent`: from 1 to 100.
    pub const fn least_power(floor_percent: u64) -> Self {
        Self { objective: Objective::LeastPower, floor_percent }
    }

    pub fn floor(self) -> Share {
        Share(self.floor_percent as f64 / 100.0)
    }

    /// The rate below which a configuration does not come into question.
    pub fn floor_kbps(self, most_kbps: u64) -> u64 {
        match self.objective {
            Objective::LeastPower => most_kbps * self.floor_percent / 100,
            Objective::Throughput | Objective::ThroughputPerWatt => 0,
        }
    }

    /// `most_kbps`: the most that any fixed configuration carries.
    pub fn worth(self, reached: Reached, most_kbps: u64) -> Worth {
        let enough = reached.kbps >= self.floor_kbps(most_kbps);
        match self.objective {
            Objective::LeastPower if enough => Worth(true, Reverse(reached.milliwatts), reached.kbps),
            Objective::LeastPower | Objective::Throughput => Worth(enough, Reverse(0), reached.kbps),
            Objective::ThroughputPerWatt => Worth(enough, Reverse(0), per_kilowatt(reached)),
        }
    }

    /// The share of the best fixed configuration's result. For the least power, the smaller one of the share of the rate that has to
    /// remain and of the share of the power that would do.
    pub fn share(self, reached: Reached, best: Reached, most_kbps: u64) -> f64 {
        let of = |one: u64, other: u64| one as f64 / other.max(1) as f64;
        match self.objective {
            Objective::Throughput => of(reached.kbps, best.kbps),
            Objective::ThroughputPerWatt => of(per_kilowatt(reached), per_kilowatt(best)),
            Objective::LeastPower => {
                let rate = of(reached.kbps, self.floor_kbps(most_kbps));
                rate.min(of(best.milliwatts, reached.milliwatts))
            }
        }
    }
}

/// kb/s for each kilowatt.
fn per_kilowatt(reached: Reached) -> u64 {
    reached.kbps * 1_000_000 / reached.milliwatts.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Reached = Reached { kbps: 1000, milliwatts: 60_000 };
    const FRUGAL: Reached = Reached { kbps: 960, milliwatts: 30_000 };
    const SLOW: Reached = Reached { kbps: 800, milliwatts: 10_000 };

    fn best(judge: Judge) -> Reached {
        [FULL, FRUGAL, SLOW].into_iter().max_by_key(|reached| judge.worth(*reached, FULL.kbps)).unwrap()
    }

    #[test]
    fn each_objective_has_another_best_configuration() {
        assert_eq!(best(Judge::THROUGHPUT), FULL);
        assert_eq!(best(Judge::least_power(95)), FRUGAL);
        assert_eq!(best(Judge::least_power(50)), SLOW);
        assert_eq!(best(Judge::least_power(97)), FULL);
        assert_eq!(best(Judge::THROUGHPUT_PER_WATT), SLOW);
    }

    #[test]
    fn below_the_floor_more_is_better() {
        let judge = Judge::least_power(95);
        let less = Reached { kbps: 700, milliwatts: 1 };
        assert!(judge.worth(SLOW, FULL.kbps) > judge.worth(less, FULL.kbps));
    }

    #[test]
    fn the_share_is_of_what_the_goal_is_about() {
        let share = |judge: Judge, reached| judge.share(reached, best(judge), FULL.kbps);
        assert_eq!(share(Judge::THROUGHPUT, FRUGAL), 0.96);
        assert_eq!(share(Judge::least_power(95), FULL), 0.5, "twice the power");
        assert_eq!(share(Judge::least_power(95), SLOW), 800.0 / 950.0, "too slow, however little it takes");
        assert_eq!(share(Judge::least_power(95), FRUGAL), 1.0);
        assert_eq!(share(Judge::THROUGHPUT_PER_WATT, FRUGAL), 0.4);
    }
}
