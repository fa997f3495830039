//! `eft-sim sweep`: every setting of the cores' clocks, into a file of lines that a later run goes on with.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use eft_sim::sweep::{Job, Load, Sweep, calibration, jobs};
use eft_sim::web::calibrated::Stack;

use super::drawn::draws;
use super::machine::MachineArguments;
use super::print;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum System {
    Newtos,
    Eft,
}

#[derive(Args)]
pub struct SweepArguments {
    #[command(flatten)]
    machine: MachineArguments,
    /// Where to write: a line of JSON for each run; runs that it has are not made again
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// bulk, or web:BYTES for a web server with files of so many bytes
    #[arg(long, default_value = "bulk")]
    load: Load,
    #[arg(long, value_enum, default_value = "newtos")]
    stack: System,
    /// Draws of the parameters that were assumed, beside the nominal ones
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1000))]
    draws: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// All CPUs if 0
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=128))]
    threads: u8,
    /// Only part K of N of the runs
    #[arg(long, value_name = "K/N", value_parser = part)]
    part: Option<Part>,
    /// Print N commands, one a part with a file of its own, and run nothing: for GNU parallel, or Slurm's array jobs
    #[arg(long, value_name = "N", conflicts_with = "part",
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    list: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    number: u64,
    of: u64,
}

fn part(text: &str) -> Result<Part> {
    let both = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match both {
        Some((number, of)) if (1..=of).contains(&number) => Ok(Part { number, of }),
        _ => bail!("K/N with K from 1 to N"),
    }
}

pub fn run(arguments: &SweepArguments) -> Result<()> {
    if let Some(count) = arguments.list {
        return list(arguments, count);
    }
    let nominal = arguments.machine.e5520()?;
    let stack = if arguments.stack == System::Eft { Stack::Eft } else { Stack::Newtos };
    let sweep = Sweep { stack, load: arguments.load, seed: arguments.seed };
    let done = done(&arguments.out)?;
    let Part { number, of } = arguments.part.unwrap_or(Part { number: 1, of: 1 });
    let mine = jobs(arguments.draws).into_iter().enumerate().filter(|(i, _)| *i as u64 % of == number - 1);
    let left: Vec<Job> = mine.map(|(_, job)| job).filter(|job| !done.contains(&sweep.name(job))).collect();
    let mut wanted: Vec<u64> = left.iter().map(|job| job.draw).collect();
    wanted.dedup();
    let file = OpenOptions::new().create(true).append(true).open(&arguments.out);
    let file = file.map_err(|error| anyhow!("{} cannot be written ({error})", arguments.out.display()))?;
    let progress = Mutex::new(Progress::new(file, left.len()));
    for draw in wanted {
        let calibration = calibration(&nominal, arguments.seed, draw)?;
        let these: Vec<&Job> = left.iter().filter(|job| job.draw == draw).collect();
        draws(these.len() as u64, threads(arguments.threads), |i| {
            let line = sweep.run(&calibration, these[i as usize])?;
            let line = serde_json::to_string(&line)?;
            progress.lock().map_err(|_| anyhow!("a thread of the sweep failed"))?.write(&line)
        })?;
    }
    eprintln!("{} runs made, {} were there", left.len(), done.len());
    Ok(())
}

fn threads(asked: u8) -> u8 {
    let all = || std::thread::available_parallelism().map_or(1, |count| count.get().min(128) as u8);
    if asked == 0 { all() } else { asked }
}

/// Names of the runs that a file has. A last line without an end is of a run that was cut off; it is taken away.
fn done(path: &Path) -> Result<BTreeSet<String>> {
    let wrong = |error: &dyn std::fmt::Display| anyhow!("{} cannot be read ({error})", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(wrong(&error)),
    };
    let (mut names, mut whole, mut number) = (BTreeSet::new(), 0, 0);
    let (mut reader, mut line) = (BufReader::new(file), String::new());
    while reader.read_line(&mut line).map_err(|error| wrong(&error))? > 0 {
        number += 1;
        if !line.ends_with('\n') {
            let file = OpenOptions::new().write(true).open(path);
            file.and_then(|file| file.set_len(whole)).map_err(|error| wrong(&error))?;
            break;
        }
        let value: Option<serde_json::Value> = serde_json::from_str(&line).ok();
        let name = value.as_ref().and_then(|value| value["job"].as_str());
        let name = name.ok_or_else(|| wrong(&format!("line {number} is not of a sweep")))?;
        names.insert(name.to_string());
        whole += line.len() as u64;
        line.clear();
    }
    Ok(names)
}

/// Writes lines, and says from time to time how many.
struct Progress {
    file: File,
    all: usize,
    made: usize,
    said: Instant,
}

const SAY: Duration = Duration::from_secs(2);

impl Progress {
    fn new(file: File, all: usize) -> Self {
        Self { file, all, made: 0, said: Instant::now() }
    }

    fn write(&mut self, line: &str) -> Result<()> {
        self.file
            .write_all(format!("{line}\n").as_bytes())
            .map_err(|error| anyhow!("the sweep's file cannot be written ({error})"))?;
        self.made += 1;
        if self.said.elapsed() >= SAY {
            self.said = Instant::now();
            eprintln!("{} of {} runs", self.made, self.all);
        }
        Ok(())
    }
}

fn list(arguments: &SweepArguments, count: u64) -> Result<()> {
    let stack = if arguments.stack == System::Eft { "eft" } else { "newtos" };
    let path = arguments.out.display().to_string();
    let machine = arguments.machine.file().map(|file| file.display().to_string());
    let machine = machine.map_or(String::new(), |file| format!(" --calibration {}", quoted(&file)));
    let lines = (1..=count).map(|number| {
        format!(
            "eft sim sweep --stack {stack} --load {} --draws {} --seed {} --threads 1 --part {number}/{count}{machine} --out {}\n",
            arguments.load,
            arguments.draws,
            arguments.seed,
            quoted(&format!("{path}.{number}")),
        )
    });
    print(&lines.collect::<String>())
}

/// For a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if text.chars().all(is_plain) { text.into() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests;
