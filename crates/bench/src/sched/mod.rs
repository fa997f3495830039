//! `eft bench sched`: what the policies reach, live, on CPUs with emulated speeds.
//!
//! Ways that are compared alternate in one run. The programs of a load and their peers are placed on the managed CPUs in
//! every way. What is achieved is counted by the load itself; power is modelled, for all ways by a model of the judge's own
//! that the policies do not know. The baseline is the best of every seating of the components, and of every speed where
//! speed is chosen; obvious plans without a policy are shown beside it. Every figure comes with the median's 95%
//! interval. The machine is put back at the end, also on a signal.

mod candidates;
mod flips;
mod idle;
mod judge;
mod loads;
mod power;
mod scene;
mod search;
mod start;
mod steady;
mod unseen;

use super::figure::Figure;
use super::stolen::Stolen;
use anyhow::{Context, Result, anyhow, bail};
use eft_linux::stack_sensor::CounterNames;
use eft_machine::{CpuId, CpuSet};
use loads::{Kind, Load, Places};
use scene::Scene;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// How soon after the last packet the stack rests on one shared core, and its CPU time then
    Idle,
    /// How soon a bulk transfer that begins on the resting stack reaches full throughput
    Start,
    /// Least power with a floor, beside the best fixed configuration
    Power,
    /// `profile` on loads that it was not trained with, beside the best fixed configuration
    Profile,
    /// Changes of plan at constant load
    Steady,
    /// A load that flips every 100 ms, beside consolidated and spread
    Flips,
}

#[derive(clap::Args)]
pub struct SchedArguments {
    /// One of them; default: all
    what: Option<What>,
    /// Rounds of each way; with fewer than 6 there is no 95% interval
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Seconds of each measured round
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Seconds that a policy gets to find its plan before each measured round
    #[arg(long, default_value_t = 10.0)]
    settle: f64,
    /// Speeds of each CPU that the exhaustive sweep tries
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=8))]
    levels: u8,
    /// Only with the load's programs on the first of these CPUs and their peers on the second; default: every way
    #[arg(long, value_name = "PROGRAM,PEER", value_parser = parse_places)]
    places: Option<Places>,
    /// For `steady`: minutes to watch; a settled policy probes after 3
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1440))]
    minutes: u16,
    /// For `profile`: number of loads that are drawn
    #[arg(long, default_value_t = 3)]
    drawn: u16,
    /// For `profile`: seed of the draw
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The CPUs that the stack may use; default: the first two
    #[arg(long)]
    managed: Option<CpuSet>,
    /// For `power` and `steady`: only this load; may be repeated
    #[arg(long)]
    load: Vec<Kind>,
    #[arg(long)]
    json: bool,
}

impl SchedArguments {
    /// The same for each placement of the load.
    fn at_each_place(
        &self,
        scene: &mut Scene,
        report: &mut Report,
        one: impl Fn(&mut Scene, &SchedArguments, &mut Report, Places) -> Result<()>,
    ) -> Result<()> {
        for places in self.places(&scene.cpus)? {
            one(scene, self, report, places)?;
        }
        Ok(())
    }

    fn places(&self, cpus: &[CpuId]) -> Result<Vec<Places>> {
        match self.places {
            None => Ok(Places::all(cpus)),
            Some(places) if cpus.contains(&places.program) && cpus.contains(&places.peer) => Ok(vec![places]),
            Some(places) => bail!("--places {},{}: not both are managed", places.program, places.peer),
        }
    }

    /// Those that are asked for, or else these.
    fn loads(&self, otherwise: &[Kind]) -> Vec<Load> {
        let kinds = if self.load.is_empty() { otherwise } else { &self.load };
        kinds.iter().copied().map(Load::named).collect()
    }
}

fn parse_places(text: &str) -> Result<Places> {
    let (program, peer) = text.split_once(',').context("two CPUs, as 0,1")?;
    let cpu = |part: &str| part.trim().parse::<CpuId>().map_err(|_| anyhow!("`{part}` is no CPU"));
    Ok(Places { program: cpu(program)?, peer: cpu(peer)? })
}

/// What a benchmark adds to.
#[derive(Default)]
struct Report {
    figures: Vec<Figure>,
    notes: Vec<String>,
}

impl Report {
    fn add(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    fn note(&mut self, note: String) {
        eprintln!("eft: {note}");
        self.notes.push(note);
    }
}

const ALL: [What; 6] = [What::Idle, What::Start, What::Steady, What::Flips, What::Power, What::Profile];

pub fn run(arguments: &SchedArguments, names: CounterNames) -> Result<()> {
    for (option, value) in [("--seconds", arguments.seconds), ("--settle", arguments.settle)] {
        if !(0.1..=3600.0).contains(&value) {
            bail!("{option} {value}: it must be from 0.1 to 3600 s");
        }
    }
    let managed = managed(arguments)?;
    let wanted = arguments.what.map_or(ALL.to_vec(), |what| vec![what]);
    let mut report = Report::default();
    let stolen = Stolen::begin(Some(&managed));
    let mut scene = Scene::start(&managed, usize::from(arguments.levels), names)?;
    let mut outcome = Ok(());
    for what in wanted {
        outcome = match what {
            What::Idle => idle::run(&mut scene, arguments, &mut report),
            What::Start => start::run(&mut scene, arguments, &mut report),
            What::Power => power::run(&mut scene, arguments, &mut report),
            What::Profile => unseen::run(&mut scene, arguments, &mut report),
            What::Steady => steady::run(&mut scene, arguments, &mut report),
            What::Flips => flips::run(&mut scene, arguments, &mut report),
        };
        if outcome.is_err() {
            break;
        }
    }
    drop(scene);
    report.notes.push(stolen.describe());
    // Measurements are reported even if something later failed.
    let verdict = match report.figures.is_empty() && outcome.is_err() {
        true => Ok(()),
        false => super::report::print("sched", &report.figures, &report.notes, arguments.json),
    };
    outcome.and(verdict)
}

fn managed(arguments: &SchedArguments) -> Result<CpuSet> {
    if let Some(managed) = &arguments.managed {
        return Ok(managed.clone());
    }
    let sets = eft_host::sensors::topology::cpu_sets(&eft_host::sensors::Tree::live())?;
    let first: CpuSet = sets.online.iter().take(2).collect();
    if first.len() < 2 {
        bail!("this measures what a second CPU is good for, and there is only one");
    }
    Ok(first)
}
