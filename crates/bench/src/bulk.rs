//! `eft bench bulk`: one connection at full speed, each direction.

use super::Common;
use super::figure::{Aim, Figure};
use super::report::print;
use super::stack::{FAR, HOST, Kernels, NEAR, STACK, Serving, Stack, host_peer};
use super::stolen::Stolen;
use anyhow::{Result, bail};
use std::process::Command;

#[derive(clap::Args)]
pub struct BulkArguments {
    #[command(flatten)]
    common: Common,
    /// Seconds of each round
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
}

pub fn run(arguments: &BulkArguments) -> Result<()> {
    let common = &arguments.common;
    let stolen = Stolen::begin(None);
    let stack = Stack::start(common.topology.as_deref())?;
    let kernels = Kernels::start()?;
    let seconds = arguments.seconds.to_string();
    let to = |host: &str, port: u16| format!("{host}:{port}");
    let host_sink = Serving::start(host_peer(&["sink", &to(HOST, 5201)])?)?;
    let stack_sink = Serving::start(stack.peer(&["sink", &to(STACK, 5201)])?)?;
    let near_sink = Serving::start(host_peer(&["sink", &to(NEAR, 5202)])?)?;
    let far_sink = Serving::start(kernels.peer(&["sink", &to(FAR, 5201)])?)?;
    let mut sinks = [host_sink, near_sink, stack_sink, far_sink];
    let mut rates: [Vec<f64>; 4] = Default::default();
    for _ in 0..common.rounds {
        let sources: [Command; 4] = [
            stack.peer(&["source", &to(HOST, 5201), &seconds])?,
            kernels.peer(&["source", &to(NEAR, 5202), &seconds])?,
            host_peer(&["source", &to(STACK, 5201), &seconds])?,
            host_peer(&["source", &to(FAR, 5201), &seconds])?,
        ];
        for (i, mut source) in sources.into_iter().enumerate() {
            let ran = source.status()?;
            if !ran.success() {
                bail!("a source failed");
            }
            rates[i].push(rate(&sinks[i].line()?)?);
        }
    }
    let [out, near, inn, far] = rates;
    let baseline = "two kernels over veth";
    let figures = [
        Figure::new("bulk, stack to Linux", "Gb/s", out).beside(baseline, near).aim(Aim::AtLeast(1.0)),
        Figure::new("bulk, Linux to stack", "Gb/s", inn).beside(baseline, far).aim(Aim::AtLeast(0.7)),
    ];
    print("bulk", &figures, &[stolen.describe()], common.json)
}

/// A sink's line, as gigabits a second.
pub fn rate(line: &str) -> Result<f64> {
    let mut words = line.split(' ').map(str::parse::<f64>);
    match (words.next(), words.next()) {
        (Some(Ok(bytes)), Some(Ok(seconds))) if seconds > 0.0 => Ok(bytes * 8e-9 / seconds),
        _ => bail!("a sink said `{line}`"),
    }
}
