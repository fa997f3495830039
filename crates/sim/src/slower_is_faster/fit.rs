//! Fits to the numbers that the calibration file names as fit points, and to nothing else.
//!
//! A pattern search: from the best of a grid around the nominal values, one parameter at a time goes up or down by a step
//! while that brings the numbers nearer; then the steps get smaller. A draw begins where the nominal fit ended, and first
//! steers towards the numbers by their slopes ([`steer`]), which needs a tenth of the runs.

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

/// How far the numbers of the search are off, relative to the paper's.
fn off(calibration: &Calibration, seed: u64) -> Result<[f64; 3], CalibrationError> {
    let bench = Bench::new(calibration, "newtos", Ablation::default(), seed)?;
    let slow = bench.run(Sharing::Cores, 1600, 1600);
    let fast = bench.run(Sharing::Cores, 2267, 2267);
    let ours = [slow.kbps / 1000, fast.kbps / 1000, slow.busy_ppm[Server::Tcp as usize]];
    Ok([0, 1, 2].map(|i| ours[i] as f64 / TARGETS[i] as f64 - 1.0))
}

/// The distance from the paper's numbers: the sum of the squared deviations, in parts per ten thousand.
fn distance(off: [f64; 3]) -> u64 {
    off.into_iter().map(|off| ((off.abs() * 10_000.0) as u64).pow(2)).sum()
}

fn error(calibration: &Calibration, seed: u64) -> Result<u64, CalibrationError> {
    off(calibration, seed).map(distance)
}

/// The calibration with fitted values for the newtos profile; deterministic.
pub fn fit(calibration: &Calibration, seed: u64) -> Result<Calibration, CalibrationError> {
    let (best, _) = start(calibration, seed)?;
    let (best, least) = steer(best, seed)?;
    refine(best, least, seed)
}

/// The same for a draw, from where the nominal fit ended.
pub fn fit_draw(
    drawn: &Calibration,
    fitted: &Calibration,
    seed: u64,
) -> Result<Calibration, CalibrationError> {
    let mut start = drawn.clone();
    for (table, name) in PARAMETERS {
        start.set(table, name, fitted.get(table, name)?);
    }
    let (best, least) = steer(start, seed)?;
    if least <= NEAR { Ok(best) } else { refine(best, least, seed) }
}

/// Near enough: each number within 1%, or one of them within 1.7%.
const NEAR: u64 = 3 * 100 * 100;
/// Parameters are moved by so much, relatively, to see the slopes, and by half to twice at most at a time.
const PROBE: f64 = 0.15;
const STEERED: u32 = 6;

/// Newton's method with slopes that are seen once and then corrected by what each step brings (Broyden 1965). It ends
/// when it is near, or after [`STEERED`] steps; returns the nearest point that it saw, and its error.
fn steer(start: Calibration, seed: u64) -> Result<(Calibration, u64), CalibrationError> {
    let mut here = off(&start, seed)?;
    let (mut best, mut least) = (start.clone(), distance(here));
    let mut slopes = [[0.0; 3]; 3];
    for j in 0..PARAMETERS.len() {
        if least <= NEAR {
            return Ok((best, least));
        }
        let mut by = [0.0; 3];
        by[j] = PROBE;
        let (probe, by) = moved(&start, by)?;
        let there = off(&probe, seed)?;
        for i in 0..3 {
            slopes[i][j] = if by[j] == 0.0 { 0.0 } else { (there[i] - here[i]) / by[j] };
        }
        if distance(there) < least {
            (best, least) = (probe, distance(there));
        }
    }
    let mut at = start;
    for _ in 0..STEERED {
        let Some(by) = solved(&slopes, here) else { break };
        let (next, by) = moved(&at, by.map(|by| (-by).clamp(-0.5, 1.0)))?;
        let length: f64 = by.iter().map(|by| by * by).sum();
        if length == 0.0 {
            break;
        }
        let there = off(&next, seed)?;
        for i in 0..3 {
            let expected: f64 = here[i] + (0..3).map(|j| slopes[i][j] * by[j]).sum::<f64>();
            for j in 0..3 {
                slopes[i][j] += (there[i] - expected) * by[j] / length;
            }
        }
        (at, here) = (next, there);
        if distance(here) < least {
            (best, least) = (at.clone(), distance(here));
        }
        if least <= NEAR {
            break;
        }
    }
    Ok((best, least))
}

/// Each parameter times one and its part of `by`, within its range; and by how much it moved indeed.
fn moved(from: &Calibration, by: [f64; 3]) -> Result<(Calibration, [f64; 3]), CalibrationError> {
    let (mut other, mut moved) = (from.clone(), [0.0; 3]);
    for (i, (table, name)) in PARAMETERS.into_iter().enumerate() {
        let before = from.get(table, name)?;
        let value = within(from, table, name, ((1.0 + by[i]) * 10_000.0) as u64, 10_000)?;
        other.set(table, name, value);
        moved[i] = value as f64 / before.max(1) as f64 - 1.0;
    }
    Ok((other, moved))
}

/// Solves three linear equations, by Cramer's rule.
fn solved(of: &[[f64; 3]; 3], right: [f64; 3]) -> Option<[f64; 3]> {
    let determinant = |m: &[[f64; 3]; 3]| {
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
            + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    };
    let all = determinant(of);
    (all.abs() > 1e-6).then(|| {
        [0, 1, 2].map(|column| {
            let mut with = *of;
            (0..3).for_each(|row| with[row][column] = right[row]);
            determinant(&with) / all
        })
    })
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
