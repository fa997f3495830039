//! `eft bench vm`: scheduling of guests on two equal CPUs, one of them slowed, and what deciding costs.
//!
//! Guests are processes with a given utilisation, and QEMU guests with software emulation. A paced one does a piece of work
//! at each beat, so that its throughput is what it got done, not how long it ran. The judge counts work and reads the
//! kernel's times itself. Ways alternate in one run; medians are compared.

mod cost;
mod guest;
mod machine;
mod qemu;
mod round;
mod worker;

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use eft_host::sensors::{Tree, topology};
use eft_machine::{CpuId, CpuSet};

use super::figure::{Aim, Figure};
use super::report;
use super::stolen::Stolen;
use crate::ground::End;
use crate::samples::Samples;
use machine::{First, Slowed};
use round::{Kind, Round, Way};
pub use worker::{WorkerArguments, worker};

#[derive(clap::Args)]
pub struct VmArguments {
    /// Rounds of each way; medians are compared
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// Seconds of each measured round
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Seconds that a policy gets to learn before each
    #[arg(long, default_value_t = 6.0)]
    settle: f64,
    /// The two CPUs; the second is slowed
    #[arg(long)]
    cpus: Option<CpuSet>,
    /// Share of its speed that the slowed CPU keeps
    #[arg(long, default_value_t = 0.35)]
    slow: f64,
    /// Only the cost of deciding
    #[arg(long)]
    cost_only: bool,
    /// Guests of one kind only
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    #[arg(long)]
    json: bool,
}

/// What is to be reached.
const GAIN_AIM: f64 = 1.15;
const SHARE_AIM_POINTS: f64 = 3.0;
const LEFT_AIM_PERCENT: f64 = 2.0;
const LEFT_AIM_MS: f64 = 20.0;
/// The judge samples every 2 ms, so a time may seem longer by up to two samples.
const SAMPLES_MS: f64 = 4.0;

pub fn run(arguments: &VmArguments) -> Result<()> {
    for (name, value) in [("--seconds", arguments.seconds), ("--settle", arguments.settle)] {
        if !(0.5..=600.0).contains(&value) {
            bail!("{name} {value}: it must be from 0.5 to 600 s");
        }
    }
    if !(0.05..=0.95).contains(&arguments.slow) {
        bail!("--slow {}: it must be from 0.05 to 0.95", arguments.slow);
    }
    let stolen = Stolen::begin(None);
    let (mut figures, uncounted) = cost::cost()?;
    let mut notes: Vec<String> = uncounted.into_iter().collect();
    notes.push(format!("cost: {}", stolen.describe()));
    if !arguments.cost_only {
        live(arguments, &mut figures, &mut notes)?;
    }
    report::print("vm", &figures, &notes, arguments.json)
}

fn two_cpus(arguments: &VmArguments) -> Result<CpuSet> {
    let online = topology::cpu_sets(&Tree::live())?.online;
    let cpus = arguments.cpus.clone().unwrap_or_else(|| online.iter().take(2).collect());
    if cpus.len() != 2 || !cpus.is_subset(&online) {
        bail!("this needs two CPUs that are online, not '{cpus}'");
    }
    Ok(cpus)
}

fn live(arguments: &VmArguments, figures: &mut Vec<Figure>, notes: &mut Vec<String>) -> Result<()> {
    let cpus = two_cpus(arguments)?;
    let mut kinds = vec![Kind::Processes, Kind::Qemu];
    kinds.retain(|kind| arguments.kind.is_none_or(|wanted| wanted == *kind));
    if kinds.contains(&Kind::Qemu) && !qemu::is_there() {
        notes.push("there is no qemu-system-x86_64, so no QEMU guests".into());
        kinds.retain(|kind| *kind != Kind::Qemu);
    }
    let end = End::new()?;
    // Guests and judge come before whatever else runs here; without the privilege the figures are noisier.
    let (first, note) = First::begin();
    notes.extend(note);
    let stolen = Stolen::begin(Some(&cpus));
    let slowed = Slowed::begin(&cpus, cpus.last().unwrap_or(CpuId(0)), arguments.slow)?;
    let setting = round::Setting::prepare(arguments, cpus, &slowed, &kinds, &end)?;
    let mut rounds: BTreeMap<(Kind, Way), Vec<Round>> = BTreeMap::new();
    for _ in 0..arguments.rounds {
        for kind in &kinds {
            for (way, _) in round::WAYS {
                rounds.entry((*kind, way)).or_default().push(setting.round(*kind, way)?);
            }
        }
    }
    drop((slowed, first));
    for kind in kinds {
        let of = |way: Way| rounds[&(kind, way)].as_slice();
        report_kind(kind, of, figures, notes);
    }
    notes.push(stolen.describe());
    Ok(())
}

