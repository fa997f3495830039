//! Changes of plan at constant load, once the policy has settled, for long enough that it probes several times.

use super::loads::Kind;
use super::scene::Scene;
use super::{Report, SchedArguments};
use crate::figure::{Aim, Figure};
use anyhow::{Context, Result};

/// A policy that has not changed the plan for this long is settled; the other is the longest wait for that.
const QUIET_S: f64 = 10.0;
const SETTLE_MAX_S: f64 = 60.0;
const MINUTE_S: f64 = 60.0;
/// Enough to see what a settled policy began anew for, and the whole search after it.
const REASONS: usize = 24;

pub fn run(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report) -> Result<()> {
    // Each placement would take all the minutes again; apart is where a policy has most to think about.
    let all = arguments.places(&scene.cpus)?;
    let apart = all.iter().find(|places| places.program != places.peer);
    let places = *apart.or(all.first()).context("there is no place for a load")?;
    for load in arguments.loads(&[Kind::Bulk, Kind::Requests]) {
        let name = format!("steady, {load}, {places}");
        let running = scene.load(&load, places)?;
        scene.policy("adaptive", "least-power", None)?;
        let settling = settle(scene)?;
        let mut per_minute = Vec::new();
        for _ in 0..arguments.minutes {
            let before = changes(scene)?;
            scene.sleep(MINUTE_S)?;
            per_minute.push((changes(scene)? - before) as f64);
        }
        report.note(format!("{name}: the policy's last decisions: {}", scene.reasons(REASONS)?));
        drop(running);
        scene.fixed()?;
        report.add(Figure::new(format!("{name}: until no change for {QUIET_S} s"), "s", vec![settling]));
        // The median of minutes would hide a probe that comes every few of them.
        let mean = per_minute.iter().sum::<f64>() / f64::from(arguments.minutes);
        let what = format!("{name}: changes of plan then, mean of {} minutes", arguments.minutes);
        report.add(Figure::new(what, "1/min", vec![mean]).aim(Aim::AtMost(1.0)));
        report.add(Figure::new(format!("{name}: in each minute"), "1/min", per_minute));
    }
    Ok(())
}

fn changes(scene: &Scene) -> Result<u64> {
    Ok(scene.status()?["state"]["changes"].as_u64().unwrap_or(0))
}

/// How long until the last change before it was quiet.
fn settle(scene: &Scene) -> Result<f64> {
    const STEP_S: f64 = 0.5;
    let (mut now, mut last, mut seen) = (0.0, 0.0, changes(scene)?);
    while now - last < QUIET_S && now < SETTLE_MAX_S {
        scene.sleep(STEP_S)?;
        now += STEP_S;
        let changes = changes(scene)?;
        if changes != seen {
            (seen, last) = (changes, now);
        }
    }
    Ok(last)
}
