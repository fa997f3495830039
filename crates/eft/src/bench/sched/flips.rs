//! A load that flips every 100 ms: adaptive beside the better of consolidated and spread.

use eft_cores::plan::Plan;

use super::loads::Kind;
use super::scene::Scene;
use super::{Report, SchedArguments, search};
use crate::bench::figure::{Aim, Figure};

/// In which the policy notices that the load flips.
const NOTICE_S: f64 = 5.0;

pub fn run(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report) -> Result<(), String> {
    let load = scene.load(Kind::Bursts)?;
    scene.sleep(0.5)?;
    let (consolidated, spread) = fixed_ways(scene)?;
    report.note(format!("flips: consolidated is {consolidated}, spread {spread}"));
    let mut reasons = String::new();
    let (mut ways, mut ratio): ([Vec<f64>; 3], Vec<f64>) = Default::default();
    // Whole periods of the load, and enough of them that half a burst more or less does not matter.
    let seconds = (arguments.seconds.max(3.0) * 5.0).round() / 5.0;
    for _ in 0..arguments.rounds {
        let one = scene.plan_window(&consolidated, 0.4, seconds)?.throughput();
        let many = scene.plan_window(&spread, 0.4, seconds)?.throughput();
        scene.policy("adaptive", "throughput", None)?;
        scene.sleep(NOTICE_S)?;
        let adaptive = scene.policy_window(seconds)?.throughput();
        reasons = scene.reasons(4)?;
        scene.fixed()?;
        ratio.push(adaptive / one.max(many).max(1e-9));
        for (samples, value) in ways.iter_mut().zip([one, many, adaptive]) {
            samples.push(value / 1e6);
        }
    }
    drop(load);
    report.note(format!("flips: the policy's last decisions: {reasons}"));
    let names = ["consolidated", "spread", "adaptive"];
    for (name, samples) in names.iter().zip(ways) {
        report.add(Figure::new(format!("flips: delivered, {name}"), "Mbyte/s", samples));
    }
    report.add(
        Figure::new("flips: adaptive to the better of consolidated and spread", "ratio", ratio)
            .aim(Aim::AtLeast(0.9)),
    );
    Ok(())
}

/// At full speed, under this very load.
fn fixed_ways(scene: &mut Scene) -> Result<(Plan, Plan), String> {
    let plans = scene.at_full_speed();
    let tried = search::try_all(scene, &plans, 1)?;
    let best = |consolidated: bool| {
        let of_kind = tried.iter().filter(|t| t.plan.is_consolidated() == consolidated);
        of_kind.max_by(|a, b| a.throughput.total_cmp(&b.throughput)).map(|t| t.plan.clone())
    };
    best(true).zip(best(false)).ok_or("there are not two ways to place the stack".into())
}
