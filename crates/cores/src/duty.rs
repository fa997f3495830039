//! The duty cycle of an emulated speed: how long the burner holds the core in each period.
//!
//! What counts as taken runs from the moment at which the burner really runs (a timer comes late, on virtual machines by
//! tens of microseconds, and until then the others have the core) to the end of the burn, plus a fixed cost for the
//! switches around it. The difference between what should have been taken and what
//! was is carried into the next periods. Promises: the carry is bounded, so that a paused machine does not lead to one
//! long stall; a burn never exceeds its period.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DutyOptions {
    /// Share of the core that is left to everything else.
    pub share: f64,
    pub period_ns: u64,
    /// Where in the period the burn begins; cores with the same phase stall together.
    pub phase_ns: u64,
    /// Switches and cache refills that the burner cannot see in its own time, found by calibration.
    pub cost_ns: i64,
}

#[derive(Clone, Debug)]
pub struct Duty {
    options: DutyOptions,
    period_start_ns: u64,
    carry_ns: i64,
}

/// One burn, in the clock that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burn {
    pub begin_ns: u64,
    pub length_ns: u64,
}

impl Duty {
    /// Periods are aligned to the clock's zero, so that burners on several cores keep their phases to each other.
    pub fn new(options: DutyOptions, now_ns: u64) -> Self {
        let period_start_ns = now_ns - now_ns % options.period_ns.max(1) + options.period_ns;
        Self { options, period_start_ns, carry_ns: 0 }
    }

    fn target_ns(&self) -> i64 {
        ((1.0 - self.options.share) * self.options.period_ns as f64) as i64
    }

    /// The burn of the coming period.
    pub fn next(&self) -> Burn {
        let begin_ns = self.period_start_ns + self.options.phase_ns;
        let length =
            (self.target_ns() + self.carry_ns - self.options.cost_ns).clamp(0, self.options.period_ns as i64);
        Burn { begin_ns, length_ns: length as u64 }
    }

    /// Accounts for a burn that ran from `started_ns` to `ended_ns`, and steps over periods that were slept through.
    pub fn finish(&mut self, started_ns: u64, ended_ns: u64) {
        let period = self.options.period_ns as i64;
        let taken = ended_ns.saturating_sub(started_ns) as i64 + self.options.cost_ns;
        // Half a period is made good over the following ones; more means that the machine stood still.
        self.carry_ns = (self.carry_ns + self.target_ns() - taken).clamp(-period / 2, period / 2);
        self.period_start_ns += self.options.period_ns;
        if ended_ns > self.period_start_ns + self.options.phase_ns + self.options.period_ns {
            self.period_start_ns = ended_ns - ended_ns % self.options.period_ns + self.options.period_ns;
        }
    }
}

/// The new cost after a busy loop measured `measured_share` where `share` was asked.
pub fn recalibrate(options: DutyOptions, measured_share: f64) -> i64 {
    let excess_ns = (options.share - measured_share) * options.period_ns as f64;
    let bound = options.period_ns as i64 / 10;
    (options.cost_ns + excess_ns as i64).clamp(-bound, bound)
}

/// Where each of `count` cores begins its burn.
pub fn phases_ns(phase: Phase, count: usize, period_ns: u64) -> impl Iterator<Item = u64> {
    (0..count as u64).map(move |index| match phase {
        Phase::InPhase => 0,
        Phase::Antiphase => period_ns * index / count.max(1) as u64,
    })
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    #[default]
    InPhase,
    /// Spread evenly over the period; with two cores, one runs while the other stalls.
    Antiphase,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Self::InPhase => "in-phase",
            Self::Antiphase => "antiphase",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PERIOD: u64 = 1_000_000;

    fn duty(share: f64, cost_ns: i64) -> Duty {
        Duty::new(DutyOptions { share, period_ns: PERIOD, phase_ns: 0, cost_ns }, 12_345)
    }

    /// Runs a burner that starts late, and ends later than it should, by what `lateness` says; returns the share that was left to others.
    fn share_left(mut duty: Duty, lateness: &[u64]) -> f64 {
        let first = duty.next().begin_ns;
        let mut taken = 0;
        for late in lateness {
            let burn = duty.next();
            let started = burn.begin_ns + late / 2;
            let ended = started + burn.length_ns + late;
            taken += ended - started;
            duty.finish(started, ended);
        }
        1.0 - taken as f64 / (duty.next().begin_ns - first) as f64
    }

    proptest! {
        #[test]
        fn lateness_is_made_good(eighths in 1u32..8, lateness in proptest::collection::vec(0u64..80_000, 1000)) {
            let share = f64::from(eighths) / 8.0;
            let left = share_left(duty(share, 0), &lateness);
            prop_assert!((left - share).abs() < share * 0.05, "asked {share}, left {left}");
        }
    }

    #[test]
    fn a_standstill_of_the_machine_is_not_made_good_at_length() {
        let mut duty = duty(0.5, 0);
        let burn = duty.next();
        duty.finish(burn.begin_ns, burn.begin_ns + 50 * PERIOD);
        let next = duty.next();
        assert!(next.begin_ns > burn.begin_ns + 49 * PERIOD);
        assert!(next.length_ns <= PERIOD);
    }

    #[test]
    fn calibration_moves_toward_the_wish() {
        let options = DutyOptions { share: 0.5, period_ns: PERIOD, phase_ns: 0, cost_ns: 0 };
        assert_eq!(recalibrate(options, 0.49), 10_000);
        assert!(recalibrate(options, 0.51) < 0);
    }

    #[test]
    fn antiphase_spreads_the_stalls() {
        assert_eq!(phases_ns(Phase::Antiphase, 2, PERIOD).collect::<alloc::vec::Vec<_>>(), [0, PERIOD / 2]);
        assert_eq!(phases_ns(Phase::InPhase, 2, PERIOD).collect::<alloc::vec::Vec<_>>(), [0, 0]);
    }
}
