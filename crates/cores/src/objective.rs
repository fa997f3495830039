//! What a policy aims at.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a policy aims at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    #[default]
    Throughput,
    /// Least power at which throughput stays above this share of the best.
    LeastPower {
        floor: f64,
    },
    ThroughputPerWatt,
}

impl Objective {
    /// Smallest share of the best throughput that is acceptable.
    pub fn floor(self) -> f64 {
        match self {
            Self::Throughput => 0.99,
            Self::LeastPower { floor } => floor.clamp(0.0, 1.0),
            Self::ThroughputPerWatt => 0.0,
        }
    }

    /// Larger is better: throughput relative to the best known, power in W.
    pub fn score(self, throughput: f64, power_w: f64) -> f64 {
        let power_w = power_w.max(1e-3);
        match self {
            // Power breaks ties within a percent or two.
            Self::Throughput => throughput - 1e-4 * power_w,
            Self::LeastPower { floor } if throughput < floor => throughput - 1e6,
            Self::LeastPower { .. } => -power_w,
            Self::ThroughputPerWatt => throughput / power_w,
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Throughput => f.pad("throughput"),
            Self::LeastPower { floor } => f.pad(&format!("least-power:{:.0}%", floor * 100.0)),
            Self::ThroughputPerWatt => f.pad("throughput-per-watt"),
        }
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "'{text}' is no objective (throughput, least-power, least-power:95% or throughput-per-watt)"
            )
        };
        match text {
            "throughput" => Ok(Self::Throughput),
            "throughput-per-watt" => Ok(Self::ThroughputPerWatt),
            "least-power" => Ok(Self::LeastPower { floor: 0.95 }),
            _ => {
                let floor = text.strip_prefix("least-power:").ok_or_else(bad)?;
                let percent = floor.strip_suffix('%').unwrap_or(floor).parse::<f64>().map_err(|_| bad())?;
                let share = if floor.ends_with('%') { percent / 100.0 } else { percent };
                if share > 0.0 && share <= 1.0 { Ok(Self::LeastPower { floor: share }) } else { Err(bad()) }
            }
        }
    }
}
