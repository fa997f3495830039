//! A power model for machines that do not measure their power. Every figure it gives is *modelled*, and says so.
//!
//! Per core: in an idle state that state's power; otherwise static power, which falls with the voltage, and dynamic
//! power `c * V^2 * f * activity`. A P-state lowers frequency and voltage; a duty cycle (clock modulation or the
//! emulated speed) lowers activity only, at the same voltage, and that is why it saves less. The package adds uncore
//! power, and falls asleep when all of its cores but one are parked (Bolt section 4: 55 mW instead of 97 mW on an
//! Exynos 5410).

use alloc::string::String;
use alloc::vec::Vec;

use eft_machine::{CpuId, Microseconds, Share, Watts};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A reading above this is an error.
pub const WATTS_MAX: Watts = Watts(100_000.0);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerModel {
    /// Power of one core at full frequency, always active.
    #[serde(rename = "core_full_w")]
    pub core_full: Watts,
    /// The share of it that is static (leakage).
    pub static_share: Share,
    /// Uncore power of the package while awake.
    #[serde(rename = "uncore_w")]
    pub uncore: Watts,
    /// Uncore power while the package sleeps.
    #[serde(rename = "package_sleep_w")]
    pub package_sleep: Watts,
    /// Operating points, from low to high frequency.
    pub points: Vec<OperatingPoint>,
    /// From light to deep. The first is the state of a core that idles briefly, the last that of a parked one.
    pub idle: Vec<IdlePower>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatingPoint {
    /// Relative to the highest frequency.
    pub frequency: Share,
    /// Relative to the voltage at the highest frequency.
    pub voltage: Share,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdlePower {
    pub name: String,
    /// Relative to `core_full_w`.
    pub power: Share,
}

/// The state of one core over an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CoreState {
    pub cpu: CpuId,
    /// Relative to the highest frequency.
    pub frequency: Share,
    /// Part of the interval in which the core executed, the burner's part not counted.
    pub activity: Share,
    /// Part in which the clock was stopped or emulated to be (1 = full speed).
    pub duty: Share,
    pub parked: bool,
    /// Residency of each idle state, in the model's order, as shares of the idle time. Empty: all in the lightest.
    pub residency: Vec<Share>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PowerEstimate {
    /// Always true: nothing here was measured.
    pub modelled: bool,
    pub cores: Vec<CorePower>,
    #[serde(rename = "uncore_w")]
    pub uncore: Watts,
    pub package_asleep: bool,
    #[serde(rename = "total_w")]
    pub total: Watts,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CorePower {
    pub cpu: CpuId,
    #[serde(rename = "dynamic_w")]
    pub dynamic: Watts,
    #[serde(rename = "static_w")]
    pub leaked: Watts,
    #[serde(rename = "idle_w")]
    pub idle: Watts,
}

impl CorePower {
    pub fn total(&self) -> Watts {
        self.dynamic + self.leaked + self.idle
    }
}

/// How a result changes when an assumption of the model is changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sensitivity {
    pub assumption: &'static str,
    pub low: f64,
    pub high: f64,
    #[serde(rename = "total_low_w")]
    pub total_low: Watts,
    #[serde(rename = "total_high_w")]
    pub total_high: Watts,
    /// Relative change of the result per relative change of the assumption.
    pub elasticity: f64,
}

impl Default for PowerModel {
    /// A desktop core of about 10 W, with assumed shares, which the sensitivity analysis varies.
    fn default() -> Self {
        let point =
            |frequency, voltage| OperatingPoint { frequency: Share(frequency), voltage: Share(voltage) };
        let idle = |name: &str, power| IdlePower { name: name.into(), power: Share(power) };
        Self {
            core_full: Watts(10.0),
            static_share: Share(0.3),
            uncore: Watts(8.0),
            package_sleep: Watts(2.0),
            points: alloc::vec![point(0.2, 0.65), point(0.5, 0.75), point(0.8, 0.9), point(1.0, 1.0)],
            idle: alloc::vec![idle("C1", 0.25), idle("C6", 0.02)],
        }
    }
}

/// What is wrong with the figures of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PowerError {
    #[error("power: {name} must lie between 0 and 100000 W")]
    Watts { name: &'static str },
    #[error("power: static_share must lie between 0 and 1")]
    StaticShare,
    #[error("power: a sleeping package cannot take more than an awake one")]
    SleepAboveAwake,
    #[error("power: needs operating points with frequency and voltage relative to the highest")]
    OperatingPoints,
    #[error("power: operating points must rise in frequency")]
    Unordered,
    #[error("power: needs idle states with power relative to core_full_w")]
    IdleStates,
}

impl PowerModel {
    pub fn check(&self) -> Result<(), PowerError> {
        let watts = [
            ("core_full_w", self.core_full),
            ("uncore_w", self.uncore),
            ("package_sleep_w", self.package_sleep),
        ];
        if let Some((name, _)) = watts.iter().find(|(_, watts)| !(Watts::ZERO..=WATTS_MAX).contains(watts)) {
            return Err(PowerError::Watts { name });
        }
        if !self.static_share.is_valid() {
            return Err(PowerError::StaticShare);
        }
        if self.package_sleep > self.uncore {
            return Err(PowerError::SleepAboveAwake);
        }
        let relative = |value: Share| (0.0..=2.0).contains(&value.0);
        if self.points.is_empty()
            || !self.points.iter().all(|point| relative(point.frequency) && relative(point.voltage))
        {
            return Err(PowerError::OperatingPoints);
        }
        if !self.points.is_sorted_by(|low, high| low.frequency < high.frequency) {
            return Err(PowerError::Unordered);
        }
        if self.idle.is_empty() || !self.idle.iter().all(|state| relative(state.power)) {
            return Err(PowerError::IdleStates);
        }
        Ok(())
    }

    /// Linear between the operating points, flat beyond them.
    pub fn voltage(&self, frequency: Share) -> Share {
        let Some(first) = self.points.first() else {
            return Share::ALL;
        };
        let mut below = first;
        for point in &self.points {
            if point.frequency >= frequency {
                let span = point.frequency - below.frequency;
                if span <= Share::NONE {
                    return point.voltage;
                }
                let part = (frequency - below.frequency) / span;
                return below.voltage + Share(part) * (point.voltage - below.voltage);
            }
            below = point;
        }
        below.voltage
    }

    /// `size`: the power of this core's kind, relative to `core_full_w`.
    fn core(&self, state: &CoreState, size: f64) -> CorePower {
        let full = self.core_full * size;
        let idle_power = |index: usize| full * self.idle.get(index).map_or(Share::NONE, |idle| idle.power);
        if state.parked {
            let idle = idle_power(self.idle.len().saturating_sub(1));
            return CorePower { cpu: state.cpu, dynamic: Watts::ZERO, leaked: Watts::ZERO, idle };
        }
        let voltage = self.voltage(state.frequency);
        // While the clock stands still for the duty cycle, the core is not idle in the sense of a C-state: it leaks.
        let awake = (state.activity + state.duty.rest()).within();
        let activity = state.activity.max(Share::NONE).min(state.duty.within());
        let dynamic_full = full * self.static_share.rest();
        let resting = if state.residency.is_empty() {
            idle_power(0)
        } else {
            state.residency.iter().enumerate().map(|(index, share)| idle_power(index) * *share).sum()
        };
        CorePower {
            cpu: state.cpu,
            dynamic: dynamic_full * voltage * voltage * state.frequency * activity,
            leaked: full * self.static_share * voltage * awake,
            idle: resting * awake.rest(),
        }
    }

    /// Power of the burner of an emulated speed, which executes in the time that it takes from the others.
    pub fn burner(&self, state: &CoreState) -> Watts {
        let voltage = self.voltage(state.frequency);
        let dynamic_full = self.core_full * self.static_share.rest();
        dynamic_full * voltage * voltage * state.frequency * state.duty.within().rest()
    }

    /// Residencies in the model's idle states, from a machine's readings: (name, time). States of the same name are the
    /// same; others go by their rank, since both lists run from light to deep.
    pub fn residency(&self, told: &[(&str, Microseconds)]) -> Vec<Share> {
        let total: u64 = told.iter().map(|(_, time)| time.0).sum();
        if total == 0 || self.idle.is_empty() {
            return Vec::new();
        }
        let mut shares = alloc::vec![Share::NONE; self.idle.len()];
        for (rank, (name, time)) in told.iter().enumerate() {
            let named = self.idle.iter().position(|idle| idle.name.eq_ignore_ascii_case(name));
            let by_rank = rank * (self.idle.len() - 1) / (told.len() - 1).max(1);
            shares[named.unwrap_or(by_rank)] += Share(time.0 as f64 / total as f64);
        }
        shares
    }

    /// One package of equal cores.
    pub fn estimate(&self, cores: &[CoreState]) -> PowerEstimate {
        self.estimate_sized(cores, &[])
    }

    /// One package; `sizes` gives the power of each core's kind relative to `core_full_w`, 1 where it gives none.
    pub fn estimate_sized(&self, cores: &[CoreState], sizes: &[f64]) -> PowerEstimate {
        let size = |index: usize| sizes.get(index).copied().unwrap_or(1.0);
        let awake = cores.iter().filter(|core| !core.parked).count();
        // The last core must be idle too for the package to sleep.
        let package_asleep = awake <= 1
            && cores.len() > 1
            && cores.iter().all(|core| core.parked || core.activity < Share(0.01));
        let cores: Vec<CorePower> =
            cores.iter().enumerate().map(|(index, core)| self.core(core, size(index))).collect();
        let uncore = if package_asleep { self.package_sleep } else { self.uncore };
        let total = uncore + cores.iter().map(CorePower::total).sum();
        PowerEstimate { modelled: true, cores, uncore, package_asleep, total }
    }

    /// Varies the static share and the uncore power by half of their values, down and up.
    pub fn sensitivity(&self, cores: &[CoreState]) -> Vec<Sensitivity> {
        self.sensitivity_of(|model| model.estimate(cores).total)
    }

    /// The same for any total computed from a model, such as that of several packages.
    pub fn sensitivity_of(&self, total: impl Fn(&PowerModel) -> Watts) -> Vec<Sensitivity> {
        let base = total(self);
        let row = |assumption, value: f64, apply: &dyn Fn(f64) -> PowerModel| {
            let (low, high) = (value * 0.5, value * 1.5);
            let (total_low, total_high) = (total(&apply(low)), total(&apply(high)));
            let elasticity =
                if base > Watts::ZERO && value > 0.0 { (total_high - total_low) / base } else { 0.0 };
            Sensitivity { assumption, low, high, total_low, total_high, elasticity }
        };
        let shares = |value: f64| PowerModel { static_share: Share(value).min(Share::ALL), ..self.clone() };
        let uncore = |value: f64| {
            let scale = if self.uncore > Watts::ZERO { Watts(value) / self.uncore } else { 1.0 };
            PowerModel { uncore: Watts(value), package_sleep: self.package_sleep * scale, ..self.clone() }
        };
        alloc::vec![
            row("static share of a core's power", self.static_share.0, &shares),
            row("uncore power, W", self.uncore.0, &uncore)
        ]
    }
}

#[cfg(test)]
mod tests;
