//! Throughput.

use core::cmp::Ordering;
use core::iter::Sum;
use core::ops::{Add, Div, Mul, MulAssign};

use eft_machine::Share;
use serde::{Deserialize, Serialize};

/// Bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteRate(pub f64);

impl ByteRate {
    pub fn mbit_per_s(self) -> f64 {
        self.0 * 8e-6
    }
}

impl Add for ByteRate {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

/// What a stack delivers per second, as [`delivered`](crate::indicators::delivered) counts it, or what a load reports,
/// in its own unit. So two of them are comparable only while the load is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Throughput(pub f64);

impl Throughput {
    pub const NONE: Self = Self(0.0);
    /// Less than this counts as nothing.
    pub const LEAST: Self = Self(1.0);

    /// The ratio to `other`, which counts as at least `LEAST`.
    pub fn ratio_to(self, other: Self) -> f64 {
        self / other.max(Self::LEAST)
    }

    /// The larger of the two; a number wins over NaN.
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// The smaller of the two; a number wins over NaN.
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// The absolute difference.
    pub fn abs_diff(self, other: Self) -> Self {
        Self((self.0 - other.0).abs())
    }

    /// A total order, as `f64::total_cmp`.
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Add for Throughput {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Mul<f64> for Throughput {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self(self.0 * factor)
    }
}

impl MulAssign<f64> for Throughput {
    fn mul_assign(&mut self, factor: f64) {
        *self = *self * factor;
    }
}

/// A share of it.
impl Mul<Share> for Throughput {
    type Output = Self;
    fn mul(self, share: Share) -> Self {
        self * share.0
    }
}

impl Div<f64> for Throughput {
    type Output = Self;
    fn div(self, divisor: f64) -> Self {
        Self(self.0 / divisor)
    }
}

/// The ratio of the two.
impl Div for Throughput {
    type Output = f64;
    fn div(self, other: Self) -> f64 {
        self.0 / other.0
    }
}

impl Sum for Throughput {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        Self(all.map(|each| each.0).sum())
    }
}

#[cfg(test)]
mod tests;
