//! `eft bench reconfigure`: the kernel's own hotplug, expedited hotplug, and parking, in turn in the same run.
//!
//! Promises: ways alternate within each round, so that a change of the machine's speed affects all; raw samples go
//! into the JSON, also those of a run that was stopped; the machine is put back also on a signal and on failure, and is
//! compared with what it was before, each thread's affinity included. Must never happen: a wait without a bound.

mod report;
mod rounds;
mod snapshot;
mod ways;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use eft_cores::park::{ParkBackEnd, Situation};
use eft_host::actuators::holder::EndSignals;
use eft_host::actuators::hotplug;
use eft_host::actuators::parking::ParkOptions;
use eft_host::actuators::scope::Scope;
use eft_host::actuators::{affinity, bolt, session};
use eft_host::journal::Journal;
use eft_host::sensors::trace::Tracer;
use eft_host::sensors::{Tree, tasks, topology};
use eft_machine::CpuSet;
use thiserror::Error;

use super::load::Load;
use super::report::{print, verdict as verdict_of};
use super::stolen::Stolen;
use report::{Report, Row, Way};

#[derive(Args)]
pub struct ReconfigureArguments {
    /// CPUs that may be switched; not needed where there is just one
    #[arg(long, value_name = "CPUS", env = "EFT_MANAGED")]
    managed: Option<CpuSet>,
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Loads to measure under
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = [0, 200, 1000])]
    threads: Vec<usize>,
    /// native, expedited, park, park-lazy (with all lazy work, and offline), park-cancel (back before that), bolt, or
    /// several of them; default: all that this kernel has
    #[arg(long, value_delimiter = ',')]
    ways: Vec<String>,
    /// End after this time, and report what there is; the loads share it evenly
    #[arg(long, value_name = "SECONDS")]
    seconds_max: Option<f64>,
    /// v2, v1 or affinity
    #[arg(long, value_name = "NAME")]
    back_end: Option<ParkBackEnd>,
    #[arg(long)]
    json: bool,
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

struct Bench {
    journal: Journal,
    managed: CpuSet,
    base: CpuSet,
    tracer: Tracer,
    limits: Limits,
    notes: Vec<String>,
    options: ParkOptions,
    /// What the kernel's Bolt was switched to, if there is one.
    bolt: Option<u32>,
}

impl Drop for Bench {
    /// Also when something failed or panicked.
    fn drop(&mut self) {
        self.put_back();
        if let Some(switch) = self.bolt {
            let _ = Tree::live().write(bolt::SWITCH, &switch.to_string());
        }
        let everywhere = self.base.union(&self.managed);
        // It ends with the process anyway.
        let _ = affinity::set(&Tree::live(), 0, 0, &everywhere);
    }
}

/// When to stop.
struct Limits {
    signals: EndSignals,
    until: Option<Instant>,
}

impl Limits {
    fn check(&self) -> Result<(), Stop> {
        if self.signals.arrived() {
            return Err(Stop::Asked);
        }
        match self.until {
            Some(until) if Instant::now() >= until => Err(Stop::TimeIsUp),
            _ => Ok(()),
        }
    }
}

/// Why rounds end although none failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
enum Stop {
    #[error("asked to end")]
    Asked,
    #[error("the time limit was reached")]
    TimeIsUp,
}

fn is_time_up(ended: &anyhow::Error) -> bool {
    ended.downcast_ref() == Some(&Stop::TimeIsUp)
}

pub fn run(arguments: &ReconfigureArguments) -> Result<()> {
    let tree = Tree::live();
    let ways = ways(arguments, &tree)?;
    let time = time_limit(arguments)?;
    let mut bench = prepare(arguments, &tree)?;
    let before = snapshot::take(&tree);
    let stolen = Stolen::begin(None);
    let mut report = bench.measure(arguments, &ways, time);
    report.notes = std::mem::take(&mut bench.notes);
    report.notes.push(stolen.describe());
    drop(bench);
    report.left_changed.extend(snapshot::differences(&before, &snapshot::take(&tree)));
    if arguments.json {
        let text = serde_json::to_string_pretty(&report)?;
        eft_text::print(&(text + "\n"))?;
    } else {
        report::print_table(&report);
        println!();
    }
    // One of them is told if both went wrong: what must be repaired comes first.
    let missing = report::unmeasured(&report.rows, &ways, &arguments.threads);
    verdict(&report).and(judged(&report, arguments.json)).and(all_measured(&missing))
}

