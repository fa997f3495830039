//! Points of the paper's experiments at which the two tiers are held against each other.

use eft_base::random::Random;

use crate::batch::calibrated::{Ablation, profile};
use crate::batch::{Seat, Setting};
use crate::calibration::{Calibration, CalibrationError};
use crate::hardware::Clock;
use crate::hardware::clock::DUTY_STEPS;
use crate::timed::check::Case;

/// tcp's core at one speed, ip's and the driver's at another, of which one point in four has both on the threads of one core.
pub fn case(calibration: &Calibration, system: &str, seed: u64) -> Result<Case, CalibrationError> {
    let mut random = Random::new(seed);
    let mut duty = || 1 + random.below(DUTY_STEPS);
    let duty = [duty(), duty()];
    let threads = random.below(4) == 0;
    let khz = calibration.get("machine", "lowest_khz")?;
    Ok(Case {
        machine: "e5520",
        profile: profile(&calibration.draw(seed), system, Ablation::default())?,
        setting: setting(khz, duty, threads),
    })
}

fn setting(khz: u64, [tcp, others]: [u64; 2], threads: bool) -> Setting {
    let seat = |core, thread, duty| Seat { core, thread, clock: Clock { khz, duty } };
    let driver = if threads { seat(2, 1, others) } else { seat(3, 0, others) };
    Setting::of([seat(0, 0, DUTY_STEPS), seat(1, 0, tcp), seat(2, 0, others), driver])
}

#[cfg(test)]
mod tests;
