//! `eft bench report`: runs benchmarks one after the other and writes one page with their tables and plots.
//!
//! Each result lies beside the page as JSON, so a page can be made of several runs, and again without a run.

mod html;

use crate::stack::exe;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(clap::Args)]
pub struct ReportArguments {
    /// Folder of the page (index.html) and of the results; made if it does not exist
    #[arg(long)]
    out: PathBuf,
    /// Benchmarks to run, in this order
    #[arg(long, value_delimiter = ',', default_values_t = NAMES.map(String::from))]
    only: Vec<String>,
    /// Rounds of each that has rounds, in the place of its own default
    #[arg(long)]
    rounds: Option<usize>,
    /// Run nothing: make the page of the results that are there
    #[arg(long)]
    draw: bool,
}

/// What runs unless told otherwise, and the order on the page: what takes minutes, needs a hypervisor or CPUs that may be
/// taken offline is to be named.
const NAMES: [&str; 9] =
    ["bulk", "latency", "isolation", "beside", "budget", "channel", "idle", "recovery", "scale"];
const MORE: [&str; 7] = ["campaign", "commit", "impaired", "observe", "protection", "sched", "vm"];

pub fn run(arguments: &ReportArguments) -> Result<()> {
    let known = || NAMES.iter().chain(&MORE);
    if let Some(name) = arguments.only.iter().find(|name| !known().any(|known| known == name)) {
        let all: Vec<&str> = known().copied().collect();
        bail!("no benchmark {name} can be in a report; there are {}", all.join(", "));
    }
    let folder = &arguments.out;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    if !arguments.draw {
        for name in &arguments.only {
            measure(folder, name, arguments.rounds)?;
        }
    }
    let results: Vec<Value> = known()
        .filter_map(|name| read(&folder.join(format!("{name}.json"))).transpose())
        .collect::<Result<_>>()?;
    ensure!(!results.is_empty(), "{} holds no results", folder.display());
    let page = folder.join("index.html");
    std::fs::write(&page, html::page(&results)).with_context(|| page.display().to_string())?;
    println!("{}", page.display());
    let missed: Vec<String> = results.iter().flat_map(missed).collect();
    match missed.len() {
        0 => Ok(()),
        count => bail!("{count} aims are missed: {}", missed.join("; ")),
    }
}

/// Runs one and keeps its result. That it misses an aim is a result; that it prints none is an error.
fn measure(folder: &Path, name: &str, rounds: Option<usize>) -> Result<()> {
    eprintln!("{name} …");
    let mut command = Command::new(exe()?);
    command.args(["bench", name, "--json"]);
    // What is counted needs no rounds.
    if let Some(rounds) = rounds.filter(|_| name != "scale") {
        command.args(["--rounds", &rounds.to_string()]);
    }
    let output = command.stderr(Stdio::piped()).output().with_context(|| format!("cannot run {name}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.lines().find(|line| parse(line).is_some());
    let Some(result) = result else {
        bail!("{name} measured nothing: {}", String::from_utf8_lossy(&output.stderr).trim());
    };
    let file = folder.join(format!("{name}.json"));
    std::fs::write(&file, result).with_context(|| file.display().to_string())
}

/// A result that lies in the folder; `None` if there is none.
fn read(file: &Path) -> Result<Option<Value>> {
    match std::fs::read_to_string(file) {
        Ok(text) => match parse(&text) {
            Some(result) => Ok(Some(result)),
            None => bail!("{} is no result of a benchmark: remove it, or run it again", file.display()),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| file.display().to_string()),
    }
}

fn parse(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    (value["bench"].is_string() && value["results"].is_array()).then_some(value)
}

fn missed(result: &Value) -> Vec<String> {
    let bench = result["bench"].as_str().unwrap_or_default();
    let is_missed = |figure: &&Value| matches!(figure["reached"].as_str(), Some("no" | "not by the median"));
    let figures = result["results"].as_array().into_iter().flatten().filter(is_missed);
    figures.map(|figure| format!("{bench}: {}", figure["what"].as_str().unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_results_of_benchmarks_are_read() {
        assert!(parse(r#"{"bench":"bulk","results":[],"notes":[]}"#).is_some());
        for other in ["", "ready", "{}", r#"{"bench":"bulk"}"#, r#"{"bench":1,"results":[]}"#] {
            assert!(parse(other).is_none(), "{other}");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bulk.json");
        assert!(read(&file).unwrap().is_none());
        std::fs::write(&file, "half a resu").unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("no result of a benchmark"));
    }

    #[test]
    fn missed_aims_are_named() {
        let figures = json!([
            { "what": "out", "reached": "no" },
            { "what": "in", "reached": "not by the median" },
            { "what": "both", "reached": "yes" },
            { "what": "shown", "reached": "-" },
        ]);
        assert_eq!(missed(&json!({ "bench": "bulk", "results": figures })), ["bulk: out", "bulk: in"]);
    }
}
