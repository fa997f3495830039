//! `eft-sim scaling`: how a stack's throughput grows with its instances of tcp, each on a core of its own, and what ends it.

use std::sync::mpsc::channel;

use anyhow::Result;
use clap::Args;
use eft_sim::batch::run::Span;
use eft_sim::batch::servers::TCPS;
use eft_sim::timed::scaling::{Experiment, Load, Outcome, Point};
use serde_json::{Value, json};

use super::machine::MachineArguments;
use super::print;

#[derive(Args)]
pub struct ScalingArguments {
    #[command(flatten)]
    machine: MachineArguments,
    /// The link's rate in each direction, Gb/s
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..=1600))]
    link: u64,
    /// Buffers of the driver for frames that it receives, as nic_frames of a topology
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(32..=4096))]
    frames: u64,
    /// How long rates are counted, milliseconds of virtual time
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    milliseconds: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Settings that run at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    threads: u64,
    /// A list of outcomes as JSON
    #[arg(long)]
    json: bool,
}

/// Instances of tcp.
const INSTANCES: [usize; 4] = [1, 2, 4, TCPS.len()];
const LOADS: [Load; 3] = [Load::Out, Load::In, Load::Requests];
/// Before anything is counted, beside the slow start.
const WARM_UP_MS: u64 = 10;

/// Requests fill no segment, so offload makes no difference to them.
fn points() -> Vec<Point> {
    let settings = LOADS.into_iter().flat_map(|load| {
        let offloads = if load == Load::Requests { vec![true] } else { vec![false, true] };
        offloads.into_iter().map(move |has_offload| (load, has_offload))
    });
    settings
        .flat_map(|(load, has_offload)| INSTANCES.map(|instances| Point { instances, load, has_offload }))
        .collect()
}

pub fn run(arguments: &ScalingArguments) -> Result<()> {
    let calibration = arguments.machine.e5520()?;
    let span = Span { warm_up_ms: WARM_UP_MS, measured_ms: arguments.milliseconds };
    let experiment = Experiment::new(&calibration, (arguments.link * 1000, arguments.frames as usize), span)?;
    let outcomes = outcomes(&experiment, arguments.seed, arguments.threads as usize);
    if arguments.json {
        let all: Vec<Value> = outcomes.iter().map(value).collect();
        return print(&format!("{}\n", Value::Array(all)));
    }
    print(&eft_text::columns(&table(&outcomes)))
}

/// Of all points, in their order.
fn outcomes(experiment: &Experiment, seed: u64, threads: usize) -> Vec<Outcome> {
    let points = points();
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (sender, points) = (sender.clone(), &points);
            scope.spawn(move || {
                for (number, point) in points.iter().enumerate().skip(thread).step_by(threads) {
                    // Nobody has gone who would listen.
                    let _ = sender.send((number, experiment.run(*point, seed)));
                }
            });
        }
    });
    drop(sender);
    let mut all: Vec<(usize, Outcome)> = receiver.into_iter().collect();
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, outcome)| outcome).collect()
}

/// The outcome of the same load with one instance.
fn first(outcomes: &[Outcome], point: Point) -> Option<&Outcome> {
    outcomes.iter().find(|outcome| outcome.point == Point { instances: 1, ..point })
}

fn table(outcomes: &[Outcome]) -> Vec<Vec<String>> {
    let head = [
        "LOAD",
        "OFFLOAD",
        "TCPS",
        "RATE",
        "OF ONE",
        "TCP",
        "IP",
        "NIC",
        "LINK",
        "BOTTLENECK",
        "SEGMENT",
        "AGAIN",
    ];
    let line = |outcome: &Outcome| {
        let Point { instances, load, has_offload } = outcome.point;
        let rate = match load {
            Load::Requests => format!("{} requests/s", outcome.answers),
            Load::Out | Load::In => format!("{:.2} Gb/s", outcome.kbps as f64 / 1e6),
        };
        let ratio =
            first(outcomes, outcome.point).map_or(0.0, |one| outcome.kbps as f64 / one.kbps.max(1) as f64);
        let offload = match load {
            Load::Requests => "-",
            Load::Out | Load::In if has_offload => "yes",
            Load::Out | Load::In => "no",
        };
        let percent = |ppm: u64| format!("{:.0}%", ppm as f64 / 1e4);
        let bottlenecks = outcome.bottlenecks();
        let (least, most) = outcome.tcp_ppm_range();
        let tcp =
            if least == most { percent(most) } else { format!("{} to {}", percent(least), percent(most)) };
        vec![
            load.to_string(),
            offload.into(),
            instances.to_string(),
            rate,
            format!("{ratio:.2}"),
            tcp,
            percent(outcome.ip_ppm),
            percent(outcome.driver_ppm),
            percent(outcome.link_ppm),
            if bottlenecks.is_empty() { "none".into() } else { bottlenecks.join(", ") },
            outcome.segment_bytes.to_string(),
            outcome.sent_again.to_string(),
        ]
    };
    [head.map(String::from).to_vec()].into_iter().chain(outcomes.iter().map(line)).collect()
}

fn value(outcome: &Outcome) -> Value {
    json!({
        "load": outcome.point.load.to_string(),
        "offload": outcome.point.has_offload,
        "tcps": outcome.point.instances,
        "kbps": outcome.kbps,
        "requests_per_second": outcome.answers,
        "tcp_ppm": outcome.tcp_ppm,
        "ip_ppm": outcome.ip_ppm,
        "nic_ppm": outcome.driver_ppm,
        "link_ppm": outcome.link_ppm,
        "bottlenecks": outcome.bottlenecks(),
        "connections": outcome.connections,
        "segment_bytes": outcome.segment_bytes,
        "sent_again": outcome.sent_again,
    })
}
