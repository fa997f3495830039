//! Ratios as whole numbers.

use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Share;

const MILLION: u64 = 1_000_000;

/// A ratio in whole parts per million: of a core's time, of the fastest core's speed, of instructions to cycles. For
/// decisions that must be the same in every world and are made too often for 128-bit fractions; for display there is
/// [`Share`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ppm(pub u64);

impl Ppm {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self(MILLION);
    /// Larger than any real ratio.
    pub const MAX: Self = Self(u64::MAX);

    /// The ratio of a part to a whole; none if the whole is 0.
    pub fn of(part: u64, whole: u64) -> Self {
        match part.checked_mul(MILLION) {
            _ if whole == 0 => Self::NONE,
            // 128-bit division is slow, and this is called thousands of times a second.
            Some(millionfold) => Self(millionfold / whole),
            None => Self(narrow(u128::from(part) * u128::from(MILLION) / u128::from(whole))),
        }
    }

    /// The ratio of two times.
    pub fn of_time(part: Duration, whole: Duration) -> Self {
        Self::of(narrow(part.as_nanos()), narrow(whole.as_nanos()))
    }

    pub const fn from_percent(percent: u8) -> Self {
        Self(percent as u64 * (MILLION / 100))
    }

    /// This share of a quantity.
    pub fn part_of(self, quantity: u64) -> u64 {
        match self.0.checked_mul(quantity) {
            Some(millionfold) => millionfold / MILLION,
            None => narrow(u128::from(self.0) * u128::from(quantity) / u128::from(MILLION)),
        }
    }

    /// This share of a time.
    pub fn part_of_time(self, length: Duration) -> Duration {
        Duration::from_nanos(self.part_of(narrow(length.as_nanos())))
    }

    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    pub fn share(self) -> Share {
        Share(self.0 as f64 / MILLION as f64)
    }
}

fn narrow(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}

/// Rounded down.
impl From<Share> for Ppm {
    fn from(share: Share) -> Self {
        Self((share.0 * MILLION as f64) as u64)
    }
}

impl Add for Ppm {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Ppm {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Ppm {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Ppm {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// A part of a part.
impl Mul for Ppm {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self(self.part_of(other.0))
    }
}

/// Of so many.
impl Mul<u32> for Ppm {
    type Output = Self;
    fn mul(self, count: u32) -> Self {
        Self(self.0 * u64::from(count))
    }
}

impl Sum for Ppm {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        Self(all.map(|part| part.0).sum())
    }
}

#[cfg(test)]
mod tests;
