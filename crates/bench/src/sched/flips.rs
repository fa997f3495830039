//! A load that flips every 100 ms: adaptive beside the better of consolidated and spread.

use anyhow::{Context, Result};
use eft_cores::plan::Plan;

use super::loads::{Kind, Load, Places, Running};
use super::scene::Scene;
use super::{Report, SchedArguments, search};
use crate::figure::{Aim, Figure};

/// In which the policy notices that the load flips.
const NOTICE_S: f64 = 5.0;

pub fn run(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report) -> Result<()> {
    arguments.at_each_place(scene, report, one)
}

fn one(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report, places: Places) -> Result<()> {
    let name = format!("flips, {places}");
    let load = scene.load(&Load::named(Kind::Bursts), places)?;
    scene.sleep(0.5)?;
    let consolidated = fixed_way(scene, &load, true)?;
    let spread = fixed_way(scene, &load, false)?;
    report.note(format!("{name}: consolidated is {consolidated}, spread {spread}"));
    let mut reasons = String::new();
    let (mut ways, mut ratio): ([Vec<f64>; 3], Vec<f64>) = Default::default();
    // Whole periods of the load, and enough of them that half a burst more or less does not matter.
    let seconds = (arguments.seconds.max(3.0) * 5.0).round() / 5.0;
    for _ in 0..arguments.rounds {
        let one = scene.plan_window(&load, &consolidated, 0.4, seconds)?.work_per_s()[0];
        let many = scene.plan_window(&load, &spread, 0.4, seconds)?.work_per_s()[0];
        scene.policy("adaptive", "throughput", None)?;
        scene.sleep(NOTICE_S)?;
        let adaptive = scene.policy_window(&load, seconds)?.work_per_s()[0];
        reasons = scene.reasons(4)?;
        scene.fixed()?;
        ratio.push(adaptive / one.max(many).max(1e-9));
        for (samples, value) in ways.iter_mut().zip([one, many, adaptive]) {
            samples.push(value / 1e6);
        }
    }
    drop(load);
    report.note(format!("{name}: the policy's last decisions: {reasons}"));
    for (way, samples) in ["consolidated", "spread", "adaptive"].iter().zip(ways) {
        report.add(Figure::new(format!("{name}: delivered, {way}"), "Mbyte/s", samples));
    }
    report.add(
        Figure::new(format!("{name}: adaptive to the better of both"), "ratio", ratio).aim(Aim::AtLeast(0.9)),
    );
    Ok(())
}

/// The best of its kind at full speed, under this very load.
fn fixed_way(scene: &mut Scene, load: &Running, consolidated: bool) -> Result<Plan> {
    let tried = search::fastest_of(scene, load, |plan| plan.is_consolidated() == consolidated)?;
    tried.first().map(|best| best.plan.clone()).context("there are not two ways to place the stack")
}