/// An aim that was asked for and not measured is not reached.
fn all_measured(missing: &[String]) -> Result<()> {
    match missing.len() {
        0 => Ok(()),
        count => bail!("reconfigure never measured {count} of its aims: {}", missing.join("; ")),
    }
}

/// Aims are ratios to native hotplug: rounds without it are times alone, and miss none.
fn judged(report: &Report, as_json: bool) -> Result<()> {
    let figures = report::figures(&report.rows);
    let measured = report.rows.iter().any(|row| !row.leave.call_us.samples.is_empty());
    match (figures.is_empty() && measured, as_json) {
        (true, true) => Ok(()),
        (true, false) => {
            report.notes.iter().for_each(|note| println!("{note}"));
            println!("no aim is judged: none was measured beside native hotplug");
            Ok(())
        }
        (false, true) => verdict_of("reconfigure", &figures),
        (false, false) => print("reconfigure", &figures, &report.notes, false),
    }
}

fn verdict(report: &Report) -> Result<()> {
    if report.tasks_lost > 0 || !report.left_changed.is_empty() {
        bail!("{} tasks lost; left changed: {}", report.tasks_lost, report.left_changed.join(", "));
    }
    match &report.ended_early {
        Some(reason) if is_time_up(reason) => {
            eprintln!("eft: {reason:#}; the machine is as before");
            Ok(())
        }
        Some(reason) => {
            bail!("ended early: {reason:#}; what was measured is reported, the machine is as before")
        }
        None => Ok(()),
    }
}

fn ways(arguments: &ReconfigureArguments, tree: &Tree) -> Result<Vec<Way>> {
    if arguments.ways.is_empty() {
        let has = |way: &Way| *way != Way::Bolt || bolt::is_there(tree);
        return Ok(Way::ALL.into_iter().filter(has).collect());
    }
    let ways = arguments.ways.iter().map(|name| name.parse()).collect::<Result<Vec<Way>, _>>()?;
    if ways.contains(&Way::Bolt) && !bolt::is_there(tree) {
        bail!("this kernel has no Bolt: kernel/README.md says how to build one");
    }
    Ok(ways)
}

fn time_limit(arguments: &ReconfigureArguments) -> Result<Option<Duration>> {
    if arguments.rounds == 0 || arguments.rounds > 100_000 {
        bail!("--rounds must lie between 1 and 100000");
    }
    if let Some(threads) = arguments.threads.iter().find(|threads| **threads > 20_000) {
        bail!("--threads {threads} is more than 20000");
    }
    match arguments.seconds_max {
        None => Ok(None),
        Some(seconds) if seconds > 0.0 && seconds < 1e6 => Ok(Some(Duration::from_secs_f64(seconds))),
        Some(seconds) => bail!("--seconds-max {seconds} is no sensible time"),
    }
}

/// The CPU that can be switched, if there is just one.
fn the_only_one(tree: &Tree) -> Result<CpuSet> {
    let online = topology::cpu_sets(tree)?.online;
    let switchable: CpuSet =
        online.iter().filter(|cpu| tree.exists(&format!("sys/devices/system/cpu/cpu{cpu}/online"))).collect();
    match switchable.len() {
        1 => Ok(switchable),
        0 => bail!("no CPU of this machine can be switched"),
        _ => bail!("say with --managed which of the CPUs {switchable} may be switched"),
    }
}

