//! `eft-sim policies`: what the scheduler's policies reach on tier 1, beside the best fixed configuration.

mod asked;
mod goal;

use anyhow::{Context, Result, bail};
use asked::Asked;
use clap::{Args, ValueEnum};
use eft_sim::hardware::Cores;
use eft_sim::sweep::calibration;
use eft_sim::timed::policies::placement::Placement;
use eft_sim::timed::policies::{Experiment, Judge, Latency, Outcome, Rates, Way};

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
    /// By what the best fixed configuration is the best, and what policies aim at
    #[arg(
        long,
        value_name = "throughput|least-power[:PERCENT]|throughput-per-watt",
        default_value = "throughput"
    )]
    goal: goal::AskedGoal,
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
    let mut experiment = Experiment::new(&machine, told.as_ref(), arguments.seed, of, span)?;
    experiment.judge = arguments.goal.0;
    let (best, most_kbps) = best(&experiment)?;
    let mut rows = vec![best];
    for chosen in chosen {
        let name = chosen.to_possible_value().map_or(String::new(), |value| value.get_name().to_string());
        let outcome = experiment.run(chosen.way())?;
        rows.push(Row { name, is_judged: chosen.is_judged(), outcome });
    }
    let results = Results { rows, judge: experiment.judge, most_kbps };
    print(&goal::told(&results.judge, most_kbps))?;
    print(&eft_text::columns(&table(&results, experiment.cores())))?;
    if arguments.why {
        for Row { name, outcome, .. } in &results.rows {
            outcome.decisions.iter().try_for_each(|line| print(&format!("{name}: {line}\n")))?;
        }
    }
    check(&results)
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

/// The best of the candidates by the goal, and the rate of the fastest one.
fn best(experiment: &Experiment) -> Result<(Row, u64)> {
    let run = |placement| Ok(experiment.run(Way::Fixed(placement))?);
    let outcomes =
        candidates(experiment.candidates(TRIED)?).into_iter().map(run).collect::<Result<Vec<Outcome>>>()?;
    let most_kbps = outcomes.iter().map(|outcome| outcome.reached().kbps).max().unwrap_or(0);
    // The first one of equals.
    let worth = |outcome: &Outcome| experiment.judge.worth(outcome.reached(), most_kbps);
    let best = outcomes.into_iter().rev().max_by_key(worth).context("there is no configuration")?;
    Ok((Row { name: "best fixed".into(), is_judged: false, outcome: best }, most_kbps))
}

/// The rows, the best fixed configuration first, and by what they are judged.
struct Results {
    rows: Vec<Row>,
    judge: Judge,
    most_kbps: u64,
}

impl Results {
    fn share(&self, row: &Row) -> f64 {
        self.judge.share(row.outcome.reached(), self.rows[0].outcome.reached(), self.most_kbps)
    }
}

fn table(results: &Results, cores: &Cores) -> Vec<Vec<String>> {
    let rows = &results.rows;
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
        line.push(format!("{:.1}%", results.share(row) * 100.0));
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

fn check(results: &Results) -> Result<()> {
    let short = results.rows.iter().filter(|row| row.is_judged && results.share(row) < AIM);
    let short: Vec<String> = short
        .map(|row| {
            let (reached, aim) = (results.share(row) * 100.0, AIM * 100.0);
            format!("{} reaches {reached:.1}% of the best fixed configuration (aim {aim:.0}%)", row.name)
        })
        .collect();
    if short.is_empty() { Ok(()) } else { bail!(short.join("; ")) }
}

#[cfg(test)]
mod tests;
