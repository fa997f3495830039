//! How results are printed.

use crate::samples::Samples;
use serde_json::{Value, json};

/// One line of a report.
pub struct Line {
    pub what: String,
    pub value: Samples,
    pub unit: &'static str,
    /// What it is compared with, and that one's samples.
    pub baseline: Option<(&'static str, Samples)>,
}

/// Prints a report as a table or as JSON.
pub fn print(name: &str, lines: &[Line], as_json: bool) {
    if as_json {
        let all: Vec<Value> = lines.iter().map(to_json).collect();
        println!("{}", json!({ "bench": name, "results": all }));
        return;
    }
    let rows: Vec<Vec<String>> = lines.iter().map(to_row).collect();
    crate::commands::print_table(
        &["WHAT", "MEDIAN", "UNIT", "MIN", "MAX", "BASELINE", "ITS MEDIAN", "RATIO"],
        &rows,
    );
}

fn number(v: f64) -> String {
    match v.abs() {
        a if a >= 100.0 => format!("{v:.0}"),
        a if a >= 10.0 => format!("{v:.1}"),
        a if a >= 0.1 => format!("{v:.3}"),
        _ => format!("{v:.5}"),
    }
}

fn to_row(line: &Line) -> Vec<String> {
    let v = &line.value;
    let (name, median, ratio) = match &line.baseline {
        Some((name, b)) => (name.to_string(), number(b.median), number(v.median / b.median)),
        None => ("-".into(), "-".into(), "-".into()),
    };
    vec![
        line.what.clone(),
        number(v.median),
        line.unit.into(),
        number(v.low),
        number(v.high),
        name,
        median,
        ratio,
    ]
}

fn to_json(line: &Line) -> Value {
    let samples = |s: &Samples| json!({ "median": s.median, "samples": s.samples });
    let mut value = json!({ "what": line.what, "unit": line.unit, "value": samples(&line.value) });
    if let Some((name, b)) = &line.baseline {
        value["baseline"] = json!(name);
        value["baseline_value"] = samples(b);
        value["ratio"] = json!(line.value.median / b.median);
    }
    value
}
