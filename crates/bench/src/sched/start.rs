//! A bulk transfer that begins on the resting stack: how soon it gets 90% of what the best fixed configuration gives, and
//! how much of that it keeps; beside obvious plans without a policy.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use eft_cores::plan::Plan;

use super::loads::{Kind, Load, Places};
use super::scene::Scene;
use super::{Report, SchedArguments, candidates, search};
use crate::figure::{Aim, Figure};

/// The rate is that of so long a while.
const WHILE_S: f64 = 0.05;
const SHARE: f64 = 0.9;
/// How long the begin of a transfer is watched.
const WATCHED: Duration = Duration::from_secs(3);
/// From here on a transfer on a fixed configuration counts as being at full throughput.
const STEADY_S: f64 = 0.5;

pub fn run(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report) -> Result<()> {
    arguments.at_each_place(scene, report, one)
}

fn one(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report, places: Places) -> Result<()> {
    let name = format!("start, {places}");
    let best = best(scene, places)?;
    report.note(format!("{name}: best fixed configuration {best}"));
    let rivals = candidates::trivial(scene.components(), &scene.cpus);
    let mut reasons = String::new();
    let (mut policy, mut fixed, mut level) = (Vec::new(), Vec::new(), Vec::new());
    let mut rival_levels: Vec<Vec<f64>> = vec![Vec::new(); rivals.len()];
    for _ in 0..arguments.rounds {
        scene.ground.apply(&best)?;
        let series = transfer(scene, places)?;
        let full = steady(&series);
        fixed.push(time_to(&series, SHARE * full).unwrap_or(WATCHED.as_secs_f64()) * 1e3);
        for ((_, plan), levels) in rivals.iter().zip(&mut rival_levels) {
            scene.ground.apply(plan)?;
            levels.push(steady(&transfer(scene, places)?) / full);
        }
        scene.policy("adaptive", "throughput", None)?;
        // Until it rests again.
        scene.sleep(1.5)?;
        let series = transfer(scene, places)?;
        policy.push(time_to(&series, SHARE * full).unwrap_or(WATCHED.as_secs_f64()) * 1e3);
        level.push(steady(&series) / full);
        reasons = scene.reasons(6)?;
        scene.fixed()?;
    }
    report.note(format!("{name}: the policy's last decisions: {reasons}"));
    report.add(
        Figure::new(format!("{name}: from rest to 90% of the best fixed"), "ms", policy)
            .aim(Aim::AtMost(300.0)),
    );
    report.add(Figure::new(format!("{name}: the best fixed itself to its 90%"), "ms", fixed));
    report.add(
        Figure::new(format!("{name}: policy from 0.5 to 3 s, to the best fixed"), "ratio", level)
            .aim(Aim::AtLeast(0.9)),
    );
    for ((rival, _), levels) in rivals.iter().zip(rival_levels) {
        report.add(Figure::new(format!("{name}: {rival}, to the best fixed"), "ratio", levels));
    }
    Ok(())
}

/// The best for bulk at full speed.
fn best(scene: &mut Scene, places: Places) -> Result<Plan> {
    let load = scene.load(&Load::named(Kind::Bulk), places)?;
    scene.sleep(0.5)?;
    let fastest = search::fastest(scene, &load)?;
    fastest.first().map(|best| best.plan.clone()).context("there is no configuration to compare with")
}

/// Bytes that arrived and when, from the first byte on.
fn transfer(scene: &mut Scene, places: Places) -> Result<Vec<(f64, u64)>> {
    let load = scene.load(&Load::named(Kind::Bulk), places)?;
    let mut series: Vec<(f64, u64)> = Vec::new();
    let asked = Instant::now();
    let mut begin = asked;
    while begin.elapsed() < WATCHED {
        let now = load.work()[0];
        if series.is_empty() && now > 0 {
            begin = Instant::now();
        }
        if now > 0 {
            series.push((begin.elapsed().as_secs_f64(), now));
        } else if asked.elapsed() > WATCHED {
            bail!("the transfer did not begin");
        }
        std::thread::sleep(Duration::from_millis(5));
        scene.end.check()?;
    }
    Ok(series)
}

/// When the rate of a while first was that high.
fn time_to(series: &[(f64, u64)], rate: f64) -> Option<f64> {
    series.iter().find_map(|(at, bytes)| {
        let (since, earlier) = series.iter().rev().find(|(t, _)| *t <= at - WHILE_S)?;
        ((bytes - earlier) as f64 / (at - since) >= rate).then_some(*at)
    })
}

fn steady(series: &[(f64, u64)]) -> f64 {
    let first = series.iter().find(|(at, _)| *at >= STEADY_S);
    match (first, series.last()) {
        (Some((since, earlier)), Some((at, bytes))) if at > since => (bytes - earlier) as f64 / (at - since),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests;
