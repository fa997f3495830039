//! What an operator chooses: policy, score, times.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use eft_machine::Ppm;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::OptionsError;

/// Section 3.3 of the paper, and what it leaves as future work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Policy {
    /// Fast cores to the VMs of highest mean efficiency; the vCPUs of a VM take turns.
    #[default]
    AmpVm,
    /// Fast cores to the vCPUs of highest efficiency.
    AmpVcpu,
    /// `amp-fair:R`: R percent of the fast time evenly, the rest as `amp-vm`. `amp-fair` is R = 100.
    AmpFair(u8),
    /// The least R that keeps every vCPU's slowdown against `amp-fair` below this.
    AdaptiveFair(Ppm),
}

/// The largest slowdown that `adaptive-fair` allows by default: 5%.
pub const BOUND: Ppm = Ppm::from_percent(5);

impl FromStr for Policy {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
        let bad = || OptionsError::UnknownPolicy(text.into());
        let percent = |digits: &str| digits.parse::<u8>().ok().filter(|p| *p <= 100).ok_or_else(bad);
        match text.split_once(':') {
            None => match text {
                "amp-vm" => Ok(Self::AmpVm),
                "amp-vcpu" => Ok(Self::AmpVcpu),
                "amp-fair" => Ok(Self::AmpFair(100)),
                "adaptive-fair" => Ok(Self::AdaptiveFair(BOUND)),
                _ => Err(bad()),
            },
            Some(("amp-fair", digits)) => percent(digits).map(Self::AmpFair),
            Some(("adaptive-fair", digits)) => {
                percent(digits).map(|p| Self::AdaptiveFair(Ppm::from_percent(p)))
            }
            Some(_) => Err(bad()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AmpVm => f.pad("amp-vm"),
            Self::AmpVcpu => f.pad("amp-vcpu"),
            Self::AmpFair(100) => f.pad("amp-fair"),
            Self::AmpFair(percent) => f.pad(&format!("amp-fair:{percent}")),
            Self::AdaptiveFair(BOUND) => f.pad("adaptive-fair"),
            Self::AdaptiveFair(bound) => f.pad(&format!("adaptive-fair:{}", bound.part_of(100))),
        }
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What fast core efficiency is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Score {
    /// IPC as it would be alone on a fast core, times utilisation in fast-core cycles.
    #[default]
    Predicted,
    /// The paper's product: IPC wherever it was measured, times the share of time that it ran.
    Paper,
}

impl FromStr for Score {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
        match text {
            "predicted" => Ok(Self::Predicted),
            "paper" => Ok(Self::Paper),
            _ => Err(OptionsError::UnknownScore(text.into())),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub policy: Policy,
    pub score: Score,
    /// Counters are read over this part of each interval.
    pub window: Duration,
    /// From one dealing to the next.
    pub interval: Duration,
    /// From one turn to the next; Xen's accounting period.
    pub turn: Duration,
    /// From one check for idle fast cores to the next; Xen's tick.
    pub tick: Duration,
    /// A change of IPC beyond this must last for two intervals to count.
    pub threshold: Ppm,
    /// Scores that differ less count as equal, so that noise makes no order. The paper orders by any difference.
    pub tie: Ppm,
    /// The least gain that justifies a move to another last-level cache, as core time.
    pub migration_cost: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            score: Score::default(),
            window: Duration::from_millis(2000),
            interval: Duration::from_millis(2500),
            turn: Duration::from_millis(30),
            tick: Duration::from_millis(10),
            threshold: Ppm::from_percent(15),
            tie: Ppm::from_percent(3),
            migration_cost: Duration::from_millis(5),
        }
    }
}

impl Options {
    pub fn check(&self) -> Result<(), OptionsError> {
        if self.tick < Duration::from_millis(1) {
            return Err(OptionsError::TickTooShort(self.tick));
        }
        let times =
            [("tick", self.tick), ("turn", self.turn), ("window", self.window), ("interval", self.interval)];
        for pair in times.windows(2) {
            let ((shorter, least), (longer, time)) = (pair[0], pair[1]);
            if time < least {
                return Err(OptionsError::Order { longer, time, shorter, least });
            }
        }
        if self.interval > Duration::from_secs(3600) {
            return Err(OptionsError::IntervalTooLong);
        }
        if self.threshold > Ppm::ALL * 10 {
            return Err(OptionsError::ThresholdTooLarge);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
