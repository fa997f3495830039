//! The best fixed configuration of a load: all seatings at full speed, then every speed of the best of them, in rounds that
//! drop the worse half and measure the rest for longer.

use anyhow::{Context, Result};
use eft_cores::plan::Plan;
use eft_machine::Share;

use super::candidates;
use super::judge::{Constants, Goal, ranked, relative};
use super::loads::Running;
use super::scene::Scene;
use crate::samples::Samples;

/// Seatings whose speeds are tried, beside everything on one CPU.
const SEATINGS: usize = 6;
/// How many are measured to the end, and how often, for how long each, after how long.
const FINALISTS: usize = 4;
const FINAL_ROUNDS: usize = 3;
const FINAL: Stay = Stay { settle_s: 0.12, seconds: 0.6 };
/// While there are many.
const SHORT: Stay = Stay { settle_s: 0.06, seconds: 0.12 };
const USUAL: Stay = Stay { settle_s: 0.12, seconds: 0.25 };
/// From here on a stay is a usual one.
const FEW: usize = 150;

#[derive(Clone, Copy)]
struct Stay {
    settle_s: f64,
    seconds: f64,
}

#[derive(Clone, Debug)]
pub struct Tried {
    pub plan: Plan,
    /// By round: work of each part a second, and power.
    rounds: Vec<(Vec<f64>, f64)>,
}

impl Tried {
    fn new(plan: Plan) -> Tried {
        Tried { plan, rounds: Vec::new() }
    }

    /// Medians of the rounds.
    pub fn work_per_s(&self) -> Vec<f64> {
        let parts = self.rounds.first().map_or(0, |(work, _)| work.len());
        (0..parts).map(|part| median(self.rounds.iter().map(|(work, _)| work[part]))).collect()
    }

    pub fn power_w(&self) -> f64 {
        median(self.rounds.iter().map(|(_, watts)| *watts))
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    Samples::new(values.collect()).median
}

/// The best at full speed, for throughput.
pub fn fastest(scene: &mut Scene, load: &Running) -> Result<Vec<Tried>> {
    fastest_of(scene, load, |_| true)
}

/// The same, of those that qualify.
pub fn fastest_of(
    scene: &mut Scene,
    load: &Running,
    qualifies: impl Fn(&Plan) -> bool,
) -> Result<Vec<Tried>> {
    let plans = candidates::seatings(scene.components(), &scene.cpus);
    let plans = plans.into_iter().filter(|plan| qualifies(plan));
    halve(scene, load, plans.map(Tried::new).collect(), Goal::Throughput)
}

/// The best of all seatings and speeds for this goal, the best first; and the fastest of all.
pub fn best(scene: &mut Scene, load: &Running, goal: Goal, levels: usize) -> Result<(Vec<Tried>, Tried)> {
    let fast = fastest(scene, load)?;
    let top = fast.first().context("there is no configuration to compare with")?.clone();
    let mut seatings: Vec<Plan> = fast.iter().take(SEATINGS).map(|tried| tried.plan.clone()).collect();
    for (_, plan) in candidates::trivial(scene.components(), &scene.cpus) {
        if !seatings.iter().any(|known| known.is_same(&plan)) {
            seatings.push(plan);
        }
    }
    let speeds: Vec<Share> = (1..=levels).map(|step| Share(step as f64 / levels as f64)).collect();
    let plans = seatings.iter().flat_map(|plan| candidates::at_speeds(plan, &speeds));
    Ok((halve(scene, load, plans.map(Tried::new).collect(), goal)?, top))
}

/// Drops the worse half of them until few are left, which are measured for longer, in turns, since what else a shared
/// machine does comes in bursts that last longer than a measurement.
fn halve(scene: &mut Scene, load: &Running, mut all: Vec<Tried>, goal: Goal) -> Result<Vec<Tried>> {
    while all.len() > 2 * FINALISTS {
        let stay = if all.len() > FEW { SHORT } else { USUAL };
        try_each(scene, load, &mut all, stay)?;
        let keep = (all.len() / 2).max(FINALISTS);
        all = in_order(&all, goal).into_iter().take(keep).collect();
    }
    // The short measurements no longer count.
    all.iter_mut().for_each(|tried| tried.rounds.clear());
    for _ in 0..FINAL_ROUNDS {
        try_each(scene, load, &mut all, FINAL)?;
    }
    Ok(in_order(&all, goal))
}

fn try_each(scene: &mut Scene, load: &Running, all: &mut [Tried], stay: Stay) -> Result<()> {
    for tried in all {
        let window = scene.plan_window(load, &tried.plan, stay.settle_s, stay.seconds)?;
        tried.rounds.push((window.work_per_s(), window.power_w(&scene.cpus, &Constants::MIDDLE)));
    }
    Ok(())
}

/// Throughput is relative to the most that any of them achieved of each part.
fn in_order(all: &[Tried], goal: Goal) -> Vec<Tried> {
    let work: Vec<Vec<f64>> = all.iter().map(Tried::work_per_s).collect();
    let parts = work.first().map_or(0, Vec::len);
    let most: Vec<f64> = (0..parts).map(|part| work.iter().map(|w| w[part]).fold(0.0, f64::max)).collect();
    let figures: Vec<(f64, f64)> =
        all.iter().zip(&work).map(|(tried, work)| (relative(work, &most), tried.power_w())).collect();
    ranked(&figures, goal).into_iter().map(|index| all[index].clone()).collect()
}

#[cfg(test)]
mod tests;
