//! Points of the thesis' experiments at which the two tiers are held against each other.

use eft_base::random::Random;

use super::runs::{Bench, CARDS, Machines, OPTERON, SHARED, Stack, XEON, on_cores_of, on_threads};
use crate::batch::Setting;
use crate::batch::calibrated::Ablation;
use crate::calibration::{Calibration, CalibrationError};
use crate::timed::check::Case;

/// One of so many points has hardware threads, where there are some, or servers on one core, where there are none.
const TOGETHER: u64 = 4;

/// Each server's clock is one of those that the thesis gives it. The draw is of all that is assumed of both machines.
pub fn case(calibration: &Calibration, system: &str, seed: u64) -> Result<Case, CalibrationError> {
    let stack = if system == "eft" { Stack::Eft } else { Stack::Newtos };
    let machines = Machines::of(calibration.draw(seed), Some(seed))?;
    let mut random = Random::new(seed);
    if random.below(2) == 0 {
        let bench = Bench::new((&machines.opteron, stack), CARDS, Ablation::default(), seed)?;
        let mut seats = bench.seats(mixed(&OPTERON, &mut random));
        if random.below(TOGETHER) == 0 {
            let (_, hosts) = SHARED[random.below(SHARED.len() as u64) as usize];
            seats = on_cores_of(seats, hosts);
        }
        return Ok(Case { machine: "opteron", profile: bench.profile, setting: Setting::of(seats) });
    }
    let bench = Bench::with_filter((&machines.xeon, stack), Ablation::default(), seed)?;
    let mut setting = bench.filtered(mixed(&XEON, &mut random));
    if random.below(TOGETHER) == 0 {
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
