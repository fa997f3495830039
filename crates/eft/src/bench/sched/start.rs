//! A bulk transfer that begins on the resting stack: how soon it gets 90% of what the best fixed configuration gives.

use std::time::{Duration, Instant};

use eft_cores::plan::Plan;
use eft_cores::policy::Objective;

use super::loads::Kind;
use super::scene::Scene;
use super::{Report, SchedArguments, search};
use crate::bench::figure::{Aim, Figure};

/// The rate is that of so long a while.
const WHILE_S: f64 = 0.05;
const SHARE: f64 = 0.9;
/// How long the begin of a transfer is watched.
const WATCHED: Duration = Duration::from_secs(3);
/// From here on a transfer on a fixed configuration counts as being at full throughput.
const STEADY_S: f64 = 0.5;

pub fn run(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report) -> Result<(), String> {
    let best = best(scene)?;
    report.note(format!("start: best fixed configuration {best}"));
    let mut reasons = String::new();
    let (mut policy, mut fixed, mut level) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        scene.ground.apply(&best)?;
        let series = transfer(scene)?;
        let full = steady(&series);
        fixed.push(time_to(&series, SHARE * full).unwrap_or(WATCHED.as_secs_f64()) * 1e3);
        scene.policy("adaptive", "throughput", None)?;
        // Until it rests again.
        scene.sleep(1.5)?;
        let series = transfer(scene)?;
        policy.push(time_to(&series, SHARE * full).unwrap_or(WATCHED.as_secs_f64()) * 1e3);
        level.push(steady(&series) / full);
        reasons = scene.reasons(6)?;
        scene.fixed()?;
    }
    report.note(format!("start: the policy's last decisions: {reasons}"));
    report.add(
        Figure::new("start: bulk on the resting stack to 90% of the best fixed", "ms", policy)
            .aim(Aim::AtMost(300.0)),
    );
    report.add(Figure::new("start: the best fixed configuration itself to its 90%", "ms", fixed));
    report.add(Figure::new("start: throughput from 0.5 to 3 s, to that of the best fixed", "ratio", level));
    Ok(())
}

/// The best for bulk at full speed.
pub fn best(scene: &mut Scene) -> Result<Plan, String> {
    let load = scene.load(Kind::Bulk)?;
    scene.sleep(0.5)?;
    let plans = scene.at_full_speed();
    let tried = search::try_all(scene, &plans, 1)?;
    let finals = search::finals(scene, &tried, Objective::Throughput)?;
    drop(load);
    finals.first().map(|best| best.plan.clone()).ok_or("there is no configuration to compare with".into())
}

/// Bytes sent and when, from the first byte on.
fn transfer(scene: &mut Scene) -> Result<Vec<(f64, u64)>, String> {
    let sent = |scene: &mut Scene| {
        let sample = scene.watch.sample();
        sample.components.iter().map(|c| c.traffic.sent_bytes).sum::<u64>()
    };
    scene.watch.refresh()?;
    let before = sent(scene);
    let load = scene.load(Kind::Bulk)?;
    let mut series: Vec<(f64, u64)> = Vec::new();
    let asked = Instant::now();
    let mut begin = asked;
    while begin.elapsed() < WATCHED {
        let now = sent(scene) - before;
        if series.is_empty() && now > 0 {
            begin = Instant::now();
        }
        if now > 0 {
            series.push((begin.elapsed().as_secs_f64(), now));
        } else if asked.elapsed() > WATCHED {
            return Err("the transfer did not begin".into());
        }
        std::thread::sleep(Duration::from_millis(5));
        scene.end.check()?;
    }
    drop(load);
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
mod tests {
    use super::*;

    #[test]
    fn a_rise_is_timed() {
        // 1 a millisecond for 200 ms, then 10.
        let bytes = |ms: u64| if ms < 200 { ms } else { 200 + (ms - 200) * 10 };
        let series: Vec<(f64, u64)> = (0..1000).map(|ms| (ms as f64 / 1e3, bytes(ms))).collect();
        assert!((steady(&series) - 10_000.0).abs() < 1.0);
        let reached = time_to(&series, 9_000.0).unwrap();
        assert!((0.24..=0.25).contains(&reached), "{reached}");
        assert_eq!(time_to(&series, 11_000.0), None);
        assert_eq!((time_to(&[], 1.0), steady(&[])), (None, 0.0));
    }
}
