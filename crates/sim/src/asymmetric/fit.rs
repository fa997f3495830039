//! Fits parameters to the numbers that the paper's text gives on Figures 7 and 8, and to nothing else.
//!
//! Each parameter has one number, and is found by bisection while the others stay; some rounds settle them together. No
//! other outcome of a run is read or printed, so that held-out numbers cannot be fitted. No value is beyond what
//! the core can do: between its waits for memory it retires three instructions a cycle at most (AMD, "Software Optimization
//! Guide for AMD Domain 10h Processors", section 1.2).

use super::calibration::{Calibration, Program};
use super::error::Error;
use super::runs::{self, Extent};
use crate::calibration::CalibrationError;

/// One number of the paper, and what is fitted to it.
struct Point {
    /// The parameters of these programs move together.
    programs: &'static [&'static str],
    parameter: &'static str,
    mix: &'static str,
    way: &'static str,
    /// Of the mix's figures.
    key: &'static str,
    target: f64,
    /// Whether the figure falls as the parameter rises.
    falls: bool,
}

const fn point(
    programs: &'static [&'static str],
    mix: &'static str,
    key: &'static str,
    target: f64,
) -> Point {
    Point { programs, parameter: "memory", mix, way: "amp-vm", key, target, falls: true }
}

const POINTS: [Point; 4] = [
    point(&["freqmine"], "1H-1M-1L", "vm0", 1.425),
    point(&["pmake"], "1M-2L", "vm0", 1.2),
    Point { way: "all-fast", ..point(&["GemsFDTD", "soplex", "libquantum"], "8M-4L", "mean", 1.17) },
    // How much of the fast cores it gets beside freqmine depends on how far its IPC is above freqmine's.
    Point { parameter: "ipc", falls: false, ..point(&["swaptions"], "2H-1M", "vm1", 1.425) },
];
const ROUNDS: usize = 3;
/// Instructions that the core retires in a cycle.
const WIDTH: u64 = 3;
/// The precision to which a value is found, in per mille.
const CLOSE: u64 = 4;

/// The fit's result: program, parameter, value in per mille; and each number beside the paper's.
pub struct Fitted {
    pub values: Vec<(&'static str, &'static str, u64)>,
    pub numbers: Vec<(String, f64, f64)>,
}

pub fn fit(calibration: &Calibration, extent: Extent) -> Result<Fitted, Error> {
    let mut calibration = calibration.clone();
    for _ in 0..ROUNDS {
        for point in &POINTS {
            calibration = halve(&calibration, point, extent)?;
        }
    }
    let mut fitted = Fitted { values: Vec::new(), numbers: Vec::new() };
    for point in &POINTS {
        for program in point.programs {
            let value = value(&calibration.program(program)?, point.parameter);
            fitted.values.push((program, point.parameter, value));
        }
        let ours = runs::of_mix(&calibration, point.mix, point.way, point.key, extent)?;
        fitted.numbers.push((format!("{} {} {}", point.mix, point.way, point.key), ours, point.target));
    }
    Ok(fitted)
}

fn value(program: &Program, parameter: &str) -> u64 {
    if parameter == "ipc" { program.ipc } else { program.memory }
}

/// What the core can do.
fn most(program: &Program, parameter: &str) -> u64 {
    if parameter == "ipc" { WIDTH * (1000 - program.memory) } else { 1000 - program.ipc / WIDTH }
}

/// Finds the values at which the point's figure is the paper's; those of several programs keep their distance.
fn halve(calibration: &Calibration, point: &Point, extent: Extent) -> Result<Calibration, Error> {
    let programs: Result<Vec<Program>, CalibrationError> =
        point.programs.iter().map(|program| calibration.program(program)).collect();
    let programs = programs?;
    let first = value(&programs[0], point.parameter);
    let with = |wanted: u64| {
        let mut moved = calibration.clone();
        for (name, program) in point.programs.iter().zip(&programs) {
            let own = (value(program, point.parameter) + wanted).saturating_sub(first);
            moved.set(name, point.parameter, own.min(most(program, point.parameter)));
        }
        moved
    };
    let (mut low, mut high) = (0, most(&programs[0], point.parameter));
    while high - low > CLOSE {
        let middle = (low + high) / 2;
        let is_above = runs::of_mix(&with(middle), point.mix, point.way, point.key, extent)? > point.target;
        if is_above == point.falls { low = middle } else { high = middle }
    }
    Ok(with((low + high) / 2))
}

#[cfg(test)]
mod tests;
