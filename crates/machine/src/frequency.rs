//! Clock frequencies.

use core::fmt;
use core::num::ParseIntError;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Share;

/// A frequency in kHz, the unit of the kernel's cpufreq.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KiloHertz(pub u64);

impl KiloHertz {
    pub fn from_mhz(mhz: u64) -> Self {
        Self(mhz.saturating_mul(1000))
    }

    /// Whole MHz, as people read it.
    pub fn mhz(self) -> u64 {
        self.0 / 1000
    }

    /// As a share of `full`; a `full` of 0 counts as 1 kHz.
    pub fn share_of(self, full: Self) -> Share {
        Share(self.0 as f64 / full.0.max(1) as f64)
    }
}

/// The bare number of kHz, as sysfs holds it.
impl FromStr for KiloHertz {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for KiloHertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MHz", self.mhz())
    }
}

#[cfg(test)]
mod tests;
