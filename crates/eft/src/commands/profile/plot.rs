//! `eft profile plot`: throughput over power of each configuration, as text or as a picture (SVG).

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use eft_cores::plan::Plan;
use eft_cores::policy::Goal;
use eft_cores::profile::{LoadProfile, Outcome};
use eft_cores::throughput::Throughput;
use eft_machine::Share;
use serde_json::json;

use super::show::{best, best_throughput, find};
use eft_bench::store;

/// Characters of the text plot.
const COLUMNS: usize = 64;
const ROWS: usize = 16;

pub fn run(path: &Path, name: Option<&str>, picture: Option<&Path>, as_json: bool) -> Result<()> {
    let profiles = store::read(path, &store::this_machine()?)?;
    let loads: Vec<&LoadProfile> = match name {
        Some(name) => vec![find(&profiles, name)?],
        None => profiles.loads.iter().collect(),
    };
    if loads.is_empty() {
        bail!("{}: there is nothing to plot", path.display());
    }
    if let Some(picture) = picture {
        std::fs::write(picture, svg(&loads)).with_context(|| picture.display().to_string())?;
    }
    match (as_json, picture) {
        (true, _) => {
            let points = |load: &&LoadProfile| {
                let point = |o: &Outcome| json!([o.power, o.throughput, kind(&o.plan)]);
                json!({ "load": load.name, "power_throughput_kind": load.outcomes.iter().map(point).collect::<Vec<_>>() })
            };
            println!("{}", json!({ "plots": loads.iter().map(points).collect::<Vec<_>>() }));
        }
        (false, Some(picture)) => println!("wrote {}", picture.display()),
        (false, None) => loads.iter().for_each(|load| print!("{}", text(load))),
    }
    Ok(())
}

fn kind(plan: &Plan) -> &'static str {
    if plan.is_consolidated() { "one CPU" } else { "spread" }
}

/// Smallest and largest power, and largest throughput; the ranges are never empty.
fn ranges(load: &LoadProfile) -> (f64, f64, Throughput) {
    let watts = || load.outcomes.iter().map(|o| o.power.0);
    let (low, high) = (watts().fold(f64::INFINITY, f64::min), watts().fold(0.0, f64::max));
    let low = if low.is_finite() { low } else { 0.0 };
    (low, high.max(low + 0.1), best_throughput(load).max(Throughput(1e-9)))
}

