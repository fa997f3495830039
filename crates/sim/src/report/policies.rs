//! `eft-sim policies`: what the scheduler's policies reach on tier 1, beside the best fixed configuration.

mod asked;

use anyhow::{Result, bail};
use asked::Asked;
use clap::{Args, ValueEnum};
use eft_sim::hardware::Cores;
use eft_sim::sweep::calibration;
use eft_sim::timed::policies::placement::Placement;
use eft_sim::timed::policies::{Experiment, Latency, Outcome, Rates, Way};

use super::machine::MachineArguments;
use super::print;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Chosen {
    Adaptive,
    Profile,
    AllOnOne,
    Spread,
    Random,
}

impl Chosen {
    fn way(self) -> Way {
        match self {
            Self::Adaptive => Way::Adaptive,
            Self::Profile => Way::Profile,
            Self::AllOnOne => Way::Fixed(Placement::ALL_ON_ONE),
            Self::Spread => Way::Fixed(Placement::SPREAD),
            Self::Random => Way::Random,
        }
    }

    /// Whether it has to reach [`AIM`].
    fn is_judged(self) -> bool {
        matches!(self, Self::Adaptive | Self::Profile)
    }
}

#[derive(Args)]
pub struct PoliciesArguments {
    #[command(flatten)]
    machine: MachineArguments,
    /// Only this one, beside the best fixed configuration; may be repeated
    #[arg(long, value_enum)]
    policy: Vec<Chosen>,
    /// What the programs do
    #[arg(
        long,
        value_name = "bulk|web:BYTES[:CLIENTS]|drawn|mix|trace:FILE[:FACTOR]",
        default_value = "bulk"
    )]
    load: Asked,
    /// The card cuts no segments: packets go out one by one, so that the stack is slower than the wire
    #[arg(long)]
    no_offload: bool,
    /// How long rates are counted, seconds of virtual time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// How long a policy has before, seconds
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=3600))]
    settle: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print each decision of the scheduler, too
    #[arg(long)]
    why: bool,
}

/// The share of the best fixed configuration's rate that a policy has to reach.
const AIM: f64 = 0.9;
/// So many of the best by short runs are run as long as a policy is.
const TRIED: usize = 2;

struct Row {
    name: String,
    is_judged: bool,
    outcome: Outcome,
}

pub fn run(arguments: &PoliciesArguments) -> Result<()> {
    // What may be wrong with files comes first: the machine's fit takes seconds.
    let load = arguments.load.offered(arguments.seed)?;
    let nominal = arguments.machine.e5520()?;
    let machine = calibration(&nominal, arguments.seed, 0)?;
    let chosen = if arguments.policy.is_empty() { Chosen::value_variants() } else { &arguments.policy };
    // The profiles are of a machine as far off as its file says that this one may be.
    let is_told = chosen.contains(&Chosen::Profile);
    let told = is_told.then(|| calibration(&nominal, arguments.seed, 1)).transpose()?;
    let span = (arguments.settle * 1000, arguments.seconds * 1000);
    print(&asked::told(&load))?;
    let of = (load, !arguments.no_offload);
    let experiment = Experiment::new(&machine, told.as_ref(), arguments.seed, of, span)?;
    let mut rows = vec![best(&experiment)?];
    for chosen in chosen {
        let name = chosen.to_possible_value().map_or(String::new(), |value| value.get_name().to_string());
        let outcome = experiment.run(chosen.way())?;
        rows.push(Row { name, is_judged: chosen.is_judged(), outcome });
    }
    print(&eft_text::columns(&table(&rows, experiment.cores())))?;
    if arguments.why {
        for Row { name, outcome, .. } in &rows {
            outcome.decisions.iter().try_for_each(|line| print(&format!("{name}: {line}\n")))?;
        }
    }
    check(&rows)
}

/// What needs no search: a short run may be wrong about it, too, and it is no best configuration if one of these does more.
const TRIVIAL: [Placement; 2] = [Placement::SPREAD, Placement::ALL_ON_ONE];

/// What the search found, and the trivial configurations.
fn candidates(mut found: Vec<Placement>) -> Vec<Placement> {
    for trivial in TRIVIAL {
        if !found.contains(&trivial) {
            found.push(trivial);
        }
    }
    found
}

/// The best of the candidates.
fn best(experiment: &Experiment) -> Result<Row> {
    let mut best: Option<Row> = None;
    for placement in candidates(experiment.best(TRIED)?) {
        let outcome = experiment.run(Way::Fixed(placement))?;
        if best.as_ref().is_none_or(|best| outcome.rates.mean() > best.outcome.rates.mean()) {
            best = Some(Row { name: "best fixed".into(), is_judged: false, outcome });
        }
    }
    best.ok_or_else(|| anyhow::anyhow!("there is no configuration"))
}

fn share(rows: &[Row], row: &Row) -> f64 {
    row.outcome.rates.mean() as f64 / rows[0].outcome.rates.mean().max(1) as f64
}

fn table(rows: &[Row], cores: &Cores) -> Vec<Vec<String>> {
    let has_latencies = rows.iter().any(|row| row.outcome.latency.is_some());
    let has_parts = rows.iter().any(|row| row.outcome.rates.kbps.len() > 1);
    let mut head = vec!["POLICY", "MBIT/S"];
    if has_parts {
        head.push("OF EACH PART");
    }
    head.extend(["OF BEST", "WATTS"]);
    if has_latencies {
        head.extend(["MEDIAN US", "P99 US"]);
    }
    head.extend(["MOVES", "CLOCKS", "AT THE END"]);
    let line = |row: &Row| {
        let outcome = &row.outcome;
        let plan =
            Placement::of(&outcome.plan, cores).map_or(String::new(), |placement| placement.told(cores));
        let mut line = vec![row.name.clone(), format!("{:.0}", outcome.rates.total() as f64 / 1000.0)];
        if has_parts {
            line.push(each_part(&outcome.rates));
        }
        line.push(format!("{:.1}%", share(rows, row) * 100.0));
        line.push(format!("{:.1}", outcome.milliwatts as f64 / 1000.0));
        if has_latencies {
            line.extend(latencies(outcome.latency));
        }
        line.extend([outcome.moves.to_string(), outcome.clock_changes.to_string(), plan]);
        line
    };
    [head.into_iter().map(String::from).collect()].into_iter().chain(rows.iter().map(line)).collect()
}

/// Mb/s of each part, in the order in which they are told.
fn each_part(rates: &Rates) -> String {
    let all: Vec<String> = rates.kbps.iter().map(|kbps| format!("{:.1}", *kbps as f64 / 1000.0)).collect();
    all.join(" ")
}

fn latencies(latency: Option<Latency>) -> [String; 2] {
    let us = |ns: u32| format!("{:.1}", f64::from(ns) / 1000.0);
    latency.map_or(["-".into(), "-".into()], |latency| [us(latency.median_ns), us(latency.p99_ns)])
}

fn check(rows: &[Row]) -> Result<()> {
    let short = rows.iter().filter(|row| row.is_judged && share(rows, row) < AIM);
    let short: Vec<String> = short
        .map(|row| {
            let (reached, aim) = (share(rows, row) * 100.0, AIM * 100.0);
            format!("{} reaches {reached:.1}% of the best fixed configuration (aim {aim:.0}%)", row.name)
        })
        .collect();
    if short.is_empty() { Ok(()) } else { bail!(short.join("; ")) }
}

#[cfg(test)]
mod tests;
