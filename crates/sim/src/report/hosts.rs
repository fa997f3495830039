//! `eft-sim hosts`: policies on hosts of today, against the best static pinning.

use anyhow::{Result, bail};
use clap::Args;
use eft_sim::asymmetric::hosts::{self, HostOfToday, Result as OneRun, largest_slowdown};
use eft_vcpu::options::{BOUND, Policy};
use serde_json::json;

use super::print;

#[derive(Args)]
pub struct HostsArguments {
    /// Seconds that a program takes under amp-fair
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(5..=600))]
    seconds: u64,
    /// Initial placements
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=100))]
    placements: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long)]
    json: bool,
}

/// The share that a policy should reach of the best static pinning's result, which knows all in advance.
const AIM: f64 = 0.95;
const BOUND_PERCENT: f64 = BOUND.0 as f64 / 10_000.0;

/// One way on one host, over all placements.
struct Row {
    way: String,
    /// Over `amp-fair`, the median.
    mean: f64,
    /// Of the VM that loses most in the mean over placements, and the median of what one VM loses most in a single run.
    slowdown: f64,
    slowdown_of_a_run: f64,
    cache_moves_per_s: f64,
}

pub fn run(arguments: &HostsArguments) -> Result<()> {
    let all: Vec<(HostOfToday, Vec<Row>)> = hosts::hosts()
        .into_iter()
        .map(|host| {
            let rows = rows(&host, arguments)?;
            Ok((host, rows))
        })
        .collect::<Result<_>>()?;
    if arguments.json {
        let row = |r: &Row| {
            json!({ "way": r.way, "mean_over_amp_fair": r.mean, "largest_slowdown_percent": r.slowdown,
                    "largest_slowdown_of_a_run_percent": r.slowdown_of_a_run, "cache_moves_per_s": r.cache_moves_per_s })
        };
        let host = |(host, rows): &(HostOfToday, Vec<Row>)| json!({ "host": host.name, "ways": rows.iter().map(row).collect::<Vec<_>>() });
        let all = json!({ "hosts": all.iter().map(host).collect::<Vec<_>>() });
        print(&(serde_json::to_string_pretty(&all)? + "\n"))?;
    } else {
        print(&eft_text::columns(&text(&all)))?;
    }
    check(&all)
}

fn rows(host: &HostOfToday, arguments: &HostsArguments) -> Result<Vec<Row>> {
    let runs = (0..arguments.placements)
        .map(|i| hosts::compare(host, arguments.seconds, arguments.seed + i))
        .collect::<Result<Vec<_>, _>>()?;
    let median = |way: usize, of: fn(&OneRun) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(|run| of(&run[way])).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let mean_of = |way: usize, vm: usize| {
        runs.iter().map(|run| run[way].speed_ups[vm]).sum::<f64>() / runs.len() as f64
    };
    let row = |way: usize| {
        let means: Vec<f64> = (0..host.vms.len()).map(|vm| mean_of(way, vm)).collect();
        Row {
            way: runs[0][way].way.clone(),
            mean: median(way, OneRun::mean),
            slowdown: largest_slowdown(&means),
            slowdown_of_a_run: median(way, OneRun::slowdown),
            cache_moves_per_s: median(way, |r| r.cache_moves_per_s),
        }
    };
    Ok((0..runs[0].len()).map(row).collect())
}

fn best(rows: &[Row]) -> f64 {
    rows.last().map_or(1.0, |row| row.mean)
}

fn text(all: &[(HostOfToday, Vec<Row>)]) -> Vec<Vec<String>> {
    let head = ["HOST", "WAY", "OVER AMP-FAIR", "OF BEST STATIC", "SLOWDOWN", "OF A RUN", "CACHE MOVES/S"];
    let mut lines = vec![head.map(String::from).to_vec()];
    for (host, rows) in all {
        lines.extend(rows.iter().map(|row| {
            vec![
                host.name.into(),
                row.way.clone(),
                format!("{:.3}", row.mean),
                format!("{:.1}%", row.mean / best(rows) * 100.0),
                format!("{:.1}%", row.slowdown),
                format!("{:.1}%", row.slowdown_of_a_run),
                format!("{:.1}", row.cache_moves_per_s),
            ]
        }));
    }
    lines
}

fn check(all: &[(HostOfToday, Vec<Row>)]) -> Result<()> {
    let adaptive = Policy::AdaptiveFair(BOUND).to_string();
    let of = |rows: &[Row], way: &str| rows.iter().position(|row| row.way == way);
    let missed = all.iter().flat_map(|(host, rows)| {
        let part = of(rows, "amp-vm").map_or(1.0, |way| rows[way].mean / best(rows));
        let lost = of(rows, &adaptive).map_or(0.0, |way| rows[way].slowdown);
        let (aim, name) = (AIM * 100.0, host.name);
        let low = (part < AIM).then(|| {
            format!("{name}: amp-vm does {:.1}% of the best static pinning (aim {aim:.0}%)", part * 100.0)
        });
        let unfair = (lost > BOUND_PERCENT).then(|| {
            format!("{name}: a VM loses {lost:.1}% under adaptive-fair (bound {BOUND_PERCENT:.0}%)")
        });
        [low, unfair]
    });
    let missed: Vec<String> = missed.flatten().collect();
    if missed.is_empty() { Ok(()) } else { bail!(missed.join("; ")) }
}
