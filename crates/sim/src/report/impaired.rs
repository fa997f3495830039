//! `eft-sim impaired`: one TCP stream after another over wires that lose, delay and reorder, in virtual time.
//!
//! It compares eft with eft: the same seeds before and after a change of loss recovery or congestion control. Beside the
//! Linux kernel, over a real wire, stands `eft bench impaired`.

use anyhow::{Result, bail};
use clap::Args;
use eft_messages::ComponentId;
use eft_sim::simulation::Settings;
use eft_sim::{Conditions, Simulation};
use eft_transport::tcp::Algorithm;
use serde_json::json;
use std::time::Duration;

use super::print;

#[derive(Args)]
pub struct ImpairedArguments {
    /// Runs of each wire, each with another seed; medians are shown
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only wires whose description contains this, such as "20 ms, 0.1% lost"
    #[arg(long)]
    only: Option<String>,
    /// Congestion control
    #[arg(long, default_value = "cubic")]
    congestion: Algorithm,
    /// Millions of bytes of a long stream
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1000))]
    megabytes: u64,
    #[arg(long)]
    json: bool,
}

/// 100 Mb/s.
const RATE: u64 = 12_500_000;
/// Bytes of a stream that shows goodput, and of one that shows how fast an answer is there.
const LONG: u64 = 4_000_000;
const SHORT: u64 = 40_000;
/// Short streams of one run.
const SHORTS: usize = 20;

/// A wire, and what is sent over it.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    rtt: Duration,
    loss: f64,
    reorder: f64,
    /// Bytes that wait for the wire, in parts of what it holds in a round trip.
    queue: f64,
    streams: (usize, u64),
}

impl Case {
    fn description(&self) -> String {
        let (ms, loss, reorder) = (self.rtt.as_millis(), self.loss * 100.0, self.reorder * 100.0);
        format!("{}, {ms} ms, {loss}% lost, {reorder}% reordered", self.name)
    }
}

const CALM: Case = Case {
    name: "",
    rtt: Duration::from_millis(20),
    loss: 0.0,
    reorder: 0.0,
    queue: 1.0,
    streams: (1, LONG),
};

fn cases() -> Vec<Case> {
    let ms = Duration::from_millis;
    let mut cases = vec![
        Case { name: "long, no loss", rtt: ms(50), ..CALM },
        Case { name: "long, no loss, short queue", rtt: ms(50), queue: 0.25, ..CALM },
        Case { name: "long, no loss", rtt: ms(200), ..CALM },
        Case { name: "long, no loss, long queue", rtt: ms(10), queue: 6.0, streams: (1, 3 * LONG), ..CALM },
        Case { name: "long, no loss, long queue", rtt: ms(20), queue: 4.0, streams: (1, 3 * LONG), ..CALM },
    ];
    for rtt in [1, 20, 200] {
        for loss in [0.001, 0.01, 0.03, 0.05, 0.1] {
            cases.push(Case { name: "long, loss", rtt: ms(rtt), loss, ..CALM });
        }
    }
    for rtt in [1, 20, 200] {
        cases.push(Case { name: "long, reordering", rtt: ms(rtt), reorder: 0.05, ..CALM });
        cases.push(Case {
            name: "long, loss and reordering",
            rtt: ms(rtt),
            loss: 0.01,
            reorder: 0.05,
            ..CALM
        });
    }
    for loss in [0.01, 0.03, 0.1] {
        cases.push(Case { name: "short, loss", rtt: ms(20), loss, streams: (SHORTS, SHORT), ..CALM });
    }
    cases
}

/// What one run shows.
#[derive(Clone, Copy)]
struct Run {
    /// Mb/s, of all streams one after another.
    goodput: f64,
    retransmitted: f64,
    timeouts: f64,
    spurious: f64,
    /// Segments that a receiver had no room to note out of order.
    unnoted: f64,
}

