//! `eft bench scale`: what a segment, a connection and a timer cost tcp beside 10 to 100,000 connections. Instructions are
//! counted by valgrind's callgrind, so that neither noise nor the machine matters: two runs differ in nothing.

mod crowd;
mod picture;
mod probe;

pub use crowd::Crowd;
pub use probe::{ProbeArguments, run as probe};

use crate::figure::{Aim, Figure};
use crate::report::print;
use anyhow::{Context, Result, bail};
use probe::Work;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(clap::Args)]
pub struct ScaleArguments {
    /// Numbers of connections; the first is the one that the others are compared with
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1_000, 10_000, 100_000])]
    connections: Vec<usize>,
    /// Draw the curves (SVG) into this file
    #[arg(long)]
    draw: Option<PathBuf>,
    #[arg(long)]
    json: bool,
}

/// Instructions of a unit of work, to those beside the fewest connections. Flat: within a tenth.
const GROWTH: Aim = Aim::AtMost(1.1);
const BASELINE: &str = "beside the fewest";

pub fn run(arguments: &ScaleArguments) -> Result<()> {
    let numbers = &arguments.connections;
    let [first, others @ ..] = &numbers[..] else { bail!("name at least one number of connections") };
    if let Some(none) = numbers.iter().find(|number| !(1..=100_000).contains(*number)) {
        bail!("{none} connections cannot be: 1 to 100000");
    }
    let directory = tempfile::tempdir().context("no directory for what is counted")?;
    let (mut figures, mut curves) = (Vec::new(), Vec::new());
    for work in Work::ALL {
        let least = count(directory.path(), work, *first)?;
        let mut curve = vec![(*first, least)];
        figures.push(figure(work, *first, least));
        for number in others {
            let instructions = count(directory.path(), work, *number)?;
            curve.push((*number, instructions));
            figures.push(figure(work, *number, instructions).beside(BASELINE, vec![least]).aim(GROWTH));
        }
        curves.push((work.what(), curve));
    }
    if let Some(file) = &arguments.draw {
        std::fs::write(file, picture::draw(&curves)).with_context(|| file.display().to_string())?;
    }
    print("scale", &figures, &[], arguments.json)
}

fn figure(work: Work, connections: usize, instructions: f64) -> Figure {
    Figure::new(format!("{}, {connections} connections", work.what()), "instructions", vec![instructions])
}

/// Instructions of one unit of work.
fn count(directory: &Path, work: Work, connections: usize) -> Result<f64> {
    use clap::ValueEnum;
    let own = std::env::current_exe().context("this program")?;
    let file = directory.join("callgrind.out");
    let kind = work.to_possible_value().context("a kind of work without a name")?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*scale_counted*"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(own)
        .args(["bench", "scale-probe", kind.get_name(), &connections.to_string()])
        .output()
        .context("valgrind cannot be run; install the package valgrind")?;
    if !output.status.success() {
        bail!("counting failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let units: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().context("the probe's answer")?;
    let profile = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    Ok(total(&profile).context("callgrind's file has no total")? / units)
}

/// What callgrind counted in all.
fn total(profile: &str) -> Option<f64> {
    let line = profile.lines().find_map(|line| line.strip_prefix("totals:"))?;
    line.trim().parse().ok().filter(|total| *total > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found_in_callgrinds_file() {
        assert_eq!(total("version: 1\ncreator: callgrind\nfn=(1)\n12 3\n\ntotals: 123456\n"), Some(123456.0));
        assert_eq!(total("totals: 0\n"), None, "nothing was counted");
        assert_eq!(total("fn=(1)"), None);
    }
}
