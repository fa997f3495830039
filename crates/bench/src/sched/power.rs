//! Least power with a floor of 95% on throughput: the policy beside the best fixed configuration of all seatings and
//! speeds, and beside obvious plans without a policy.

use anyhow::{Context, Result};
use eft_machine::CpuId;

use super::judge::{Constants, Goal, relative};
use super::loads::{Kind, Load, Places};
use super::scene::{Scene, Window};
use super::{Report, SchedArguments, candidates, search};
use crate::figure::{Aim, Figure};
use crate::samples::Samples;

const FLOOR: f64 = 0.95;
const SETTLE_S: f64 = 0.3;

pub fn run(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report) -> Result<()> {
    for load in arguments.loads(&[Kind::Bulk, Kind::Requests, Kind::Mixed]) {
        for places in arguments.places(&scene.cpus)? {
            one(scene, arguments, report, &load, places)?;
        }
    }
    Ok(())
}

/// One after the other, so that a change of the machine's speed affects all of them.
struct Round {
    best: Window,
    top: Window,
    policy: Window,
    rivals: Vec<Window>,
}

fn one(
    scene: &mut Scene,
    arguments: &SchedArguments,
    report: &mut Report,
    load: &Load,
    places: Places,
) -> Result<()> {
    let name = format!("power, {load}, {places}");
    let running = scene.load(load, places)?;
    scene.sleep(0.5)?;
    let goal = Goal::Power { floor: FLOOR };
    let (tried, top) = search::best(scene, &running, goal, usize::from(arguments.levels))?;
    let best = tried.first().context("there is no configuration to compare with")?.plan.clone();
    report.note(format!("{name}: the best is {best}; most throughput has {}", top.plan));
    let rivals = candidates::trivial(scene.components(), &scene.cpus);
    let mut rounds: Vec<Round> = Vec::new();
    let mut reasons = String::new();
    for _ in 0..arguments.rounds {
        let best = scene.plan_window(&running, &best, SETTLE_S, arguments.seconds)?;
        let top = scene.plan_window(&running, &top.plan, SETTLE_S, arguments.seconds)?;
        let mut rival_windows = Vec::new();
        for (_, plan) in &rivals {
            rival_windows.push(scene.plan_window(&running, plan, SETTLE_S, arguments.seconds)?);
        }
        scene.policy("adaptive", "least-power", None)?;
        scene.sleep(arguments.settle)?;
        let policy = scene.policy_window(&running, arguments.seconds)?;
        reasons = scene.reasons(4)?;
        scene.fixed()?;
        rounds.push(Round { best, top, policy, rivals: rival_windows });
    }
    drop(running);
    if let Some(round) = rounds.last() {
        report.note(format!("{name}: the policy ended with {} ({reasons})", round.policy.plan()));
    }
    let names: Vec<&str> = rivals.iter().map(|(name, _)| name.as_str()).collect();
    add_figures(report, &name, &rounds, &names, &scene.cpus);
    Ok(())
}

fn add_figures(report: &mut Report, name: &str, rounds: &[Round], rivals: &[&str], cpus: &[CpuId]) {
    let watts = |of: &dyn Fn(&Round) -> &Window, constants: &Constants| -> Vec<f64> {
        rounds.iter().map(|round| of(round).power_w(cpus, constants)).collect()
    };
    let achieved = |of: &dyn Fn(&Round) -> &Window| -> Vec<f64> {
        rounds.iter().map(|round| relative(&of(round).work_per_s(), &round.top.work_per_s())).collect()
    };
    for constants in &Constants::ALL {
        // The middle model has an aim; the others show how far the verdict depends on the assumptions.
        let aim = (constants.name == Constants::MIDDLE.name).then_some(Aim::AtMost(1.05));
        let policy = watts(&|round| &round.policy, constants);
        let fixed = watts(&|round| &round.best, constants);
        let what = format!("{name}: modelled power, {}", constants.name);
        report.add(Figure { aim, ..Figure::new(what, "W", policy).beside("best fixed", fixed) });
    }
    report.add(
        Figure::new(format!("{name}: throughput to the fastest fixed"), "ratio", achieved(&|r| &r.policy))
            .aim(Aim::AtLeast(FLOOR)),
    );
    for (index, rival) in rivals.iter().enumerate() {
        let power = watts(&|round| &round.rivals[index], &Constants::MIDDLE);
        let median = Samples::new(achieved(&|round| &round.rivals[index])).median;
        let what = format!("{name}: {rival}, {median:.2} of the throughput");
        let fixed = watts(&|round| &round.best, &Constants::MIDDLE);
        report.add(Figure::new(what, "W", power).beside("best fixed", fixed));
    }
}
