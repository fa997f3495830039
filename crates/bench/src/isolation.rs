//! `eft bench isolation`: speed, and what a crash costs, for each way to put components into processes.

use super::figure::{Aim, Figure};
use super::latency::ask;
use super::report::print;
use super::side::{ECHO, Load, Side};
use super::stack::host_peer;
use super::stolen::Stolen;
use anyhow::{Context, Result, anyhow, bail};
use eft_component::topology::{DEFAULT, EDGE, STACK, WHOLE};
use serde_json::json;
use std::time::Duration;

#[derive(clap::Args)]
pub struct IsolationArguments {
    /// Rounds of each setting and of the kernel, in turn; their medians are compared
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each load
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    #[arg(long)]
    json: bool,
}

/// One way to put components into processes, with its aims beside the kernel, in the order of [`LOADS`]; without, it is shown.
struct Setting {
    name: &'static str,
    topology: &'static str,
    aims: Option<[f64; 4]>,
}

const SETTINGS: [Setting; 4] = [
    Setting { name: "one process each", topology: DEFAULT, aims: Some([0.7, 1.0, 0.7, 0.6]) },
    Setting { name: "edge", topology: EDGE, aims: Some([0.75, 1.0, 0.9, 0.7]) },
    Setting { name: "stack", topology: STACK, aims: Some([0.8, 1.2, 1.0, 0.8]) },
    Setting { name: "whole", topology: WHOLE, aims: None },
];

const LOADS: [(Load, &str, &str); 4] = [
    (Load::In, "bulk in", "Gb/s"),
    (Load::Out, "bulk out", "Gb/s"),
    (Load::Requests(1), "64 B requests, 1 connection", "1/s"),
    (Load::Requests(32), "64 B requests, 32 connections", "1/s"),
];

/// The component that dies under load: each setting has one, and its death takes along whatever shares its process.
const VICTIM: &str = "ip";
/// How long requests go on around a crash, and when it comes.
const CRASH_SECONDS: &str = "1";
const CRASH_AFTER: Duration = Duration::from_millis(400);

/// Kills [`VICTIM`] while a connection sends requests, and says for how many milliseconds the longest one waited. That the
/// connection breaks is an error.
fn crash(side: &Side) -> Result<f64> {
    let Some(stack) = &side.stack else { bail!("a kernel has no component to kill") };
    let client = host_peer(&["ask", &format!("{}:{ECHO}", side.far), "1", CRASH_SECONDS])?;
    let client = std::thread::spawn(move || ask(client));
    std::thread::sleep(CRASH_AFTER);
    let killed = eft_linux::operator::ask(&stack.name, &json!({ "op": "kill", "component": VICTIM }));
    let answered = client.join().map_err(|_| anyhow!("a thread died"))?;
    killed?;
    let [_, _, longest] = answered.with_context(|| format!("a crash of {VICTIM} broke a connection"))?;
    Ok(longest / 1e3)
}

pub fn run(arguments: &IsolationArguments) -> Result<()> {
    let stolen = Stolen::begin(None);
    let mut sides = Vec::new();
    for (number, setting) in SETTINGS.iter().enumerate() {
        sides.push(Side::of_stack(number, setting.topology, &[])?);
    }
    sides.push(Side::of_kernels()?);
    let mut figures = Vec::new();
    for (at, (load, name, unit)) in LOADS.iter().enumerate() {
        let mut rates = vec![Vec::new(); sides.len()];
        for _ in 0..arguments.rounds {
            for (side, rates) in sides.iter_mut().zip(&mut rates) {
                rates.push(side.measure(*load, arguments.seconds)?);
            }
        }
        let kernel = rates.pop().unwrap_or_default();
        for (setting, rates) in SETTINGS.iter().zip(rates) {
            let figure = Figure::new(format!("{}: {name}", setting.name), unit, rates)
                .beside("two kernels over veth", kernel.clone());
            figures.push(match setting.aims {
                Some(aims) => figure.aim(Aim::AtLeast(aims[at])),
                None => figure,
            });
        }
    }
    figures.extend(crashes(&sides, arguments.rounds)?);
    print("isolation", &figures, &[stolen.describe()], arguments.json)
}

/// What a crash costs each setting, beside the one in which no other component dies with it.
fn crashes(sides: &[Side], rounds: usize) -> Result<Vec<Figure>> {
    let mut pauses = vec![Vec::new(); SETTINGS.len()];
    for _ in 0..rounds {
        for (side, pauses) in sides.iter().zip(&mut pauses) {
            pauses.push(crash(side)?);
        }
    }
    let alone = pauses.first().cloned().unwrap_or_default();
    let one = |(setting, pauses): (&Setting, Vec<f64>)| {
        Figure::new(format!("{}: longest request while {VICTIM} dies", setting.name), "ms", pauses)
            .beside("one process each", alone.clone())
    };
    Ok(SETTINGS.iter().zip(pauses).map(one).collect())
}
