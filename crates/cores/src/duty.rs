//! The duty cycle of an emulated speed: how long the burner holds the core in each period.
//!
//! The time taken counts from when the burner really runs (a timer fires late, on virtual machines by tens of
//! microseconds, and until then others have the core) to the end of the burn, plus a fixed cost for the switches around
//! it. The difference between the target and the time taken is carried into the next periods. Promises: the carry is
//! bounded, so that a paused machine does not lead to one long stall; a burn never exceeds its period.

use core::time::Duration;

use eft_base::Instant;
use eft_base::time::{self, TimeDelta, nanos};
use eft_machine::Share;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DutyOptions {
    /// Share of the core that is left to everything else.
    pub share: Share,
    #[serde(rename = "period_ns", with = "time::nanos")]
    pub period: Duration,
    /// Where in the period the burn begins; cores with the same phase stall together.
    #[serde(rename = "phase_ns", with = "time::nanos")]
    pub phase: Duration,
    /// Switches and cache refills that the burner cannot see in its own time, found by calibration; negative if
    /// it sees too much.
    #[serde(rename = "cost_ns")]
    pub cost: TimeDelta,
}

#[derive(Clone, Debug)]
pub struct Duty {
    options: DutyOptions,
    period_start: Instant,
    carry_ns: i64,
}

/// One burn, in the caller's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burn {
    pub begin: Instant,
    pub length: Duration,
}

impl Duty {
    /// Periods are aligned to the clock's zero, so that burners on several cores keep their phases to each other.
    pub fn new(options: DutyOptions, now: Instant) -> Self {
        Self { options, period_start: next_period(now, options.period), carry_ns: 0 }
    }

    fn target_ns(&self) -> i64 {
        (self.options.share.rest().0 * nanos(self.options.period) as f64) as i64
    }

    /// The burn of the coming period.
    pub fn next(&self) -> Burn {
        let period_ns = nanos(self.options.period) as i64;
        let length_ns = (self.target_ns() + self.carry_ns - self.options.cost.0).clamp(0, period_ns);
        Burn { begin: self.period_start + self.options.phase, length: Duration::from_nanos(length_ns as u64) }
    }

    /// Accounts for a burn that ran from `started` to `ended`, and skips periods that were slept through.
    pub fn finish(&mut self, started: Instant, ended: Instant) {
        let period_ns = nanos(self.options.period) as i64;
        let taken_ns = nanos(ended.saturating_since(started)) as i64 + self.options.cost.0;
        // Up to half a period is made up for in the following ones; more means that the machine stood still.
        self.carry_ns = (self.carry_ns + self.target_ns() - taken_ns).clamp(-period_ns / 2, period_ns / 2);
        self.period_start += self.options.period;
        if ended > self.period_start + self.options.phase + self.options.period {
            self.period_start = next_period(ended, self.options.period);
        }
    }
}

/// The first period that begins after `now`.
fn next_period(now: Instant, period: Duration) -> Instant {
    let into = now.0 % nanos(period).max(1);
    Instant(now.0 - into) + period
}

/// The new cost, after a busy loop measured `measured_share` where `share` was the target.
pub fn recalibrate(options: DutyOptions, measured_share: Share) -> TimeDelta {
    let excess_ns = (options.share - measured_share).0 * nanos(options.period) as f64;
    let bound = nanos(options.period) as i64 / 10;
    TimeDelta((options.cost.0 + excess_ns as i64).clamp(-bound, bound))
}

/// Where in the period each of `count` cores begins its burn.
pub fn phases(phase: Phase, count: u32, period: Duration) -> impl Iterator<Item = Duration> {
    (0..count).map(move |index| match phase {
        Phase::InPhase => Duration::ZERO,
        Phase::Antiphase => period * index / count.max(1),
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
mod tests;