/// Checks everything, and takes the lock.
fn prepare(arguments: &ReconfigureArguments, tree: &Tree) -> Result<Bench> {
    let managed = match &arguments.managed {
        Some(managed) => managed.clone(),
        None => the_only_one(tree)?,
    };
    let dir = arguments.state_dir.clone().unwrap_or_else(|| session::state_dir(tree));
    let mut journal = Journal::lock(tree, &dir)?;
    let (recovered, notes) = journal.recover();
    if recovered > 0 {
        eprintln!("eft: undid {recovered} changes that an instance left behind");
    }
    notes.iter().for_each(|note| eprintln!("eft: {note}"));
    if !journal.entries().is_empty() {
        bail!("eft holds changes on this host; 'eft cpu restore' first");
    }
    let sets = topology::cpu_sets(tree)?;
    let situation = Situation {
        present: sets.present,
        online: sets.online,
        managed: managed.clone(),
        ..Situation::default()
    };
    situation.check_leave(&managed)?;
    hotplug::check(tree, &managed)?;
    let tracer = Tracer::new(&["sched/sched_switch"], Some(&managed))?;
    let options = ParkOptions {
        back_end: arguments.back_end,
        // As with hotplug, all tasks leave.
        scope: Scope::All,
        spread: Vec::new(),
        managed: managed.clone(),
        force: true,
    };
    let limits = Limits { signals: EndSignals::block()?, until: None };
    // The measuring thread stays on the base CPUs; so does what it starts, unless it says otherwise.
    let base = situation.online.minus(&managed);
    let bolt = bolt::is_there(tree).then(|| tree.number(bolt::SWITCH)).flatten();
    Ok(Bench { journal, managed, base, tracer, limits, notes: Vec::new(), options, bolt })
}

impl Bench {
    /// Undoes our changes; those that cannot be undone are reported, and stay in the journal for the next eft.
    fn put_back(&mut self) {
        let me = tasks::myself(&Tree::live());
        let notes = self.journal.undo(|entry| entry.owner == me);
        notes.iter().for_each(|note| eprintln!("eft: {note}"));
    }

    fn measure(&mut self, arguments: &ReconfigureArguments, ways: &[Way], time: Option<Duration>) -> Report {
        let kernel = Tree::live().text("proc/sys/kernel/osrelease").unwrap_or_default();
        let mut report = Report {
            unit: "us",
            baseline: "native hotplug (write to the CPU's online file), same round",
            kernel,
            managed: self.managed.clone(),
            back_end: None,
            rounds: arguments.rounds,
            rows: Vec::new(),
            tasks_lost: 0,
            left_changed: Vec::new(),
            notes: Vec::new(),
            ended_early: None,
        };
        for threads in &arguments.threads {
            // Each load gets its share of the time, or the last would get none.
            self.limits.until = time.map(|time| Instant::now() + time / arguments.threads.len() as u32);
            let ended = match self.measure_with(*threads, arguments.rounds, ways, &mut report) {
                Ok(()) => continue,
                Err(reason) => reason,
            };
            let is_final = !is_time_up(&ended);
            report.ended_early = Some(ended);
            if is_final {
                break;
            }
        }
        report
    }

    /// One load: started, measured under, counted, and compared with what its threads were.
    fn measure_with(
        &mut self,
        threads: usize,
        rounds: usize,
        ways: &[Way],
        report: &mut Report,
    ) -> Result<()> {
        let tree = Tree::live();
        let everywhere = self.base.union(&self.managed);
        // Started before we bind ourselves, or the load would inherit that.
        affinity::set(&tree, 0, 0, &everywhere)?;
        prioritise(0);
        let mut load = Load::start(threads)?;
        let masks = snapshot::masks_of(&tree, load.pid());
        affinity::set(&tree, 0, 0, &self.base)?;
        // The measuring thread must not queue behind a thousand threads; the same for every way.
        prioritise(-20);
        let mut rows: Vec<Row> = Vec::new();
        let outcome = self.measure_under(&load, rounds, ways, &mut rows, &mut report.back_end);
        report::summarise(&mut rows);
        report.rows.extend(rows);
        self.put_back();
        let after = snapshot::masks_of(&tree, load.pid());
        report.left_changed.extend(snapshot::changed_masks(&masks, &after));
        report.tasks_lost += threads - load.alive()?;
        outcome
    }
}

fn prioritise(nice: i32) {
    // SAFETY: plain numbers; 0 names the calling thread. Without the privilege the figures are only worse.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
}