fn each(rounds: &[Round], of: impl Fn(&Round) -> f64) -> Vec<f64> {
    rounds.iter().map(of).collect()
}

fn report_kind<'a>(
    kind: Kind,
    of: impl Fn(Way) -> &'a [Round],
    figures: &mut Vec<Figure>,
    notes: &mut Vec<String>,
) {
    let name = kind.name();
    let total = |way: Way| each(of(way), |round| round.seen.did.iter().map(|did| did.work).sum());
    let median = |samples: Vec<f64>| Samples::new(samples).median;
    let fair = total(Way::Fair);
    let best = median(total(Way::PinnedWell)).max(median(total(Way::PinnedBadly)));
    let oracle = best / median(fair.clone());
    for (way, way_name) in round::WAYS {
        let mut figure = Figure::new(format!("{name}: work, {way_name}"), "cores", total(way));
        if way != Way::Fair {
            figure = figure.beside("amp-fair", fair.clone());
        }
        if way == Way::Vm && oracle >= GAIN_AIM {
            figure = figure.aim(Aim::AtLeast(GAIN_AIM));
        }
        figures.push(figure);
    }
    for (i, guest) in ["CPU-bound", "30% paced"].into_iter().enumerate() {
        let work = |way: Way| each(of(way), |round| round.seen.did[i].work);
        let (vm, fair) = (work(Way::Vm), work(Way::Fair));
        let loss = vm.iter().zip(&fair).map(|(vm, fair)| 1.0 - vm / fair.max(1e-9));
        let what = format!("{name}: slowdown of the {guest} guest, amp-vm against amp-fair");
        figures.push(Figure::new(what, "%", loss.map(|part| part * 100.0).collect()));
    }
    for (way, way_name) in [(Way::Fair, "amp-fair"), (Way::Vm, "amp-vm")] {
        let off = each(of(way), |round| round.off_points().unwrap_or(100.0));
        let what = format!("{name}: part of the fast time from what was dealt, {way_name}");
        figures.push(Figure::new(what, "points", off).aim(Aim::AtMost(SHARE_AIM_POINTS)));
        let left = each(of(way), |round| round.seen.left * 100.0);
        let what = format!("{name}: fast CPU without a guest while one is on the slow CPU, {way_name}");
        figures.push(Figure::new(what, "% of the time", left).aim(Aim::AtMost(LEFT_AIM_PERCENT)));
        let longest = each(of(way), |round| round.seen.left_longest.as_secs_f64() * 1e3);
        let what = format!("{name}: the longest time of that, {way_name}");
        figures.push(Figure::new(what, "ms", longest).aim(Aim::AtMost(LEFT_AIM_MS + SAMPLES_MS)));
    }
    for (way, way_name) in [(Way::Fair, "amp-fair"), (Way::Vm, "amp-vm")] {
        let dealt = |i: usize| median(each(of(way), |round| round.dealt.map_or(0.0, |dealt| dealt[i])));
        let got = |i: usize| median(each(of(way), |round| round.seen.did[i].fast));
        notes.push(format!(
            "{name}, {way_name}: of the fast CPU {:.2} and {:.2} were dealt, {:.2} and {:.2} got",
            dealt(0),
            dealt(1),
            got(0),
            got(1)
        ));
    }
    let fast = median(each(of(Way::PinnedWell), |round| round.seen.did[0].fast));
    notes.push(format!("{name}: the best static placement does {oracle:.2} times amp-fair's work"));
    if oracle < GAIN_AIM {
        notes.push(format!("{name}: so {GAIN_AIM} cannot be had here, and is not asked for"));
    }
    notes.push(format!(
        "{name}: a CPU-bound guest that has the fast CPU to itself gets {:.0}% of it; the rest is other programs'",
        fast * 100.0
    ));
}