fn settings(case: &Case, congestion: &'static str) -> Settings {
    let mut settings = Settings { transport: vec![("congestion", congestion)], ..Settings::default() };
    let in_a_round_trip = RATE as f64 * case.rtt.as_secs_f64();
    settings.geometry.slots = 2 * SHORTS + 8;
    settings.geometry.send_len = 1 << 22;
    settings.geometry.receive_len = 1 << 22;
    settings.conditions = Conditions {
        delay: case.rtt / 2,
        loss: case.loss,
        reorder: case.reorder,
        // Overtaken by what is sent within a quarter of a round trip: more than three segments.
        late: case.rtt / 4,
        rate: RATE,
        queue: ((in_a_round_trip * case.queue) as u64).max(64_000),
        cut: true,
        ..Conditions::default()
    };
    settings
}

fn measure(case: &Case, congestion: &'static str, seed: u64) -> Run {
    let (streams, bytes) = case.streams;
    let mut s = Simulation::new(seed, settings(case, congestion));
    s.serve(0, bytes, 0);
    let begun = s.now;
    for done in 1..=streams {
        s.stream(0, bytes, 0);
        s.run(Duration::from_secs(3600), |s| {
            s.applications[0].streams.len() == done && s.applications[0].is_done()
        });
    }
    let seconds = s.now.saturating_since(begun).as_secs_f64();
    let total = |name: &str| s.total(ComponentId::TCP, name) as f64;
    Run {
        goodput: (streams as u64 * bytes * 8) as f64 / seconds / 1e6,
        retransmitted: total("retransmitted_segments"),
        timeouts: total("retransmit_timeouts"),
        spurious: total("duplicate_segments"),
        unnoted: total("drop_reassembly_full"),
    }
}

fn median(runs: &[Run], of: fn(&Run) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub fn run(arguments: &ImpairedArguments) -> Result<()> {
    let wanted = |case: &Case| match &arguments.only {
        Some(only) => case.description().contains(only.as_str()),
        None => true,
    };
    if let Some(only) = &arguments.only
        && !cases().iter().any(wanted)
    {
        bail!("no wire is called {only:?}");
    }
    let head = [
        "WHAT",
        "ROUND TRIP",
        "LOSS",
        "REORDERED",
        "GOODPUT, MBIT/S",
        "SENT AGAIN",
        "IN VAIN",
        "NOT NOTED",
        "TIMEOUTS",
    ];
    let congestion = arguments.congestion.name();
    let mut lines = vec![head.map(String::from).to_vec()];
    let mut results = Vec::new();
    for mut case in cases().into_iter().filter(wanted) {
        if case.streams == (1, LONG) {
            case.streams.1 = arguments.megabytes * 1_000_000;
        }
        let runs: Vec<Run> =
            (0..arguments.runs).map(|i| measure(&case, congestion, arguments.seed + i)).collect();
        let goodput = median(&runs, |r| r.goodput);
        let retransmitted = median(&runs, |r| r.retransmitted);
        let spurious = median(&runs, |r| r.spurious);
        let unnoted = median(&runs, |r| r.unnoted);
        let timeouts = median(&runs, |r| r.timeouts);
        lines.push(vec![
            case.name.into(),
            format!("{} ms", case.rtt.as_millis()),
            format!("{}%", case.loss * 100.0),
            format!("{}%", case.reorder * 100.0),
            format!("{goodput:.3}"),
            retransmitted.to_string(),
            spurious.to_string(),
            unnoted.to_string(),
            timeouts.to_string(),
        ]);
        results.push(json!({
            "what": case.name, "rtt_ms": case.rtt.as_millis() as u64, "loss": case.loss, "reorder": case.reorder,
            "queue": case.queue, "goodput_mbps": goodput, "retransmitted_segments": retransmitted,
            "duplicate_segments": spurious,
            "drop_reassembly_full": unnoted, "retransmit_timeouts": timeouts,
        }));
    }
    if arguments.json {
        let all = json!({ "runs": arguments.runs, "seed": arguments.seed, "wires": results });
        return print(&(serde_json::to_string_pretty(&all)? + "\n"));
    }
    print(&eft_text::columns(&lines))
}
