//! Changes of plan at constant load, once the policy has settled.

use super::loads::Kind;
use super::scene::Scene;
use super::{Report, SchedArguments};
use crate::bench::figure::{Aim, Figure};

/// Settled is who has not changed the plan for so long; not waited for longer than the other.
const QUIET_S: f64 = 10.0;
const SETTLE_MAX_S: f64 = 60.0;
/// Shorter would say little about changes in a minute.
const MEASURED_S: f64 = 60.0;

pub fn run(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report) -> Result<(), String> {
    let mut figures = Vec::new();
    for kind in [Kind::Bulk, Kind::Requests] {
        let load = scene.load(kind)?;
        scene.policy("adaptive", "least-power", None)?;
        let settling = settle(scene)?;
        let mut per_minute = Vec::new();
        // A minute each would be long with many rounds.
        for _ in 0..arguments.rounds.min(2) {
            let before = changes(scene)?;
            scene.sleep(MEASURED_S)?;
            per_minute.push((changes(scene)? - before) as f64 * 60.0 / MEASURED_S);
        }
        let (name, reasons) = (kind.name(), scene.reasons(4)?);
        report.note(format!("steady, {name}: the policy's last decisions: {reasons}"));
        drop(load);
        scene.fixed()?;
        figures.push(Figure::new(
            format!("steady, {name}: until no change for {QUIET_S} s"),
            "s",
            vec![settling],
        ));
        figures.push(
            Figure::new(format!("steady, {name}: changes of plan then"), "1/min", per_minute)
                .aim(Aim::AtMost(1.0)),
        );
    }
    figures.into_iter().for_each(|figure| report.add(figure));
    Ok(())
}

fn changes(scene: &Scene) -> Result<u64, String> {
    Ok(scene.status()?["state"]["changes"].as_u64().unwrap_or(0))
}

/// How long until the last change before it was quiet.
fn settle(scene: &Scene) -> Result<f64, String> {
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
