//! `eft-sim hosts`: policies on hosts of today, against the best static pinning.

use clap::Args;
use eft_sim::asymmetric::hosts::{self, HostOfToday, Result as Row};
use serde_json::json;

#[derive(Args)]
pub struct HostsArguments {
    /// Seconds that a program takes under amp-fair
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(5..=600))]
    seconds: u64,
    /// Initial placements; medians are shown
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    placements: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long)]
    json: bool,
}

/// A policy is to reach this much of what the best static pinning does, which knows all in advance.
const AIM: f64 = 0.95;

pub fn run(arguments: &HostsArguments) -> Result<(), String> {
    let all: Vec<(HostOfToday, Vec<Row>)> = hosts::hosts()
        .into_iter()
        .map(|host| Ok((rows(&host, arguments)?, host)))
        .map(|pair: Result<_, String>| pair.map(|(rows, host)| (host, rows)))
        .collect::<Result<_, String>>()?;
    if arguments.json {
        let row = |r: &Row| {
            json!({ "way": r.way, "mean_over_amp_fair": r.mean, "largest_slowdown_percent": r.slowdown,
                    "cache_moves_per_s": r.cache_moves_per_s })
        };
        let host = |(host, rows): &(HostOfToday, Vec<Row>)| json!({ "host": host.name, "ways": rows.iter().map(row).collect::<Vec<_>>() });
        let all = json!({ "hosts": all.iter().map(host).collect::<Vec<_>>() });
        eft_text::print(&(serde_json::to_string_pretty(&all).map_err(|e| e.to_string())? + "\n"))?;
    } else {
        eft_text::print(&eft_text::columns(&text(&all)))?;
    }
    check(&all)
}

fn rows(host: &HostOfToday, arguments: &HostsArguments) -> Result<Vec<Row>, String> {
    let runs = (0..arguments.placements)
        .map(|i| hosts::compare(host, arguments.seconds, arguments.seed + i))
        .collect::<Result<Vec<_>, String>>()?;
    let median = |way: usize, of: fn(&Row) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(|run| of(&run[way])).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let row = |way: usize| Row {
        way: runs[0][way].way.clone(),
        mean: median(way, |r| r.mean),
        slowdown: median(way, |r| r.slowdown),
        cache_moves_per_s: median(way, |r| r.cache_moves_per_s),
    };
    Ok((0..runs[0].len()).map(row).collect())
}

fn best(rows: &[Row]) -> f64 {
    rows.last().map_or(1.0, |row| row.mean)
}

fn text(all: &[(HostOfToday, Vec<Row>)]) -> Vec<Vec<String>> {
    let head = ["HOST", "WAY", "OVER AMP-FAIR", "OF BEST STATIC", "LARGEST SLOWDOWN", "CACHE MOVES/S"];
    let mut lines = vec![head.map(String::from).to_vec()];
    for (host, rows) in all {
        lines.extend(rows.iter().map(|row| {
            vec![
                host.name.into(),
                row.way.clone(),
                format!("{:.3}", row.mean),
                format!("{:.1}%", row.mean / best(rows) * 100.0),
                format!("{:.1}%", row.slowdown),
                format!("{:.1}", row.cache_moves_per_s),
            ]
        }));
    }
    lines
}

fn check(all: &[(HostOfToday, Vec<Row>)]) -> Result<(), String> {
    let low = |(host, rows): &(HostOfToday, Vec<Row>)| {
        let row = rows.iter().find(|row| row.way == "amp-vm")?;
        let part = row.mean / best(rows);
        (part < AIM).then(|| format!("{}: {:.1}%", host.name, part * 100.0))
    };
    let missed: Vec<String> = all.iter().filter_map(low).collect();
    if missed.is_empty() {
        return Ok(());
    }
    Err(format!(
        "amp-vm does less than {:.0}% of the best static pinning on {}",
        AIM * 100.0,
        missed.join(", ")
    ))
}
