//! Which back end sets a core to the wanted speed, and how exactly.
//!
//! Order: cpufreq (voltage falls with it), the clock-modulation MSR (the core really stops), the emulated duty cycle (a
//! thread takes the time away). A back end that cannot come within [`TOLERANCE`] of the wanted speed is skipped unless
//! it was requested by name; then the nearest setting is taken and shown.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use eft_machine::{KiloHertz, Share};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The error allowed to an emulated speed, and to a back end that was not requested by name.
pub const TOLERANCE: Share = Share(0.05);
/// Below this the real-time throttle of the kernel (95% by default) would step in and the speed would come out wrong.
pub const SHARE_MIN: Share = Share(0.0625);
/// IA32_CLOCK_MODULATION counts in eighths.
const MODULATION_STEPS: f64 = 8.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    Share(Share),
    Clock(KiloHertz),
}

/// Why a core cannot be set to the wanted speed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SpeedError {
    #[error("'{0}' is no speed (write 7/8, 0.421, 42.1%, 1200MHz, 1.2GHz or full)")]
    Unreadable(String),
    #[error("a share of a core's speed lies above 0 and at most at 1, not at '{0}'")]
    OutOfRange(String),
    #[error("'{0}' is no back end (cpufreq, msr or emulated)")]
    UnknownBackEnd(String),
    #[error("this machine does not tell its clock, so name a share (such as 1/2) instead of a frequency")]
    UnknownClock,
    #[error("{asked} is more than the {full} of this core")]
    AboveFull { asked: KiloHertz, full: KiloHertz },
    #[error("cpufreq: this machine has none for this CPU")]
    NoCpufreq,
    #[error("msr: no clock-modulation MSR on this CPU")]
    NoClockModulation,
    #[error(
        "emulated: not below {SHARE_MIN} of a core, where the kernel's real-time throttle would take over"
    )]
    BelowThrottle,
    #[error("{back_end} comes no nearer than {share:.3}")]
    TooFar { back_end: BackEnd, share: Share },
    #[error("no back end can run a core at {share:.3} of its speed: {}", joined(why))]
    NoBackEnd { share: Share, why: Vec<SpeedError> },
}

