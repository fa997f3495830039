//! How results are printed, and that a missed aim is a failure.

use super::figure::{Aim, Figure, Interval};
use crate::samples::Samples;
use anyhow::{Result, bail};
use eft_text::print_table;
use serde_json::{Value, json};

/// Prints a report as a table or as JSON. An error names the aims that were missed, after everything is printed.
pub fn print(name: &str, figures: &[Figure], notes: &[String], as_json: bool) -> Result<()> {
    if as_json {
        let all: Vec<Value> = figures.iter().map(to_json).collect();
        println!("{}", json!({ "bench": name, "results": all, "notes": notes }));
    } else {
        let heading = [
            "WHAT",
            "MEDIAN",
            "UNIT",
            "BASELINE",
            "ITS MEDIAN",
            "RATIO",
            "95% INTERVAL",
            "ROUNDS",
            "AIM",
            "REACHED",
        ];
        print_table(&heading, &figures.iter().map(row).collect::<Vec<_>>());
        notes.iter().for_each(|note| println!("{note}"));
    }
    verdict(name, figures)
}

/// An error names the aims that were missed. Without measurements no aim is reached.
pub fn verdict(name: &str, figures: &[Figure]) -> Result<()> {
    if figures.is_empty() {
        bail!("{name} measured nothing");
    }
    let one = |figure: &Figure| {
        let median = number(Samples::new(figure.judged()).median);
        format!("{} ({median}, aim {})", figure.what, figure.aim.map_or(String::new(), Aim::text))
    };
    let missed: Vec<String> = figures.iter().filter(|figure| figure.is_missed()).map(one).collect();
    match missed.len() {
        0 => Ok(()),
        count => bail!("{name} missed {count} of its aims: {}", missed.join("; ")),
    }
}

fn row(figure: &Figure) -> Vec<String> {
    let (baseline, its_median, ratio) = match &figure.baseline {
        Some((name, samples)) => (
            name.to_string(),
            number(Samples::new(samples.clone()).median),
            number(Samples::new(figure.judged()).median),
        ),
        None => ("-".into(), "-".into(), "-".into()),
    };
    let interval = Interval::of(&figure.judged());
    let short = match interval.coverage < 0.95 {
        true => format!(" ({:.0}%)", interval.coverage * 100.0),
        false => String::new(),
    };
    vec![
        figure.what.clone(),
        number(figure.median()),
        figure.unit.into(),
        baseline,
        its_median,
        ratio,
        format!("{} to {}{short}", number(interval.low), number(interval.high)),
        figure.samples.len().to_string(),
        figure.aim.map_or("-".into(), Aim::text),
        figure.verdict().into(),
    ]
}

fn to_json(figure: &Figure) -> Value {
    let interval = Interval::of(&figure.judged());
    let mut value = json!({
        "what": figure.what, "unit": figure.unit, "median": figure.median(), "samples": figure.samples,
        "low": interval.low, "high": interval.high, "coverage": interval.coverage,
        "aim": figure.aim.map(Aim::text), "reached": figure.verdict(),
    });
    if let Some((name, samples)) = &figure.baseline {
        value["baseline"] = json!(name);
        value["baseline_median"] = json!(Samples::new(samples.clone()).median);
        value["baseline_samples"] = json!(samples);
        value["ratio"] = json!(Samples::new(figure.judged()).median);
    }
    value
}

pub fn number(v: f64) -> String {
    match v.abs() {
        a if a >= 100.0 => format!("{v:.0}"),
        a if a >= 10.0 => format!("{v:.1}"),
        a if a >= 0.1 => format!("{v:.3}"),
        _ => format!("{v:.5}"),
    }
}

#[cfg(test)]
mod tests;
