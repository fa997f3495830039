//! `eft bench protection`: what protection against faults costs as long as there is none: two stacks under the same loads in turn, one
//! of which does without all of it.
//!
//! Beside what a load achieves, the CPU time that the stack takes for each unit of it, which other programs on the machine disturb
//! less.

mod counted;

use crate::figure::{Aim, Figure};
use crate::latency::pin_all;
use crate::report::print;
use crate::side::{Load, Side};
use crate::stack::Stack;
use crate::stolen::Stolen;
use anyhow::{Context, Result};
use eft_component::topology::DEFAULT;
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args)]
pub struct ProtectionArguments {
    /// Rounds; stacks with and without protection take turns
    #[arg(long, default_value_t = 30)]
    rounds: usize,
    /// Seconds of each load
    #[arg(long, default_value_t = 0.4)]
    seconds: f64,
    /// Only loads whose name contains this
    #[arg(long)]
    load: Option<String>,
    /// Replay recordings of the loads of `costs` with and without it instead (needs valgrind): what of it engines do
    #[arg(long)]
    counted: bool,
    #[arg(long)]
    json: bool,
    /// Topology of the stacks under test
    #[arg(long)]
    topology: Option<PathBuf>,
}

/// One of the loads.
struct Way {
    load: Load,
    /// On one CPU nothing runs in parallel: what protection takes is lost to the rest.
    on_one_cpu: bool,
    name: &'static str,
}

const fn way(load: Load, on_one_cpu: bool, name: &'static str) -> Way {
    Way { load, on_one_cpu, name }
}

const WAYS: [Way; 8] = [
    way(Load::Out, false, "bulk out"),
    way(Load::In, false, "bulk in"),
    way(Load::Requests(1), false, "requests, 1 connection"),
    way(Load::Requests(32), false, "requests, 32 connections"),
    way(Load::Out, true, "bulk out, all on one CPU"),
    way(Load::In, true, "bulk in, all on one CPU"),
    way(Load::Requests(1), true, "requests, 1 connection, all on one CPU"),
    way(Load::Requests(32), true, "requests, 32 connections, all on one CPU"),
];

/// What a protected stack must have of one that is not.
const LEAST: f64 = 0.97;
/// What it may take of the other's CPU time.
const MOST: f64 = 1.03;
/// A server that has worked looks at its code for a second, for which it wakes each 20 ms: that would disturb the other stack.
const REST: Duration = Duration::from_millis(1200);
const BASELINE: &str = "without protection";

pub fn run(arguments: &ProtectionArguments) -> Result<()> {
    let stolen = Stolen::begin(None);
    if arguments.counted {
        let wanted = |name: &str| arguments.load.as_ref().is_none_or(|load| name.contains(load.as_str()));
        let figures = counted::figures(arguments.seconds, wanted)?;
        return print("protection", &figures, &[stolen.describe()], arguments.json);
    }
    let topology = match &arguments.topology {
        Some(path) => std::fs::read_to_string(path).with_context(|| path.display().to_string())?,
        None => DEFAULT.into(),
    };
    let mut sides = [Measured::start(0, &topology, "on")?, Measured::start(1, &topology, "off")?];
    let mut figures = Vec::new();
    let wanted = |way: &&Way| arguments.load.as_ref().is_none_or(|load| way.name.contains(load.as_str()));
    for way in WAYS.iter().filter(wanted) {
        figures.extend(compare(&mut sides, way, arguments)?);
    }
    print("protection", &figures, &[stolen.describe()], arguments.json)
}

fn compare(sides: &mut [Measured; 2], way: &Way, arguments: &ProtectionArguments) -> Result<[Figure; 2]> {
    let stacks = || sides.iter().filter_map(|side| side.side.stack.as_ref());
    let _pinned = if way.on_one_cpu { Some(pin_all(stacks())?) } else { None };
    let (mut rates, mut times): ([Vec<f64>; 2], [Vec<f64>; 2]) = Default::default();
    for round in 0..arguments.rounds {
        // Each goes first as often as the other.
        for which in [round % 2, 1 - round % 2] {
            std::thread::sleep(REST);
            let (rate, time) = sides[which].measure(way.load, arguments.seconds)?;
            rates[which].push(rate);
            times[which].push(time);
        }
    }
    let ([on, off], [time_on, time_off]) = (rates, times);
    let (unit, each) = match way.load {
        Load::In | Load::Out => ("Gb/s", "us of 64 KB"),
        Load::Requests(_) => ("1/s", "us of each"),
    };
    Ok([
        Figure::new(way.name, unit, on).beside(BASELINE, off).aim(Aim::AtLeast(LEAST)),
        Figure::new(format!("{}: CPU time of the stack", way.name), each, time_on)
            .beside(BASELINE, time_off)
            .aim(Aim::AtMost(MOST)),
    ])
}

/// A stack of which the processes are known.
struct Measured {
    side: Side,
    processes: Vec<u32>,
}

impl Measured {
    fn start(number: usize, topology: &str, protection: &str) -> Result<Measured> {
        let side = Side::of_stack(number, topology, &["--protection", protection])?;
        let processes = side.stack.as_ref().map(Stack::processes).transpose()?.unwrap_or_default();
        Ok(Measured { side, processes })
    }

    fn cpu_time(&self) -> Duration {
        self.processes.iter().filter_map(|process| eft_host::clock::process_cpu(*process)).sum()
    }

    /// What the load achieves, and the microseconds of CPU time that the stack takes for each unit of it.
    fn measure(&mut self, load: Load, seconds: f64) -> Result<(f64, f64)> {
        let before = self.cpu_time();
        let rate = self.side.measure(load, seconds)?;
        let used = (self.cpu_time() - before).as_secs_f64() * 1e6;
        let units = match load {
            Load::In | Load::Out => rate * 1e9 / 8.0 / 65536.0,
            Load::Requests(_) => rate,
        };
        Ok((rate, used / (units * seconds)))
    }
}