fn joined(errors: &[SpeedError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl FromStr for Speed {
    type Err = SpeedError;

    fn from_str(text: &str) -> Result<Self, SpeedError> {
        let bad = || SpeedError::Unreadable(text.into());
        let text = text.trim();
        let number = |digits: &str| {
            digits.trim().parse::<f64>().ok().filter(|value| value.is_finite()).ok_or_else(bad)
        };
        let lower = text.to_ascii_lowercase();
        let hertz = [("ghz", 1e6), ("mhz", 1e3), ("khz", 1.0)];
        if let Some((digits, scale)) =
            hertz.iter().find_map(|(unit, scale)| Some((lower.strip_suffix(unit)?, scale)))
        {
            let khz = number(digits)? * scale;
            return if (1.0..1e9).contains(&khz) {
                Ok(Self::Clock(KiloHertz(khz as u64)))
            } else {
                Err(bad())
            };
        }
        let share = if lower == "full" {
            1.0
        } else if let Some(percent) = lower.strip_suffix('%') {
            number(percent)? / 100.0
        } else if let Some((above, below)) = lower.split_once('/') {
            number(above)? / number(below)?
        } else {
            number(&lower)?
        };
        if share > 0.0 && share <= 1.0 {
            Ok(Self::Share(Share(share)))
        } else {
            Err(SpeedError::OutOfRange(text.into()))
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackEnd {
    Cpufreq,
    Msr,
    Emulated,
}

impl BackEnd {
    pub const IN_ORDER: [Self; 3] = [Self::Cpufreq, Self::Msr, Self::Emulated];

    pub fn name(self) -> &'static str {
        match self {
            Self::Cpufreq => "cpufreq",
            Self::Msr => "msr",
            Self::Emulated => "emulated",
        }
    }
}

impl fmt::Display for BackEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for BackEnd {
    type Err = SpeedError;

    fn from_str(text: &str) -> Result<Self, SpeedError> {
        Self::IN_ORDER
            .into_iter()
            .find(|back_end| back_end.name() == text)
            .ok_or_else(|| SpeedError::UnknownBackEnd(text.into()))
    }
}

/// What one CPU offers; absent back ends carry the reason why.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    pub cpufreq: Option<FrequencyRange>,
    pub clock_modulation: bool,
    /// The fastest clock known, to turn hertz into a share where cpufreq is absent.
    pub full: Option<KiloHertz>,
}

#[derive(Clone, Debug)]
pub struct FrequencyRange {
    pub min: KiloHertz,
    pub max: KiloHertz,
    /// Empty if the driver accepts any frequency in the range.
    pub available: Vec<KiloHertz>,
}

/// The setting to be made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    pub back_end: BackEnd,
    pub asked_share: Share,
    /// The share that the back end can set.
    pub share: Share,
    #[serde(rename = "khz")]
    pub clock: Option<KiloHertz>,
    /// Eighths of full speed for the MSR; 8 means off.
    pub eighths: Option<u8>,
}

pub fn choose(speed: Speed, offers: &Capabilities, named: Option<BackEnd>) -> Result<Setting, SpeedError> {
    let asked_share = share_of(speed, offers)?;
    if let Some(back_end) = named {
        return attempt(back_end, speed, asked_share, offers);
    }
    let mut why = Vec::new();
    for back_end in BackEnd::IN_ORDER {
        match attempt(back_end, speed, asked_share, offers) {
            Ok(setting) if !setting.share.differs(asked_share, TOLERANCE * asked_share) => {
                return Ok(setting);
            }
            Ok(setting) => why.push(SpeedError::TooFar { back_end, share: setting.share }),
            Err(reason) => why.push(reason),
        }
    }
    Err(SpeedError::NoBackEnd { share: asked_share, why })
}

fn share_of(speed: Speed, offers: &Capabilities) -> Result<Share, SpeedError> {
    let asked = match speed {
        Speed::Share(share) => return Ok(share),
        Speed::Clock(clock) => clock,
    };
    let full =
        offers.cpufreq.as_ref().map(|range| range.max).or(offers.full).filter(|full| *full > KiloHertz(0));
    let full = full.ok_or(SpeedError::UnknownClock)?;
    if asked > full {
        return Err(SpeedError::AboveFull { asked, full });
    }
    Ok(asked.share_of(full))
}

fn attempt(
    back_end: BackEnd,
    speed: Speed,
    asked_share: Share,
    offers: &Capabilities,
) -> Result<Setting, SpeedError> {
    let setting = |share, clock, eighths| Setting { back_end, asked_share, share, clock, eighths };
    match back_end {
        BackEnd::Cpufreq => {
            let range = offers.cpufreq.as_ref().ok_or(SpeedError::NoCpufreq)?;
            let wish = match speed {
                Speed::Clock(clock) => clock,
                Speed::Share(share) => KiloHertz((share.0 * range.max.0 as f64) as u64),
            };
            let off = |clock: KiloHertz| clock.0.abs_diff(wish.0);
            let nearest =
                |best: KiloHertz, other: &KiloHertz| if off(*other) < off(best) { *other } else { best };
            let clock = match range.available.first() {
                Some(first) => range.available.iter().fold(*first, nearest),
                None => wish.max(range.min).min(range.max),
            };
            Ok(setting(clock.share_of(range.max), Some(clock), None))
        }
        BackEnd::Msr if !offers.clock_modulation => Err(SpeedError::NoClockModulation),
        BackEnd::Msr => {
            let eighths = libm_round(asked_share.0 * MODULATION_STEPS).clamp(1.0, MODULATION_STEPS);
            Ok(setting(Share(eighths / MODULATION_STEPS), None, Some(eighths as u8)))
        }
        BackEnd::Emulated if asked_share < SHARE_MIN => Err(SpeedError::BelowThrottle),
        BackEnd::Emulated => Ok(setting(asked_share, None, None)),
    }
}

/// `f64::round` needs std; these values are small and positive.
fn libm_round(value: f64) -> f64 {
    (value + 0.5) as u64 as f64
}

#[cfg(test)]
mod tests;
