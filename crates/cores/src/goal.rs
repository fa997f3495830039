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
mod tests;
