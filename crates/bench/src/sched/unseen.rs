//! `profile` on random loads that were not in its sweep, beside the best configuration of all.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use eft_base::Random;
use eft_cores::profile::{Outcome, Profiles};

use super::judge::relative;
use super::loads::{Kind, Load, Places};
use super::scene::Scene;
use super::{Report, SchedArguments, candidates, search};
use crate::figure::{Aim, Figure};
use crate::{SWEEP_ROUNDS, store};

/// The loads with which it is trained.
const SWEPT: [Kind; 4] = [Kind::Bulk, Kind::BulkIn, Kind::Requests, Kind::LoneRequests];
const SETTLE_S: f64 = 0.3;
/// How long a swept configuration is watched.
const SWEPT_TIME: Duration = Duration::from_millis(250);

pub fn run(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report) -> Result<()> {
    let mut random = Random::new(arguments.seed);
    let all_places = arguments.places(&scene.cpus)?;
    let file = std::env::temp_dir().join(format!("eft-bench-profiles-{}.toml", std::process::id()));
    for _ in 0..arguments.drawn {
        let places = all_places[random.below(all_places.len() as u64) as usize];
        let load = drawn(&mut random);
        let profiles = sweep(scene, places)?;
        store::write(&file, &profiles, scene.ground.machine())?;
        let met = meet(scene, arguments, report, &load, places, &file);
        let _ = std::fs::remove_file(&file);
        met?;
    }
    Ok(())
}

/// One that is not swept.
fn drawn(random: &mut Random) -> Load {
    loop {
        let load = Load::drawn(random);
        if !SWEPT.into_iter().any(|kind| Load::named(kind) == load) {
            return load;
        }
    }
}

/// As `eft profile sweep` does it, with the policy's own sensors.
fn sweep(scene: &mut Scene, places: Places) -> Result<Profiles> {
    let plans = candidates::seatings(scene.components(), &scene.cpus);
    let mut profiles = Profiles::default();
    for load in SWEPT.map(Load::named) {
        let _running = scene.load(&load, places)?;
        scene.sleep(0.5)?;
        for _ in 0..SWEEP_ROUNDS {
            for plan in &plans {
                scene.ground.apply(plan)?;
                scene.sleep(0.12)?;
                let seen = scene.watch.window(&scene.end, &scene.ground.platform, plan, SWEPT_TIME)?;
                let outcome = Outcome {
                    throughput: seen.throughput,
                    power: seen.power,
                    modelled: true,
                    plan: plan.clone(),
                    ..Outcome::default()
                };
                profiles.record(&load.to_string(), seen.mix, outcome);
            }
        }
    }
    Ok(profiles)
}

fn meet(
    scene: &mut Scene,
    arguments: &SchedArguments,
    report: &mut Report,
    load: &Load,
    places: Places,
    profiles: &Path,
) -> Result<()> {
    let name = format!("profile, {load}, {places} (seed {})", arguments.seed);
    let running = scene.load(load, places)?;
    scene.sleep(0.5)?;
    let tried = search::fastest(scene, &running)?;
    let best = tried.first().context("there is no configuration to compare with")?.plan.clone();
    let rivals = candidates::trivial(scene.components(), &scene.cpus);
    let mut ratio = Vec::new();
    let mut rival_ratios: Vec<Vec<f64>> = vec![Vec::new(); rivals.len()];
    let mut ended = String::new();
    for _ in 0..arguments.rounds {
        let fixed = scene.plan_window(&running, &best, SETTLE_S, arguments.seconds)?.work_per_s();
        for ((_, plan), ratios) in rivals.iter().zip(&mut rival_ratios) {
            let work = scene.plan_window(&running, plan, SETTLE_S, arguments.seconds)?.work_per_s();
            ratios.push(relative(&work, &fixed));
        }
        scene.policy("profile", "throughput", profiles.to_str())?;
        scene.sleep(arguments.settle.min(3.0))?;
        let policy = scene.policy_window(&running, arguments.seconds)?;
        scene.fixed()?;
        ratio.push(relative(&policy.work_per_s(), &fixed));
        ended = policy.plan().to_string();
    }
    drop(running);
    report.note(format!("{name}: best fixed {best}; the policy ended with {ended}"));
    report.add(
        Figure::new(format!("{name}: throughput to the best fixed"), "ratio", ratio).aim(Aim::AtLeast(0.95)),
    );
    for ((rival, _), ratios) in rivals.iter().zip(rival_ratios) {
        report.add(Figure::new(format!("{name}: {rival}, to the best fixed"), "ratio", ratios));
    }
    Ok(())
}