fn text(load: &LoadProfile) -> String {
    let (low, high, top) = ranges(load);
    let mut grid = vec![vec![' '; COLUMNS]; ROWS];
    let mut put = |outcome: &Outcome, mark: char| {
        let x = ((outcome.power.0 - low) / (high - low) * (COLUMNS - 1) as f64).round() as usize;
        let y = (outcome.throughput / top * (ROWS - 1) as f64).round() as usize;
        let cell = &mut grid[ROWS - 1 - y.min(ROWS - 1)][x.min(COLUMNS - 1)];
        // The marks of the best configurations are not overwritten.
        if mark == 'P' || mark == 'T' || !matches!(*cell, 'P' | 'T') {
            *cell = mark;
        }
    };
    for outcome in &load.outcomes {
        put(outcome, if outcome.plan.is_consolidated() { '1' } else { 's' });
    }
    let marked = [(Goal::THROUGHPUT, 'T'), (Goal::least_power(Share(0.95)), 'P')];
    let best = marked.map(|(goal, mark)| (best(load, goal), mark));
    best.iter().for_each(|(outcome, mark)| {
        outcome.iter().for_each(|o| put(o, *mark));
    });
    let mut all = format!("{}: Mbyte/s over W\n", load.name);
    for (index, row) in grid.iter().enumerate() {
        let label = top.0 * (ROWS - 1 - index) as f64 / (ROWS - 1) as f64 / 1e6;
        let line: String = row.iter().collect();
        let _ = writeln!(all, "{label:>9.1} |{}", line.trim_end());
    }
    let _ = writeln!(all, "{:>9} +{}", "", "-".repeat(COLUMNS));
    let _ = writeln!(all, "{:>9}  {low:<10.1}{high:>width$.1}", "W", width = COLUMNS - 10);
    let _ = writeln!(all, "1 on one CPU, s spread, T most throughput, P least power at 95% of it");
    for (outcome, mark) in best.iter().filter_map(|(o, mark)| Some(((*o)?, mark))) {
        let _ = writeln!(all, "{mark}: {}", outcome.plan);
    }
    all + "\n"
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 60.0;
const TOP: f64 = 40.0;

/// One diagram below the other.
fn svg(loads: &[&LoadProfile]) -> String {
    let height = HEIGHT * loads.len() as f64;
    let mut all = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (index, load) in loads.iter().enumerate() {
        let _ = writeln!(all, "<g transform=\"translate(0 {})\">", HEIGHT * index as f64);
        diagram(&mut all, load);
        all += "</g>\n";
    }
    all + "</svg>\n"
}

fn diagram(all: &mut String, load: &LoadProfile) {
    let (low, high, top) = ranges(load);
    let x = |watts: f64| LEFT + (watts - low) / (high - low) * (WIDTH - LEFT - 30.0);
    let y = |throughput: Throughput| HEIGHT - BOTTOM - throughput / top * (HEIGHT - BOTTOM - TOP);
    let _ = writeln!(
        all,
        "<text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}: what {} configurations achieve</text>",
        escape(&load.name),
        load.outcomes.len()
    );
    for step in 0..=4 {
        let part = f64::from(step) / 4.0;
        let (watts, throughput) = (low + (high - low) * part, top * part);
        let (at_x, at_y) = (x(watts), y(throughput));
        let right = WIDTH - 30.0;
        let _ = writeln!(
            all,
            "<line x1=\"{LEFT}\" y1=\"{at_y:.1}\" x2=\"{right}\" y2=\"{at_y:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{:.1}</text>\
             <text x=\"{at_x:.1}\" y=\"{}\" text-anchor=\"middle\">{watts:.1}</text>",
            LEFT - 6.0,
            at_y + 4.0,
            throughput.0 / 1e6,
            HEIGHT - BOTTOM + 16.0
        );
    }
    let floor = y(top * 0.95);
    let _ = writeln!(
        all,
        "<line x1=\"{LEFT}\" y1=\"{floor:.1}\" x2=\"{}\" y2=\"{floor:.1}\" stroke=\"#999\" stroke-dasharray=\"4 3\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">W{}</text>\
         <text x=\"{LEFT}\" y=\"{}\" text-anchor=\"end\">Mbyte/s</text>",
        WIDTH - 30.0,
        WIDTH / 2.0,
        HEIGHT - BOTTOM + 32.0,
        if load.outcomes.iter().any(|o| o.modelled) { ", modelled" } else { "" },
        TOP - 6.0
    );
    for outcome in &load.outcomes {
        let colour = if outcome.plan.is_consolidated() { "#c0392b" } else { "#2c6fbb" };
        let _ = writeln!(
            all,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\" fill-opacity=\"0.6\"><title>{}</title></circle>",
            x(outcome.power.0),
            y(outcome.throughput),
            escape(&outcome.plan.to_string())
        );
    }
    for (goal, what) in
        [(Goal::THROUGHPUT, "most throughput"), (Goal::least_power(Share(0.95)), "least power at 95%")]
    {
        let Some(outcome) = best(load, goal) else { continue };
        let _ = writeln!(
            all,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"7\" fill=\"none\" stroke=\"black\"><title>{what}: {}</title></circle>",
            x(outcome.power.0),
            y(outcome.throughput),
            escape(&outcome.plan.to_string())
        );
    }
    let _ = writeln!(
        all,
        "<text x=\"{LEFT}\" y=\"{}\"><tspan fill=\"#c0392b\">● on one CPU</tspan>  <tspan fill=\"#2c6fbb\">● spread</tspan>  \
         ○ most throughput, and least power at 95% of it (dashed)</text>",
        HEIGHT - 8.0
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests;
