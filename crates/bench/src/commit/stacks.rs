//! Two stacks under the same loads in turn, one of which commits no turn.

use super::CommitArguments;
use crate::figure::{Aim, Figure};
use crate::latency::pin_all;
use crate::side::{Load, Side};
use anyhow::{Context, Result};
use eft_component::topology::DEFAULT;

/// The loads, whether everything shares one CPU meanwhile, and what they count.
const LOADS: [(Load, bool, &str, &str); 6] = [
    (Load::Out, false, "bulk out", "Gb/s"),
    (Load::In, false, "bulk in", "Gb/s"),
    (Load::Requests(1), false, "requests, 1 connection", "1/s"),
    (Load::Requests(32), false, "requests, 32 connections", "1/s"),
    // On one CPU nothing runs in parallel: a commit's time is lost to the rest.
    (Load::Requests(1), true, "requests, 1 connection, all on one CPU", "1/s"),
    (Load::Requests(32), true, "requests, 32 connections, all on one CPU", "1/s"),
];

/// What a stack that commits must have of one that does not.
const LEAST: f64 = 0.97;

pub fn run(arguments: &CommitArguments) -> Result<Vec<Figure>> {
    let topology = match &arguments.topology {
        Some(path) => std::fs::read_to_string(path).with_context(|| path.display().to_string())?,
        None => DEFAULT.into(),
    };
    let mut sides = [
        Side::of_stack(0, &topology, &["--commit", "on"])?,
        Side::of_stack(1, &topology, &["--commit", "off"])?,
    ];
    let mut figures = Vec::new();
    for (load, one_cpu, name, unit) in LOADS {
        let stacks = || sides.iter().filter_map(|side| side.stack.as_ref());
        let _pinned = if one_cpu { Some(pin_all(stacks())?) } else { None };
        let mut rates: [Vec<f64>; 2] = Default::default();
        for round in 0..arguments.rounds {
            // Each goes first as often as the other.
            for which in [round % 2, 1 - round % 2] {
                rates[which].push(sides[which].measure(load, arguments.seconds)?);
            }
        }
        let [on, off] = rates;
        figures.push(Figure::new(name, unit, on).beside("without commit", off).aim(Aim::AtLeast(LEAST)));
    }
    Ok(figures)
}
