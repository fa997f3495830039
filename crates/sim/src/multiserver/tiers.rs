//! Points of the paper's experiments at which the two tiers are held against each other.

use eft_base::random::Random;

use super::runs::{CONNECTIONS, SIZES, SPEEDS, setting};
use crate::batch::calibrated::Ablation;
use crate::calibration::{Calibration, CalibrationError};
use crate::timed::check::WebCase;
use crate::web::calibrated::{Stack, web};

/// Files of one of the paper's sizes, a number of clients out of its Figure 2, tcp and ip at one of its clocks and the driver at
/// another, and the program at the highest.
pub fn case(calibration: &Calibration, system: &str, seed: u64) -> Result<WebCase, CalibrationError> {
    let stack = if system == "eft" { Stack::Eft } else { Stack::Newtos };
    let chip = calibration.chip()?;
    let mut random = Random::new(seed);
    let file_bytes = one_of(&SIZES, &mut random);
    let clients = one_of(&CONNECTIONS, &mut random);
    let (tcp_ip, driver) = (one_of(&SPEEDS, &mut random), one_of(&SPEEDS, &mut random));
    Ok(WebCase {
        machine: "e5520",
        file_bytes,
        web: web(&calibration.draw(seed), stack, clients, file_bytes, Ablation::default())?,
        setting: setting(&chip, chip.highest.0 / 1000, [tcp_ip, tcp_ip, driver]),
    })
}

fn one_of<T: Copy>(all: &[T], random: &mut Random) -> T {
    all[random.below(all.len() as u64) as usize]
}

#[cfg(test)]
mod tests;
