//! `eft profile list`, `show` and `prune`.

use anyhow::{Context, Result};
use eft_machine::Share;
use std::path::Path;

use eft_cores::policy::Goal;
use eft_cores::profile::{LoadProfile, Outcome, Profiles, prune};
use eft_cores::throughput::Throughput;
use serde_json::{Value, json};

use eft_bench::store;
use eft_text::print_table;

pub fn list(path: &Path, as_json: bool) -> Result<()> {
    let profiles = store::read(path, &store::this_machine()?)?;
    if as_json {
        let loads: Vec<Value> = profiles.loads.iter().map(summary).collect();
        println!("{}", json!({ "file": path, "loads": loads }));
        return Ok(());
    }
    let rows: Vec<Vec<String>> = profiles.loads.iter().map(row).collect();
    print_table(&["LOAD", "CONFIGURATIONS", "BEST Mbyte/s", "AT W", "LEAST W AT 95%", "OF"], &rows);
    Ok(())
}

pub fn find<'a>(profiles: &'a Profiles, name: &str) -> Result<&'a LoadProfile> {
    profiles.loads.iter().find(|load| load.name == name).with_context(|| {
        let names: Vec<&str> = profiles.loads.iter().map(|load| load.name.as_str()).collect();
        format!("there is no load `{}`; there are: {}", name.escape_debug(), names.join(", "))
    })
}

pub fn best_throughput(load: &LoadProfile) -> Throughput {
    load.outcomes.iter().map(|outcome| outcome.throughput).fold(Throughput::NONE, Throughput::max)
}

/// The configuration that serves a goal best.
pub fn best(load: &LoadProfile, goal: Goal) -> Option<&Outcome> {
    let top = best_throughput(load).max(Throughput(1e-9));
    let score = |outcome: &Outcome| goal.score(outcome.throughput / top, outcome.power);
    load.outcomes.iter().max_by(|a, b| score(a).total_cmp(&score(b)))
}

fn summary(load: &LoadProfile) -> Value {
    let of = |goal| best(load, goal).map(outcome_json);
    json!({
        "load": load.name, "learnt": load.learnt, "configurations": load.outcomes.len(), "mix": load.mix,
        "best": of(Goal::THROUGHPUT), "least_power": of(Goal::least_power(Share(0.95))),
    })
}

fn outcome_json(outcome: &Outcome) -> Value {
    json!({
        "plan": outcome.plan.to_string(), "throughput": outcome.throughput, "power_w": outcome.power,
        "modelled": outcome.modelled, "latency_us": outcome.latency,
    })
}

fn row(load: &LoadProfile) -> Vec<String> {
    let watts = |goal| best(load, goal).map_or("-".into(), watts);
    let kind = if load.learnt { "seen while running" } else { "a sweep" };
    vec![
        load.name.clone(),
        load.outcomes.len().to_string(),
        format!("{:.1}", best_throughput(load).0 / 1e6),
        watts(Goal::THROUGHPUT),
        watts(Goal::least_power(Share(0.95))),
        kind.into(),
    ]
}

fn watts(outcome: &Outcome) -> String {
    format!("{:.1}{}", outcome.power.0, if outcome.modelled { " modelled" } else { "" })
}

pub fn show(path: &Path, name: &str, as_json: bool) -> Result<()> {
    let profiles = store::read(path, &store::this_machine()?)?;
    let load = find(&profiles, name)?;
    let mut outcomes: Vec<&Outcome> = load.outcomes.iter().collect();
    outcomes.sort_by(|a, b| b.throughput.total_cmp(&a.throughput));
    if as_json {
        let rows: Vec<Value> = outcomes.into_iter().map(outcome_json).collect();
        println!("{}", json!({ "load": load.name, "mix": load.mix, "outcomes": rows }));
        return Ok(());
    }
    let mix = &load.mix;
    println!(
        "mix, each from 0 to 1: segment size {:.2}, empty {:.2}, received {:.2}, connections {:.2}, overhead {:.2}, \
         parallel {:.2}",
        mix.size, mix.empty, mix.received, mix.connections, mix.overhead, mix.parallel
    );
    let top = best_throughput(load).max(Throughput(1e-9));
    let row = |outcome: &&Outcome| {
        vec![
            format!("{:.2}", outcome.throughput.0 / 1e6),
            format!("{:.0}%", outcome.throughput / top * 100.0),
            watts(outcome),
            outcome.latency.map_or("-".into(), |latency| format!("{:.0}", latency.0)),
            outcome.plan.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = outcomes.iter().map(row).collect();
    print_table(&["Mbyte/s", "OF BEST", "W", "LATENCY us", "CONFIGURATION"], &rows);
    Ok(())
}

pub fn prune_file(path: &Path, remove: Option<&str>, as_json: bool) -> Result<()> {
    let machine = store::this_machine()?;
    let mut profiles = store::read(path, &machine)?;
    let (outcomes, loads) = match remove {
        Some(name) => {
            let gone = find(&profiles, name)?.outcomes.len();
            profiles.loads.retain(|load| load.name != name);
            (gone, 1)
        }
        None => prune(&mut profiles),
    };
    if (outcomes, loads) != (0, 0) {
        store::write(path, &profiles, &machine)?;
    }
    let left: usize = profiles.loads.iter().map(|load| load.outcomes.len()).sum();
    if as_json {
        println!("{}", json!({ "removed": { "outcomes": outcomes, "loads": loads }, "left": left }));
    } else {
        println!("removed {outcomes} outcomes and {loads} loads; {left} outcomes are left");
    }
    Ok(())
}
