//! How long work takes at a core's clock.
//!
//! A lower frequency stretches cycles but not waits for memory. A duty cycle stops the core for a part of each
//! period of some microseconds, so waits, which are much shorter, are stretched like cycles.

use std::ops::{Add, AddAssign};

/// Steps of a duty cycle: each is 12.5% (Intel SDM volume 3, IA32_CLOCK_MODULATION).
pub const DUTY_STEPS: u64 = 8;

/// What a cycle does on the machine whose costs are counted, in percent.
pub const REFERENCE: u64 = 100;

/// A cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub cycles: u64,
    /// Waiting for memory.
    pub stall_ps: u64,
}

impl Work {
    pub fn cycles(cycles: u64) -> Self {
        Self { cycles, stall_ps: 0 }
    }

    /// What this is more than another one; none where it is less.
    pub fn beyond(self, less: Self) -> Self {
        Self {
            cycles: self.cycles.saturating_sub(less.cycles),
            stall_ps: self.stall_ps.saturating_sub(less.stall_ps),
        }
    }
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { cycles: self.cycles + other.cycles, stall_ps: self.stall_ps + other.stall_ps }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// The speed of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    pub khz: u64,
    /// Steps of [`DUTY_STEPS`] in which the clock runs; at least 1.
    pub duty: u64,
    /// What a cycle does, in percent of one of the machine whose costs are counted.
    pub per_cycle: u64,
}

impl Clock {
    pub fn full(khz: u64) -> Self {
        Self::throttled(khz, DUTY_STEPS)
    }

    pub fn throttled(khz: u64, duty: u64) -> Self {
        Self { khz, duty, per_cycle: REFERENCE }
    }

    /// The clock for `khz` on a core whose frequency is at least `lowest_khz`: below that it is throttled.
    pub fn at(khz: u64, lowest_khz: u64) -> Self {
        if khz >= lowest_khz {
            return Self::full(khz);
        }
        Self::throttled(lowest_khz, (khz * DUTY_STEPS / lowest_khz).max(1))
    }

    /// Cycles in a second, thousands of them.
    pub fn effective_khz(self) -> u64 {
        self.khz * self.duty / DUTY_STEPS
    }

    /// Counted cycles in a millisecond while the clock runs.
    fn work_khz(self) -> u64 {
        (self.khz * self.per_cycle / REFERENCE).max(1)
    }

    fn stretched(self, ps: u64) -> u64 {
        (ps * DUTY_STEPS).div_ceil(self.duty)
    }

    pub fn compute_ps(self, work: Work) -> u64 {
        self.stretched(work.cycles * 1_000_000_000 / self.work_khz())
    }

    /// Computing and waiting for memory that would take so long at another clock.
    pub fn instead_of(self, other: Self, (compute_ps, stall_ps): (u64, u64)) -> (u64, u64) {
        let scaled = |ps: u64, there: u64, here: u64| {
            (u128::from(ps) * u128::from(there)).div_ceil(u128::from(here)) as u64
        };
        let compute = scaled(compute_ps, other.work_khz() * other.duty, self.work_khz() * self.duty);
        (compute, scaled(stall_ps, other.duty, self.duty))
    }

    /// The time for `work` on a core that has no other work.
    pub fn time_ps(self, work: Work) -> u64 {
        self.compute_ps(work) + self.stretched(work.stall_ps)
    }
}

#[cfg(test)]
mod tests;
