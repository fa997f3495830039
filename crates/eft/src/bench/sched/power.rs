//! Least power with a floor of 95% on throughput: the policy beside the best fixed configuration and beside everything at
//! full speed.

use eft_cores::plan::Plan;
use eft_cores::policy::Objective;
use eft_cores::power::PowerModel;

use super::loads::Kind;
use super::scene::{Scene, Window};
use super::search::Tried;
use super::{Report, SchedArguments, search};
use crate::bench::figure::{Aim, Figure};
use crate::samples::Samples;

pub const FLOOR: f64 = 0.95;
const SETTLE_S: f64 = 0.3;

pub fn run(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report) -> Result<(), String> {
    let kinds = match arguments.load.as_slice() {
        [] => vec![Kind::Bulk, Kind::Requests, Kind::Mixed],
        some => some.to_vec(),
    };
    kinds.into_iter().try_for_each(|kind| one(scene, arguments, report, kind))
}

fn one(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report, kind: Kind) -> Result<(), String> {
    let load = scene.load(kind)?;
    scene.sleep(0.5)?;
    let plans = scene.configurations();
    let tried = search::try_all(scene, &plans, 1)?;
    let finals = search::finals(scene, &tried, Objective::LeastPower { floor: FLOOR })?;
    let best = finals.first().ok_or("there is no configuration to compare with")?.plan.clone();
    let top = fastest(&finals).ok_or("there is no configuration to compare with")?;
    let full = all_at_full_speed(&tried).ok_or("no configuration runs everything at full speed")?;
    let name = kind.name();
    report.note(format!(
        "power, {name}: of {} configurations the best is {best}; most throughput has {top}",
        plans.len()
    ));
    let model = PowerModel::default();
    let mut reasons = String::new();
    let (mut power, mut throughput, mut watts, mut savings) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut pairs: Vec<(Window, Window)> = Vec::new();
    for _ in 0..arguments.rounds {
        let fixed = scene.plan_window(&best, SETTLE_S, arguments.seconds)?;
        let most = scene.plan_window(&top, SETTLE_S, arguments.seconds)?;
        let fast = scene.plan_window(&full, SETTLE_S, arguments.seconds)?;
        scene.policy("adaptive", "least-power", None)?;
        scene.sleep(arguments.settle)?;
        let policy = scene.policy_window(arguments.seconds)?;
        reasons = scene.reasons(4)?;
        scene.fixed()?;
        let w = |window: &Window| window.power_w(&scene.ground, &model);
        power.push(w(&policy) / w(&fixed).max(1e-9));
        throughput.push(policy.throughput() / most.throughput().max(1e-9));
        watts.push(w(&policy));
        savings.push((1.0 - w(&policy) / w(&fast).max(1e-9)) * 100.0);
        pairs.push((policy, fast));
    }
    drop(load);
    if let Some((plan, ..)) = pairs.last().and_then(|(policy, _)| policy.states.last()) {
        report.note(format!("power, {name}: the policy ended with {plan} ({reasons})"));
    }
    report.add(Figure::new(format!("power, {name}: modelled, of the policy"), "W", watts));
    report.add(
        Figure::new(format!("power, {name}: policy to the best fixed"), "ratio", power)
            .aim(Aim::AtMost(1.05)),
    );
    report.add(
        Figure::new(format!("power, {name}: throughput to the fastest fixed"), "ratio", throughput)
            .aim(Aim::AtLeast(FLOOR)),
    );
    report.add(Figure::new(format!("power, {name}: saved against all at full speed"), "%", savings));
    sensitivity(scene, report, name, &pairs);
    Ok(())
}

pub fn fastest(finals: &[Tried]) -> Option<Plan> {
    finals.iter().max_by(|a, b| a.throughput.total_cmp(&b.throughput)).map(|t| t.plan.clone())
}

/// Every managed CPU used, at full speed; of these the one with most throughput.
fn all_at_full_speed(tried: &[Tried]) -> Option<Plan> {
    let most = tried.iter().map(|t| t.plan.used().len()).max()?;
    let is_full = |plan: &Plan| plan.used().len() == most && plan.used().iter().all(|c| plan.speed(c) > 0.99);
    let full = tried.iter().filter(|t| is_full(&t.plan));
    full.max_by(|a, b| a.throughput.total_cmp(&b.throughput)).map(|t| t.plan.clone())
}

/// How the saving moves with what the model assumes.
fn sensitivity(scene: &Scene, report: &mut Report, name: &str, pairs: &[(Window, Window)]) {
    let saved = |model: &PowerModel| {
        let one = |(policy, fast): &(Window, Window)| {
            1.0 - policy.power_w(&scene.ground, model) / fast.power_w(&scene.ground, model).max(1e-9)
        };
        Samples::new(pairs.iter().map(one).collect()).median
    };
    for row in PowerModel::default().sensitivity_of(saved) {
        report.note(format!(
            "power, {name}: with {} from {} to {} the saving goes from {:.1}% to {:.1}%",
            row.assumption,
            row.low,
            row.high,
            row.total_low_w * 100.0,
            row.total_high_w * 100.0
        ));
    }
}
