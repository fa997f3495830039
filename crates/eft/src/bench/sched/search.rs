//! The best fixed configuration of a load, by trying all for a short while, then those in front again.

use eft_cores::plan::Plan;
use eft_cores::policy::Objective;
use eft_cores::power::PowerModel;

use super::scene::{Scene, Window};
use crate::samples::Samples;

/// What a configuration is given to find itself, and how long it is then measured.
const SETTLE_S: f64 = 0.12;
const MEASURE_S: f64 = 0.25;
/// How many are measured again, and how.
const FINALISTS: usize = 4;
const FINAL_ROUNDS: usize = 3;
const FINAL_MEASURE_S: f64 = 0.6;

#[derive(Clone, Debug)]
pub struct Tried {
    pub plan: Plan,
    pub throughput: f64,
    pub power_w: f64,
    pub window: Window,
}

fn try_one(scene: &mut Scene, plan: &Plan, settle: f64, seconds: f64) -> Result<Tried, String> {
    let window = scene.plan_window(plan, settle, seconds)?;
    let power_w = window.power_w(&scene.ground, &PowerModel::default());
    Ok(Tried { plan: plan.clone(), throughput: window.throughput(), power_w, window })
}

/// All configurations, once in each round, with the medians of the rounds; the load must run already.
pub fn try_all(scene: &mut Scene, plans: &[Plan], rounds: usize) -> Result<Vec<Tried>, String> {
    try_in_turns(scene, plans, rounds, MEASURE_S)
}

/// In turns, since what else a shared machine does comes in bursts that last longer than a measurement.
fn try_in_turns(
    scene: &mut Scene,
    plans: &[Plan],
    rounds: usize,
    seconds: f64,
) -> Result<Vec<Tried>, String> {
    let mut results: Vec<Vec<Tried>> = vec![Vec::new(); plans.len()];
    for _ in 0..rounds {
        for (plan, results) in plans.iter().zip(&mut results) {
            results.push(try_one(scene, plan, SETTLE_S, seconds)?);
        }
    }
    let median =
        |of: &dyn Fn(&Tried) -> f64, all: &[Tried]| Samples::new(all.iter().map(of).collect()).median;
    let merge = |all: &Vec<Tried>| {
        let last = all.last()?.clone();
        let (throughput, power_w) = (median(&|t| t.throughput, all), median(&|t| t.power_w, all));
        Some(Tried { throughput, power_w, ..last })
    };
    Ok(results.iter().filter_map(merge).collect())
}

/// Measures the front runners for most throughput and for the objective again, in turns, and gives all of them, the best
/// by their medians first.
pub fn finals(scene: &mut Scene, tried: &[Tried], objective: Objective) -> Result<Vec<Tried>, String> {
    let mut plans: Vec<Plan> = Vec::new();
    for goal in [Objective::Throughput, objective] {
        for candidate in ranked(tried, goal).into_iter().take(FINALISTS) {
            if !plans.iter().any(|known| known.is_same(&candidate.plan)) {
                plans.push(candidate.plan.clone());
            }
        }
    }
    let merged = try_in_turns(scene, &plans, FINAL_ROUNDS, FINAL_MEASURE_S)?;
    Ok(ranked(&merged, objective).into_iter().cloned().collect())
}

/// The best first.
fn ranked(tried: &[Tried], objective: Objective) -> Vec<&Tried> {
    let top = tried.iter().map(|t| t.throughput).fold(1e-9, f64::max);
    let score = |t: &Tried| objective.score(t.throughput / top, t.power_w);
    let mut all: Vec<&Tried> = tried.iter().collect();
    all.sort_by(|a, b| score(b).total_cmp(&score(a)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_objective_ranks() {
        let tried = |throughput, power_w| Tried {
            plan: Plan::default(),
            throughput,
            power_w,
            window: Window::default(),
        };
        let all = [tried(100.0, 30.0), tried(96.0, 20.0), tried(94.0, 10.0), tried(97.0, 25.0)];
        let order = |objective| ranked(&all, objective).iter().map(|t| t.power_w).collect::<Vec<_>>();
        assert_eq!(order(Objective::Throughput), [30.0, 25.0, 20.0, 10.0]);
        assert_eq!(order(Objective::LeastPower { floor: 0.95 }), [20.0, 25.0, 30.0, 10.0]);
    }
}
