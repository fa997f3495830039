//! Power and energy.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Share;

/// Power. It can be scaled; two powers make a ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watts(pub f64);

impl Watts {
    pub const ZERO: Self = Self(0.0);

    /// The larger of the two; a number wins over NaN.
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
}

impl Add for Watts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Watts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Watts {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<f64> for Watts {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self(self.0 * factor)
    }
}

/// A part of it.
impl Mul<Share> for Watts {
    type Output = Self;
    fn mul(self, share: Share) -> Self {
        self * share.0
    }
}

impl Div<f64> for Watts {
    type Output = Self;
    fn div(self, divisor: f64) -> Self {
        Self(self.0 / divisor)
    }
}

impl Div for Watts {
    type Output = f64;
    fn div(self, other: Self) -> f64 {
        self.0 / other.0
    }
}

impl Sum for Watts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        Self(all.map(|watts| watts.0).sum())
    }
}

/// With its unit: `17.3 W` for `{:.1}`.
impl fmt::Display for Watts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)?;
        f.write_str(" W")
    }
}

/// Whole milliwatts, as ACPI's tables tell the power of a P-state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Milliwatts(pub u64);

impl fmt::Display for Milliwatts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} mW", self.0)
    }
}

/// A reading of an energy meter, as the kernel's powercap has it. Meters wrap and are reset: only the difference of two
/// readings means something, and not always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Microjoules(pub u64);

impl Microjoules {
    /// The energy used since an `earlier` reading; `None` if the meter went back.
    pub fn checked_since(self, earlier: Self) -> Option<Self> {
        self.0.checked_sub(earlier.0).map(Self)
    }

    /// The mean power of this energy over this time.
    pub fn over(self, length: Duration) -> Watts {
        Watts(self.0 as f64 * 1e3 / length.as_nanos() as f64)
    }
}

impl fmt::Display for Microjoules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} uJ", self.0)
    }
}

#[cfg(test)]
mod tests;
