//! Fits to the numbers that the calibration file names as fit points, and to nothing else.
//!
//! A pattern search: from the best of a grid around the nominal values, one parameter at a time goes up or down by a step
//! while that brings the numbers nearer; then the steps get smaller.

use super::runs::{Bench, Sharing};
use crate::batch::calibrated::Ablation;
use crate::batch::servers::Server;
use crate::calibration::{Calibration, CalibrationError};

const PARAMETERS: [(&str, &str); 3] =
    [("machine", "core_exit_ns"), ("newtos", "copy_cycles"), ("newtos", "message_percent")];
/// Table 2's rates at 1600 and 2267 MHz, Mb/s; tcp's utilisation at 1600 MHz, parts per million.
const TARGETS: [u64; 3] = [7_840, 8_641, 700_000];
/// In percent of a value.
const STEPS: [u64; 3] = [25, 10, 4];
/// Where the search may start, in percent of the nominal values.
const GRID: [u64; 3] = [50, 100, 200];

/// The distance from the paper's numbers: the sum of the squared deviations, in parts per ten thousand.
fn error(calibration: &Calibration, seed: u64) -> Result<u64, CalibrationError> {
    let bench = Bench::new(calibration, "newtos", Ablation::default(), seed)?;
    let slow = bench.run(Sharing::Cores, 1600, 1600);
    let fast = bench.run(Sharing::Cores, 2267, 2267);
    let ours = [slow.kbps / 1000, fast.kbps / 1000, slow.busy_ppm[Server::Tcp as usize]];
    let off = |(ours, target): (u64, u64)| (ours.abs_diff(target) * 10_000 / target).pow(2);
    Ok(ours.into_iter().zip(TARGETS).map(off).sum())
}

/// The calibration with fitted values for the newtos profile; deterministic.
pub fn fit(calibration: &Calibration, seed: u64) -> Result<Calibration, CalibrationError> {
    let (best, least) = start(calibration, seed)?;
    refine(best, least, seed)
}

/// The same for a draw, from where the nominal fit ended or from a point of the grid, whichever is nearer.
pub fn fit_draw(
    drawn: &Calibration,
    fitted: &Calibration,
    seed: u64,
) -> Result<Calibration, CalibrationError> {
    let mut start = drawn.clone();
    for (table, name) in PARAMETERS {
        start.set(table, name, fitted.get(table, name)?);
    }
    let least = error(&start, seed)?;
    let (other, of_other) = self::start(drawn, seed)?;
    if of_other < least { refine(other, of_other, seed) } else { refine(start, least, seed) }
}

fn refine(mut best: Calibration, mut least: u64, seed: u64) -> Result<Calibration, CalibrationError> {
    for step in STEPS {
        while let Some((other, error)) = nearer(&best, least, step, seed)? {
            (best, least) = (other, error);
        }
    }
    Ok(best)
}

/// The point of the grid that is nearest to the paper's numbers, and its error.
fn start(calibration: &Calibration, seed: u64) -> Result<(Calibration, u64), CalibrationError> {
    let (mut best, mut least) = (calibration.clone(), error(calibration, seed)?);
    let size = GRID.len();
    for point in 0..size.pow(PARAMETERS.len() as u32) {
        let mut other = calibration.clone();
        for (i, (table, name)) in PARAMETERS.into_iter().enumerate() {
            let percent = GRID[point / size.pow(i as u32) % size];
            other.set(table, name, within(calibration, table, name, percent, 100)?);
        }
        let error = error(&other, seed)?;
        if error < least {
            (best, least) = (other, error);
        }
    }
    Ok((best, least))
}

/// A parameter's value times `up` over `down`, within its range.
fn within(from: &Calibration, table: &str, name: &str, up: u64, down: u64) -> Result<u64, CalibrationError> {
    let parameter = from.parameter(table, name)?;
    let moved = parameter.value * up / down;
    Ok(moved.clamp(parameter.low.unwrap_or(0), parameter.high.unwrap_or(u64::MAX)))
}

/// A neighbour that is nearer to the paper's numbers than `least`, if there is one.
fn nearer(
    from: &Calibration,
    least: u64,
    step: u64,
    seed: u64,
) -> Result<Option<(Calibration, u64)>, CalibrationError> {
    for (table, name) in PARAMETERS {
        for (up, down) in [(100 + step, 100), (100, 100 + step)] {
            let mut other = from.clone();
            other.set(table, name, within(from, table, name, up, down)?);
            let error = error(&other, seed)?;
            if error < least {
                return Ok(Some((other, error)));
            }
        }
    }
    Ok(None)
}

/// What was fitted: parameter and value.
pub fn values(calibration: &Calibration) -> Result<Vec<(String, u64)>, CalibrationError> {
    PARAMETERS
        .iter()
        .map(|(table, name)| Ok((format!("{table}.{name}"), calibration.get(table, name)?)))
        .collect()
}

#[cfg(test)]
mod tests;
