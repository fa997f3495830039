//! Points of the paper's experiments at which the two tiers are held against each other.

use eft_base::random::Random;

use crate::batch::calibrated::{Ablation, profile};
use crate::batch::{Seat, Setting};
use crate::calibration::{Calibration, CalibrationError};
use crate::hardware::Clock;
use crate::hardware::clock::DUTY_STEPS;
use crate::timed::check::Case;

/// How the servers share cores: half of the points as configuration #1 has them, a quarter each as #2 and section 4.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    Cores,
    /// ip and driver.
    Threads,
    /// tcp, ip and driver, by quanta.
    OneCore,
}

/// tcp's core at one speed, ip's and the driver's at another.
pub fn case(calibration: &Calibration, system: &str, seed: u64) -> Result<Case, CalibrationError> {
    let mut random = Random::new(seed);
    let mut duty = || 1 + random.below(DUTY_STEPS);
    let duty = [duty(), duty()];
    let placement = match random.below(4) {
        0 => Placement::Threads,
        1 => Placement::OneCore,
        _ => Placement::Cores,
    };
    let khz = calibration.get("machine", "lowest_khz")?;
    Ok(Case {
        machine: "e5520",
        profile: profile(&calibration.draw(seed), system, Ablation::default())?,
        setting: setting(khz, duty, placement),
    })
}

fn setting(khz: u64, [tcp, others]: [u64; 2], placement: Placement) -> Setting {
    let seat = |core, thread, duty| Seat { core, thread, clock: Clock::throttled(khz, duty) };
    let (front, tcp) = (seat(0, 0, DUTY_STEPS), seat(1, 0, tcp));
    Setting::of(match placement {
        Placement::Cores => [front, tcp, seat(2, 0, others), seat(3, 0, others)],
        Placement::Threads => [front, tcp, seat(2, 0, others), seat(2, 1, others)],
        Placement::OneCore => [front, tcp, tcp, tcp],
    })
}

#[cfg(test)]
mod tests;
