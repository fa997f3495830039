//! `eft bench idle`: what a stack with nothing to do uses.

use super::Common;
use super::figure::{Aim, Figure};
use super::report::print;
use super::stack::Stack;
use super::stolen::Stolen;
use anyhow::Result;
use std::time::Duration;

#[derive(clap::Args)]
pub struct IdleArguments {
    #[command(flatten)]
    common: Common,
    /// Seconds of each round
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
}

pub fn run(arguments: &IdleArguments) -> Result<()> {
    let stolen = Stolen::begin(None);
    let stack = Stack::start(arguments.common.topology.as_deref())?;
    let pids = stack.processes()?;
    // What belongs to the start is over by then.
    std::thread::sleep(Duration::from_secs(1));
    let (mut cpu, mut memory) = (Vec::new(), Vec::new());
    let used =
        || pids.iter().filter_map(|p| eft_host::clock::process_cpu(*p)).sum::<Duration>().as_secs_f64();
    for _ in 0..arguments.common.rounds {
        let before = used();
        std::thread::sleep(Duration::from_secs_f64(arguments.seconds));
        cpu.push((used() - before) / arguments.seconds * 100.0);
        memory.push(pids.iter().map(|p| pss_kib(*p)).sum::<f64>() / 1024.0);
    }
    let figures = [
        Figure::new("CPU time", "% of a core", cpu).aim(Aim::AtMost(1.0)),
        Figure::new("memory (PSS of all processes)", "MiB", memory).aim(Aim::AtMost(200.0)),
    ];
    print("idle", &figures, &[stolen.describe()], arguments.common.json)
}

/// Proportional set size: shared pages are counted once in all.
fn pss_kib(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with("Pss:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0.0)
}
