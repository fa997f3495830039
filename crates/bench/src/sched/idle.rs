//! How soon after the last packet the whole stack rests on one shared core, and what it uses then.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::loads::{Kind, Load};
use super::scene::Scene;
use super::{Report, SchedArguments};
use crate::figure::{Aim, Figure};
use crate::ground::{is_placed, members};

/// Longer than this is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn run(scene: &mut Scene, arguments: &SchedArguments, report: &mut Report) -> Result<()> {
    let (mut rest, mut used, mut without) = (Vec::new(), Vec::new(), Vec::new());
    let places = *arguments.places(&scene.cpus)?.first().context("there is no place for a load")?;
    scene.policy("adaptive", "throughput", None)?;
    for _ in 0..arguments.rounds {
        let load = scene.load(&Load::named(Kind::Bulk), places)?;
        scene.sleep(2.0)?;
        drop(load);
        rest.push(time_to_rest(scene)?);
        scene.sleep(0.5)?;
        let before = cpu_time(scene)?;
        scene.sleep(2.0)?;
        let after = cpu_time(scene)?;
        used.push((after.0 - before.0) / 2.0 * 100.0);
        without.push((after.1 - before.1) / 2.0 * 100.0);
    }
    scene.fixed()?;
    report
        .add(Figure::new("idle: last packet until rest on one shared core", "s", rest).aim(Aim::AtMost(1.0)));
    report.add(Figure::new("idle: CPU time of the whole stack", "% of a core", used).aim(Aim::AtMost(1.0)));
    report.add(Figure::new("idle: of it without cores", "% of a core", without));
    Ok(())
}

/// From the last packet that ip counted until all components share one CPU, and another CPU is given back.
fn time_to_rest(scene: &mut Scene) -> Result<f64> {
    let begin = Instant::now();
    let (mut packets, mut last) = (0, begin);
    loop {
        let sample = scene.watch.sample();
        let now: u64 =
            sample.components.iter().map(|c| c.traffic.ip_received_bytes + c.traffic.ip_sent_bytes).sum();
        if now != packets {
            (packets, last) = (now, Instant::now());
        }
        if rests(scene)? {
            return Ok(last.elapsed().as_secs_f64());
        }
        if begin.elapsed() > PATIENCE {
            bail!("the stack did not come to rest within {} s", PATIENCE.as_secs());
        }
        scene.end.sleep(Duration::from_millis(5))?;
    }
}

fn rests(scene: &Scene) -> Result<bool> {
    let all: Vec<_> = members(&scene.stack.name)?.into_iter().filter(is_placed).collect();
    let first = all.first().and_then(|m| m.cpu);
    if first.is_none() || !all.iter().all(|m| m.cpu == first && !m.alone && !m.moving) {
        return Ok(false);
    }
    let status = scene.status()?;
    let plan = status["state"]["plan"].as_str().unwrap_or_default();
    Ok(status["last"]["outcome"] != "under way" && (plan.contains(" back ") || plan.contains(" parked ")))
}

/// Of all processes of the stack, and of all but `cores`.
fn cpu_time(scene: &Scene) -> Result<(f64, f64)> {
    let answer = crate::ground::ask(&scene.stack.name, serde_json::json!({ "op": "ps" }))?;
    let time = |pid: &serde_json::Value| {
        let pid = pid.as_u64()? as u32;
        eft_host::clock::process_cpu(pid).map(|time| time.as_secs_f64())
    };
    let mut all = time(&answer["pid"]).unwrap_or(0.0);
    let mut cores = 0.0;
    for component in answer["components"].as_array().into_iter().flatten() {
        let used = time(&component["pid"]).unwrap_or(0.0);
        all += used;
        if component["component"] == "cores" {
            cores += used;
        }
    }
    Ok((all, all - cores))
}
