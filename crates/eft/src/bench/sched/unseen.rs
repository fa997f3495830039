//! `profile` on loads that were not in its sweep, beside the best configuration found by trying all.

use eft_cores::policy::Objective;
use eft_cores::profile::{Outcome, Profiles};

use super::loads::Kind;
use super::scene::Scene;
use super::{Report, SchedArguments, search};
use crate::bench::figure::{Aim, Figure};
use crate::commands::profile::{SWEEP_ROUNDS, store};

/// What it is trained with, and what it then meets.
const SWEPT: [Kind; 4] = [Kind::Bulk, Kind::BulkIn, Kind::Requests, Kind::LoneRequests];
const UNSEEN: [Kind; 2] = [Kind::Mixed, Kind::FewRequests];
const SETTLE_S: f64 = 0.3;

pub fn run(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report) -> Result<(), String> {
    let plans = scene.configurations();
    let mut profiles = Profiles::default();
    for kind in SWEPT {
        let load = scene.load(kind)?;
        scene.sleep(0.5)?;
        for tried in search::try_all(scene, &plans, usize::from(SWEEP_ROUNDS))? {
            let outcome = Outcome {
                throughput: tried.throughput,
                power_w: tried.power_w,
                modelled: true,
                plan: tried.plan,
                ..Outcome::default()
            };
            profiles.record(kind.name(), tried.window.mix, outcome);
        }
        drop(load);
    }
    let file = std::env::temp_dir().join(format!("eft-bench-profiles-{}.toml", std::process::id()));
    store::write(&file, &profiles, scene.ground.machine())?;
    let met = UNSEEN.into_iter().try_for_each(|kind| meet(scene, arguments, report, kind, &file));
    let _ = std::fs::remove_file(&file);
    met
}

fn meet(
    scene: &mut Scene,
    arguments: &SchedArguments,
    report: &mut Report,
    kind: Kind,
    profiles: &std::path::Path,
) -> Result<(), String> {
    let load = scene.load(kind)?;
    scene.sleep(0.5)?;
    let plans = scene.configurations();
    let tried = search::try_all(scene, &plans, 1)?;
    let best = search::finals(scene, &tried, Objective::Throughput)?;
    let best = best.first().ok_or("there is no configuration to compare with")?.plan.clone();
    let name = kind.name();
    let mut ratio = Vec::new();
    let mut ended = String::new();
    for _ in 0..arguments.rounds {
        let fixed = scene.plan_window(&best, SETTLE_S, arguments.seconds)?.throughput();
        scene.policy("profile", "throughput", profiles.to_str())?;
        scene.sleep(arguments.settle.min(3.0))?;
        let policy = scene.policy_window(arguments.seconds)?;
        scene.fixed()?;
        ratio.push(policy.throughput() / fixed.max(1e-9));
        ended = policy.states.last().map(|(plan, ..)| plan.to_string()).unwrap_or_default();
    }
    drop(load);
    report.note(format!("profile, {name}: best fixed {best}; the policy ended with {ended}"));
    report.add(
        Figure::new(format!("profile, {name}: throughput to the best fixed"), "ratio", ratio)
            .aim(Aim::AtLeast(0.95)),
    );
    Ok(())
}
