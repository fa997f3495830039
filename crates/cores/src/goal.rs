//! A policy's goal, and the score of a plan by it.

use alloc::format;
use core::fmt;

use eft_component::scheduling::Objective;
use eft_machine::{Share, Watts};

const DEFAULT_FLOOR: Share = Share(0.95);

/// An objective, and the least throughput that must remain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    pub objective: Objective,
    /// Share of the best throughput below which `least-power` must not fall. The other objectives ignore it.
    pub floor: Share,
}

impl Default for Goal {
    fn default() -> Self {
        Self::THROUGHPUT
    }
}

impl Goal {
    pub const THROUGHPUT: Self = Self { objective: Objective::Throughput, floor: DEFAULT_FLOOR };
    pub const THROUGHPUT_PER_WATT: Self =
        Self { objective: Objective::ThroughputPerWatt, floor: DEFAULT_FLOOR };

    pub const fn least_power(floor: Share) -> Self {
        Self { objective: Objective::LeastPower, floor }
    }

    /// Smallest share of the best throughput that is acceptable.
    pub fn least_share(self) -> Share {
        match self.objective {
            Objective::Throughput => Share(0.99),
            Objective::LeastPower => self.floor.within(),
            Objective::ThroughputPerWatt => Share::NONE,
        }
    }

    /// Larger is better: throughput relative to the best known, and power.
    pub fn score(self, throughput: f64, power: Watts) -> f64 {
        let watts = power.max(Watts(1e-3)).0;
        match self.objective {
            // Power breaks ties within a percent or two.
            Objective::Throughput => throughput - 1e-4 * watts,
            Objective::LeastPower if throughput < self.floor.0 => throughput - 1e6,
            Objective::LeastPower => -watts,
            Objective::ThroughputPerWatt => throughput / watts,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.objective {
            Objective::Throughput => f.pad("throughput"),
            Objective::LeastPower => f.pad(&format!("least-power:{:.0}%", self.floor.percent())),
            Objective::ThroughputPerWatt => f.pad("throughput-per-watt"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_follows_the_objective() {
        let least = Goal::least_power(Share(0.95));
        assert!(least.score(0.96, Watts(10.0)) > least.score(1.0, Watts(11.0)));
        assert!(least.score(0.96, Watts(20.0)) > least.score(0.9, Watts(5.0)));
        assert!(Goal::THROUGHPUT.score(1.0, Watts(30.0)) > Goal::THROUGHPUT.score(0.9, Watts(10.0)));
        assert!(
            Goal::THROUGHPUT_PER_WATT.score(0.5, Watts(4.0))
                > Goal::THROUGHPUT_PER_WATT.score(1.0, Watts(10.0))
        );
    }

    #[test]
    fn a_goal_is_printed_with_its_floor() {
        let printed = [Goal::THROUGHPUT, Goal::least_power(Share(0.5))]
            .map(|goal| alloc::string::ToString::to_string(&goal));
        assert_eq!(printed, ["throughput", "least-power:50%"]);
    }
}
