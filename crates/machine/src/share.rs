//! Parts of a whole.

use core::cmp::Ordering;
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A part of a whole, from 0 to 1: of a time that was busy, of a CPU's full speed, of a queue that is filled.
/// Constructors must keep to the range; a sum of several, as in a comparison, may leave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(pub f64);

impl Share {
    pub const NONE: Self = Self(0.0);
    pub const ALL: Self = Self(1.0);

    /// `part` as a share of `whole`; a `whole` of zero counts as a nanosecond.
    pub fn of(part: Duration, whole: Duration) -> Self {
        Self(part.div_duration_f64(whole.max(Duration::from_nanos(1))))
    }

    /// The larger of the two; a number wins over NaN.
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// The smaller of the two; a number wins over NaN.
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// Clamped to the range.
    pub fn within(self) -> Self {
        Self(self.0.clamp(0.0, 1.0))
    }

    /// What is left of the whole.
    pub fn rest(self) -> Self {
        Self(1.0 - self.0)
    }

    /// 100 for the whole, as people read it.
    pub fn percent(self) -> f64 {
        self.0 * 100.0
    }

    /// A total order, as `f64::total_cmp`.
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }

    /// Whether the two are further apart than `tolerance`.
    pub fn differs(self, other: Self, tolerance: Self) -> bool {
        (self.0 - other.0).abs() > tolerance.0
    }

    /// Whether it is in the range.
    pub fn is_valid(self) -> bool {
        (0.0..=1.0).contains(&self.0)
    }
}

impl Add for Share {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Share {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

/// A part of any quantity.
impl Mul<Share> for f64 {
    type Output = f64;
    fn mul(self, share: Share) -> f64 {
        self * share.0
    }
}

/// The ratio of the two.
impl Div for Share {
    type Output = f64;
    fn div(self, other: Self) -> f64 {
        self.0 / other.0
    }
}

/// A part of a part.
impl Mul for Share {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }
}

impl Sum for Share {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        Self(all.map(|share| share.0).sum())
    }
}

/// The bare number: `0.25` for `{:.2}`.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests;
