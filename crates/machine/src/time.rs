//! Lengths of time as the kernel, firmware and measurements give them. Timeouts and sums of time are `Duration`s.

use core::cmp::Ordering;
use core::fmt;
use core::num::ParseIntError;
use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// Whole nanoseconds, the unit of the kernel's transition latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanoseconds(pub u64);

/// Whole microseconds, the unit of cpuidle and of ACPI's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Microseconds(pub u64);

impl Microseconds {
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Rounded up, so that the result is not shorter.
impl From<Nanoseconds> for Microseconds {
    fn from(length: Nanoseconds) -> Self {
        Self(length.0.div_ceil(1000))
    }
}

/// The bare number, as sysfs holds it.
impl FromStr for Nanoseconds {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl FromStr for Microseconds {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} us", self.0)
    }
}

/// How long an answer or a wake-up took, in microseconds and fractions of them: means and limits, which files keep to the
/// last digit.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Latency(pub f64);

impl Latency {
    /// Whether it is a valid length of time.
    pub fn is_valid(self) -> bool {
        self.0.is_finite() && self.0 > 0.0
    }

    /// The larger of the two; a number wins over NaN.
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// A total order, as `f64::total_cmp`.
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Add for Latency {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Latency {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Latency {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<f64> for Latency {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self(self.0 * factor)
    }
}

impl Div<f64> for Latency {
    type Output = Self;
    fn div(self, divisor: f64) -> Self {
        Self(self.0 / divisor)
    }
}

/// The ratio of the two.
impl Div for Latency {
    type Output = f64;
    fn div(self, other: Self) -> f64 {
        self.0 / other.0
    }
}

/// With its unit: `33 us` for `{:.0}`.
impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)?;
        f.write_str(" us")
    }
}

#[cfg(test)]
mod tests;
