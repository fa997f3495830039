//! Points of the thesis' experiments at which the two tiers are held against each other.

use eft_base::random::Random;

use super::runs::{Bench, CARDS, Machines, OPTERON, Stack, XEON, on_threads};
use crate::batch::Setting;
use crate::batch::calibrated::Ablation;
use crate::calibration::{Calibration, CalibrationError};
use crate::timed::check::Case;

/// One of so many points has hardware threads, where there are some.
const THREADS: u64 = 4;

/// Each server's clock is one of those that the thesis gives it. The draw is of all that is assumed of both machines.
pub fn case(calibration: &Calibration, system: &str, seed: u64) -> Result<Case, CalibrationError> {
    let stack = if system == "eft" { Stack::Eft } else { Stack::Newtos };
    let machines = Machines::of(calibration.draw(seed), Some(seed))?;
    let mut random = Random::new(seed);
    if random.below(2) == 0 {
        let bench = Bench::new((&machines.opteron, stack), CARDS, Ablation::default(), seed)?;
        let setting = Setting::of(bench.seats(mixed(&OPTERON, &mut random)));
        return Ok(Case { machine: "opteron", profile: bench.profile, setting });
    }
    let bench = Bench::with_filter((&machines.xeon, stack), Ablation::default(), seed)?;
    let mut setting = bench.filtered(mixed(&XEON, &mut random));
    if random.below(THREADS) == 0 {
        setting = on_threads(setting);
    }
    Ok(Case { machine: "xeon", profile: bench.profile, setting })
}

/// A clock for each server, out of those that it has in some row.
fn mixed<const N: usize>(rows: &[[u64; N]], random: &mut Random) -> [u64; N] {
    std::array::from_fn(|server| rows[random.below(rows.len() as u64) as usize][server])
}

#[cfg(test)]
mod tests;
