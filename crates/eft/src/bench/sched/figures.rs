//! Medians with their intervals, and whether a bar is reached.

use serde_json::{Value, json};

use crate::commands::print_table;
use crate::samples::Samples;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

impl Bar {
    fn holds(self, value: f64) -> bool {
        match self {
            Bar::AtMost(most) => value <= most,
            Bar::AtLeast(least) => value >= least,
        }
    }

    fn text(self) -> String {
        match self {
            Bar::AtMost(most) => format!("at most {most}"),
            Bar::AtLeast(least) => format!("at least {least}"),
        }
    }
}

/// One figure of the report.
pub struct Figure {
    pub what: String,
    pub unit: &'static str,
    pub samples: Vec<f64>,
    pub bar: Option<Bar>,
}

impl Figure {
    pub fn new(what: impl Into<String>, unit: &'static str, samples: Vec<f64>) -> Figure {
        Figure { what: what.into(), unit, samples, bar: None }
    }

    pub fn bar(mut self, bar: Bar) -> Figure {
        self.bar = Some(bar);
        self
    }

    /// The whole interval says yes or no, or only the median does.
    fn verdict(&self) -> &'static str {
        let Some(bar) = self.bar else { return "-" };
        let (interval, median) = (Interval::of(&self.samples), Samples::new(self.samples.clone()).median);
        match (bar.holds(median), bar.holds(interval.low), bar.holds(interval.high)) {
            (true, true, true) => "yes",
            (true, ..) => "by the median",
            (false, false, false) => "no",
            (false, ..) => "not by the median",
        }
    }
}

/// Of the median, without an assumption about the distribution: between two of the ordered samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// With fewer than six samples even the smallest and the largest cover less than 95%.
    pub coverage: f64,
}

impl Interval {
    pub fn of(samples: &[f64]) -> Interval {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let count = sorted.len();
        let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
            return Interval { low: 0.0, high: 0.0, coverage: 0.0 };
        };
        // A median lies outside of the k-th from each end with the chance of fewer than k heads in `count` throws.
        let mut interval = Interval { low: *first, high: *last, coverage: coverage(count, 1) };
        let mut k = 2;
        while 2 * k <= count && coverage(count, k) >= 0.95 {
            interval = Interval { low: sorted[k - 1], high: sorted[count - k], coverage: coverage(count, k) };
            k += 1;
        }
        interval
    }
}

fn coverage(count: usize, k: usize) -> f64 {
    let mut heads = 0.5f64.powi(count.min(1000) as i32);
    let mut fewer = 0.0;
    for i in 0..k {
        fewer += heads;
        heads *= (count - i) as f64 / (i + 1) as f64;
    }
    1.0 - 2.0 * fewer
}

pub fn print(figures: &[Figure], notes: &[String], as_json: bool) {
    if as_json {
        let all: Vec<Value> = figures.iter().map(to_json).collect();
        println!("{}", json!({ "bench": "sched", "results": all, "notes": notes }));
        return;
    }
    let rows: Vec<Vec<String>> = figures.iter().map(row).collect();
    print_table(&["WHAT", "MEDIAN", "95% INTERVAL", "UNIT", "SAMPLES", "BAR", "REACHED"], &rows);
    notes.iter().for_each(|note| println!("{note}"));
}

fn to_json(figure: &Figure) -> Value {
    let interval = Interval::of(&figure.samples);
    json!({
        "what": figure.what, "unit": figure.unit, "median": Samples::new(figure.samples.clone()).median,
        "low": interval.low, "high": interval.high, "coverage": interval.coverage,
        "samples": figure.samples, "bar": figure.bar.map(Bar::text), "reached": figure.verdict(),
    })
}

fn row(figure: &Figure) -> Vec<String> {
    let interval = Interval::of(&figure.samples);
    let short = if interval.coverage < 0.95 {
        format!(" ({:.0}%)", interval.coverage * 100.0)
    } else {
        String::new()
    };
    vec![
        figure.what.clone(),
        number(Samples::new(figure.samples.clone()).median),
        format!("{} to {}{short}", number(interval.low), number(interval.high)),
        figure.unit.into(),
        figure.samples.len().to_string(),
        figure.bar.map_or("-".into(), Bar::text),
        figure.verdict().into(),
    ]
}

fn number(v: f64) -> String {
    match v.abs() {
        a if a >= 100.0 => format!("{v:.0}"),
        a if a >= 10.0 => format!("{v:.1}"),
        _ => format!("{v:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_the_median_are_those_of_the_tables() {
        let samples = |count: usize| (1..=count).rev().map(|i| i as f64).collect::<Vec<_>>();
        let of = |count| {
            let i = Interval::of(&samples(count));
            (i.low, i.high, (i.coverage * 1000.0).round() / 1000.0)
        };
        // Order statistics after Conover, table A3.
        assert_eq!(of(5), (1.0, 5.0, 0.938));
        assert_eq!(of(6), (1.0, 6.0, 0.969));
        assert_eq!(of(9), (2.0, 8.0, 0.961));
        assert_eq!(of(20), (6.0, 15.0, 0.959));
        assert_eq!(of(1), (1.0, 1.0, 0.0));
        assert_eq!(Interval::of(&[]).coverage, 0.0);
    }

    #[test]
    fn a_verdict_says_how_sure_it_is() {
        let of = |samples: &[f64], bar| Figure::new("", "", samples.to_vec()).bar(bar).verdict();
        assert_eq!(of(&[0.8, 0.9, 0.85], Bar::AtMost(1.0)), "yes");
        assert_eq!(of(&[0.8, 0.9, 1.85], Bar::AtMost(1.0)), "by the median");
        assert_eq!(of(&[0.8, 1.9, 1.85], Bar::AtMost(1.0)), "not by the median");
        assert_eq!(of(&[1.8, 1.9, 1.85], Bar::AtMost(1.0)), "no");
        assert_eq!(of(&[1.8, 1.9, 1.85], Bar::AtLeast(1.0)), "yes");
        assert_eq!(Figure::new("", "", vec![1.0]).verdict(), "-");
    }
}
