//! `eft bench budget`: what 64 KB of bulk data cost, from the servers' own counters.

use super::Common;
use super::bulk::rate;
use super::figure::{Aim, Figure};
use super::report::print;
use super::stack::{HOST, STACK, Serving, Stack, host_peer};
use super::stolen::Stolen;
use crate::counters::counters;
use anyhow::Result;
use eft_linux::stack_sensor::CounterNames;
use serde_json::{Map, Value};

#[derive(clap::Args)]
pub struct BudgetArguments {
    #[command(flatten)]
    common: Common,
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
}

/// Sum of a counter over the components whose name begins with `component`.
fn sum(all: &Map<String, Value>, component: &str, counter: &str) -> f64 {
    all.iter()
        .filter(|(name, _)| name.starts_with(component))
        .filter_map(|(_, c)| c.get(counter).and_then(Value::as_u64))
        .sum::<u64>() as f64
}

pub fn run(arguments: &BudgetArguments, names: CounterNames) -> Result<()> {
    let common = &arguments.common;
    let stolen = Stolen::begin(None);
    let stack = Stack::start(common.topology.as_deref())?;
    let seconds = arguments.seconds.to_string();
    let (out_address, in_address) = (format!("{HOST}:5201"), format!("{STACK}:5201"));
    let mut sinks = [
        Serving::start(host_peer(&["sink", &out_address])?)?,
        Serving::start(stack.peer(&["sink", &in_address])?)?,
    ];
    let mut rows: [Vec<[f64; 5]>; 2] = Default::default();
    for _ in 0..common.rounds {
        for (i, row) in rows.iter_mut().enumerate() {
            let before = counters(&stack.name, names)?;
            let mut source = match i {
                0 => stack.peer(&["source", &out_address, &seconds])?,
                _ => host_peer(&["source", &in_address, &seconds])?,
            };
            source.status()?;
            let line = sinks[i].line()?;
            let after = counters(&stack.name, names)?;
            row.push(costs(i, &line, &before, &after)?);
        }
    }
    let mut figures = Vec::new();
    let names = [
        ("data frames (device calls)", "per 64 KB", Some(Aim::AtMost(1.25))),
        ("other frames (acknowledgments)", "per 64 KB", None),
        ("wake-ups between servers and of applications", "per 64 KB", Some(Aim::AtMost(0.2))),
        ("calls on applications' descriptors", "per 64 KB", None),
        ("rate", "Gb/s", None),
    ];
    for (direction, row) in ["out", "in"].iter().zip(&rows) {
        for (i, (name, unit, aim)) in names.iter().enumerate() {
            let samples = row.iter().map(|r| r[i]).collect();
            figures.push(Figure { aim: *aim, ..Figure::new(format!("{direction}: {name}"), unit, samples) });
        }
    }
    let copies = "copies of payload outside application and device: out 1 (the program's write into the send ring; the \
                  device gathers from there), in 2 (NIC pool to receive ring, ring to the program's buffer)";
    print("budget", &figures, &[copies.into(), stolen.describe()], common.json)
}

fn costs(
    direction: usize,
    line: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Result<[f64; 5]> {
    let gigabits = rate(line)?;
    let bytes: f64 = line.split(' ').next().and_then(|b| b.parse().ok()).unwrap_or(f64::NAN);
    let units = bytes / 65536.0;
    let delta =
        |component: &str, counter: &str| sum(after, component, counter) - sum(before, component, counter);
    let (data, other) = match direction {
        0 => (delta("nic", "frames_out"), delta("nic", "frames_in")),
        _ => (delta("nic", "frames_in"), delta("nic", "frames_out")),
    };
    let descriptors = delta("", "descriptor_calls");
    let wakes = delta("", "wakes_sent") + descriptors;
    Ok([data / units, other / units, wakes / units, descriptors / units, gigabits])
}
