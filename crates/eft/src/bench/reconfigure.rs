//! `eft bench reconfigure`: the kernel's own hotplug, expedited hotplug, and parking, in turn in the same run.
//!
//! Promises: ways alternate within each round, so that a change of the machine's mood meets all of them; raw samples go
//! into the JSON; the machine is put back also on a signal and on failure, and is compared with what it was before.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use eft_cores::CpuSet;
use eft_cores::park::{ParkBackEnd, Situation};
use eft_linux::actuators::burner::now_ns;
use eft_linux::actuators::hotplug::{self, HotplugOptions};
use eft_linux::actuators::keeper::EndSignals;
use eft_linux::actuators::parking::{ParkOptions, Parking};
use eft_linux::actuators::scope::Scope;
use eft_linux::actuators::{affinity, session};
use eft_linux::journal::Journal;
use eft_linux::sensors::trace::{self, Event, Tracer};
use eft_linux::sensors::{Tree, rates, tasks, topology};
use serde::Serialize;

use super::load::Load;
use super::samples::Samples;

#[derive(Args)]
pub struct ReconfigureArguments {
    /// CPUs that may be switched
    #[arg(long, value_name = "CPUS", env = "EFT_MANAGED")]
    managed: Option<CpuSet>,
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Loads to measure under
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = [0, 200, 1000])]
    threads: Vec<usize>,
    /// native, expedited and park, or some of them
    #[arg(long, value_delimiter = ',', default_values_t = ["native".to_string(), "expedited".into(), "park".into()])]
    ways: Vec<String>,
    /// v2, v1 or affinity
    #[arg(long, value_name = "NAME")]
    back_end: Option<ParkBackEnd>,
    #[arg(long)]
    json: bool,
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    Native,
    Expedited,
    Park,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Which {
    /// The first managed CPU.
    One,
    /// All of them in one call.
    Bulk,
    /// All of them, one call each.
    OneByOne,
}

#[derive(Default, Serialize)]
struct Direction {
    /// Until the call returns.
    call_us: Samples,
    /// Leaving: the last switch to a task that is no kernel thread. Coming back: the first such switch.
    edge_us: Samples,
    /// Leaving: until the last such task was switched away from, if one ran on without a switch.
    vacated_us: Samples,
    /// Interrupts on the CPUs that stay, while the call ran.
    interrupts_elsewhere: Samples,
}

#[derive(Serialize)]
struct Row {
    threads: usize,
    way: Way,
    which: Which,
    leave: Direction,
    back: Direction,
    leave_times_faster_than_native: Option<f64>,
    back_times_faster_than_native: Option<f64>,
    /// Switches to tasks of the load on a parked CPU after the call had returned.
    stayed: usize,
}

#[derive(Serialize)]
struct Report {
    unit: &'static str,
    baseline: &'static str,
    kernel: String,
    managed: CpuSet,
    back_end: Option<String>,
    rounds: usize,
    rows: Vec<Row>,
    tasks_lost: usize,
    /// What is not as it was before; empty is right.
    left_changed: Vec<String>,
}

struct Bench {
    journal: Journal,
    managed: CpuSet,
    tracer: Tracer,
    signals: EndSignals,
    options: ParkOptions,
}

impl Drop for Bench {
    /// Also when something failed or panicked.
    fn drop(&mut self) {
        let me = tasks::myself(&Tree::live());
        self.journal.undo(|entry| entry.owner == me);
    }
}

const DWELL: Duration = Duration::from_millis(6);

pub fn run(arguments: &ReconfigureArguments) -> Result<(), String> {
    let ways = arguments.ways.iter().map(|name| way(name)).collect::<Result<Vec<Way>, String>>()?;
    let managed = arguments
        .managed
        .clone()
        .ok_or("no CPU is managed; list those that may be switched with --managed")?;
    if arguments.rounds == 0 || arguments.rounds > 100_000 {
        return Err("--rounds must lie between 1 and 100000".into());
    }
    let tree = Tree::live();
    let dir = arguments.state_dir.clone().unwrap_or_else(|| session::state_dir(&tree));
    let mut journal = Journal::lock(&tree, &dir)?;
    let (recovered, notes) = journal.recover();
    if recovered > 0 {
        eprintln!("eft: undid {recovered} changes that an instance left behind");
    }
    notes.iter().for_each(|note| eprintln!("eft: {note}"));
    if !journal.entries().is_empty() {
        return Err("eft holds changes on this host; 'eft cpu restore' first".into());
    }
    let sets = topology::cpu_sets(&tree)?;
    let situation = Situation {
        present: sets.present,
        online: sets.online,
        managed: managed.clone(),
        ..Situation::default()
    };
    situation.check_leave(&managed)?;
    hotplug::check(&tree, &managed)?;
    // The measuring thread stays on the base CPUs; so does what it starts, unless it says otherwise.
    let base = situation.online.minus(&managed);
    let tracer = Tracer::new(&["sched/sched_switch"], Some(&managed))?;
    let options = ParkOptions {
        back_end: arguments.back_end,
        scope: Scope::All,
        spread: Vec::new(),
        managed: managed.clone(),
        force: true,
    };
    let mut bench = Bench { journal, managed, tracer, signals: EndSignals::block()?, options };
    let before = snapshot(&tree);
    let mut report = bench.measure(arguments, &ways, &base)?;
    drop(bench);
    report.left_changed = differences(&before, &snapshot(&tree));
    if arguments.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
        println!("{text}");
    } else {
        print_table(&report);
    }
    if report.tasks_lost > 0 || !report.left_changed.is_empty() {
        return Err(format!(
            "{} tasks lost; left changed: {}",
            report.tasks_lost,
            report.left_changed.join(", ")
        ));
    }
    Ok(())
}

fn way(name: &str) -> Result<Way, String> {
    match name {
        "native" => Ok(Way::Native),
        "expedited" => Ok(Way::Expedited),
        "park" => Ok(Way::Park),
        _ => Err(format!("'{name}' is no way (native, expedited, park)")),
    }
}

impl Bench {
    fn measure(
        &mut self,
        arguments: &ReconfigureArguments,
        ways: &[Way],
        base: &CpuSet,
    ) -> Result<Report, String> {
        let (mut rows, mut tasks_lost, mut back_end) = (Vec::new(), 0, None);
        for threads in &arguments.threads {
            // Started before we bind ourselves, or the load would inherit that.
            // SAFETY: plain numbers; 0 names the calling thread.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 0) };
            let mut load = Load::start(*threads)?;
            affinity::set(&Tree::live(), 0, 0, base)?;
            // Whoever reconfigures does not queue behind a thousand threads; the same for every way.
            // SAFETY: plain numbers; 0 names the calling thread.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
            self.options.scope = Scope::Processes(vec![load.pid()]);
            let outcome = self.measure_under(&mut load, arguments.rounds, ways);
            let everywhere = base.union(&self.managed);
            affinity::set(&Tree::live(), 0, 0, &everywhere)?;
            let (measured, name) = outcome?;
            tasks_lost += load.threads - load.alive()?;
            rows.extend(measured);
            back_end = back_end.or(name);
            let me = tasks::myself(&Tree::live());
            self.journal.undo(|entry| entry.owner == me);
        }
        let kernel = Tree::live().text("proc/sys/kernel/osrelease").unwrap_or_default();
        let managed = self.managed.clone();
        Ok(Report {
            unit: "us",
            baseline: "native hotplug (write to the CPU's online file), same round",
            kernel,
            managed,
            back_end,
            rounds: arguments.rounds,
            rows,
            tasks_lost,
            left_changed: Vec::new(),
        })
    }

    fn measure_under(
        &mut self,
        load: &mut Load,
        rounds: usize,
        ways: &[Way],
    ) -> Result<(Vec<Row>, Option<String>), String> {
        let mut parking = None;
        if ways.contains(&Way::Park) {
            // v2 isolates from everybody; it needs no scope.
            if self.options.back_end == Some(ParkBackEnd::V2) || self.prefers_v2() {
                self.options.scope = Scope::All;
            }
            parking = Some(Parking::set_up(&mut self.journal, &self.options)?.0);
        }
        let whiches: &[Which] =
            if self.managed.len() > 1 { &[Which::One, Which::Bulk, Which::OneByOne] } else { &[Which::One] };
        let mut rows: BTreeMap<(Which, Way), Row> = BTreeMap::new();
        for round in 0..rounds {
            for which in whiches {
                for turn in 0..ways.len() {
                    if self.signals.arrived() {
                        return Err("asked to end; everything is put back".into());
                    }
                    // The order rotates: none is always first.
                    let way = ways[(turn + round) % ways.len()];
                    let row = rows.entry((*which, way)).or_insert_with(|| Row {
                        threads: load.threads,
                        way,
                        which: *which,
                        leave: Direction::default(),
                        back: Direction::default(),
                        leave_times_faster_than_native: None,
                        back_times_faster_than_native: None,
                        stayed: 0,
                    });
                    self.round_trip(way, *which, load.pid(), parking.as_ref(), row)?;
                }
            }
        }
        let mut rows: Vec<Row> = rows.into_values().collect();
        rows.iter_mut().for_each(Row::summarise);
        let natives: BTreeMap<Which, (f64, f64)> = rows
            .iter()
            .filter(|row| row.way == Way::Native)
            .map(|row| (row.which, (row.leave.call_us.median, row.back.call_us.median)))
            .collect();
        for row in rows.iter_mut() {
            let Some((leave, back)) = natives.get(&row.which) else {
                continue;
            };
            row.leave_times_faster_than_native = Some(leave / row.leave.call_us.median.max(0.001));
            row.back_times_faster_than_native = Some(back / row.back.call_us.median.max(0.001));
        }
        Ok((rows, parking.map(|parking| parking.back_end().name().to_string())))
    }

    fn prefers_v2(&self) -> bool {
        let any = ParkOptions { scope: Scope::All, ..self.options.clone() };
        eft_linux::actuators::parking::choose(&Tree::live(), &any) == Ok(ParkBackEnd::V2)
    }

    fn round_trip(
        &mut self,
        way: Way,
        which: Which,
        load: i32,
        parking: Option<&Parking>,
        row: &mut Row,
    ) -> Result<(), String> {
        let sets: Vec<CpuSet> = match which {
            Which::One => vec![CpuSet::one(self.managed.first().unwrap_or(1))],
            Which::Bulk => vec![self.managed.clone()],
            Which::OneByOne => self.managed.iter().map(CpuSet::one).collect(),
        };
        let all = sets.iter().fold(CpuSet::new(), |all, set| all.union(set));
        let members: HashSet<i32> = tasks::threads(&Tree::live(), load).into_iter().collect();
        std::thread::sleep(DWELL);
        let (begin_us, end_us, events) = self.timed(way, &sets, true, parking, &mut row.leave)?;
        let is_load = |event: &&Event| {
            event.cpu != u32::MAX
                && all.contains(event.cpu)
                && trace::next_pid(event).is_some_and(|pid| members.contains(&pid))
        };
        let leaves = |event: &&Event| all.contains(event.cpu) && members.contains(&event.pid);
        let last = |us: Option<u64>| us.map_or(0.0, |us| us.saturating_sub(begin_us) as f64);
        row.leave.edge_us.push(last(
            events.iter().filter(is_load).map(|event| event.us).filter(|us| *us >= begin_us).max(),
        ));
        row.leave.vacated_us.push(last(
            events.iter().filter(leaves).map(|event| event.us).filter(|us| *us >= begin_us).max(),
        ));
        row.stayed += events.iter().filter(is_load).filter(|event| event.us > end_us).count();
        let (begin_us, _, events) = self.timed(way, &sets, false, parking, &mut row.back)?;
        let first = events.iter().filter(|event| {
            event.us >= begin_us && all.contains(event.cpu) && trace::switches_to_user(event)
        });
        if let Some(us) = first.map(|event| event.us).min() {
            row.back.edge_us.push((us - begin_us) as f64);
        }
        Ok(())
    }

    /// One call, or one for each set, under trace. Returns begin, end, and the events until a dwell after the end.
    fn timed(
        &mut self,
        way: Way,
        sets: &[CpuSet],
        leave: bool,
        parking: Option<&Parking>,
        row: &mut Direction,
    ) -> Result<(u64, u64, Vec<Event>), String> {
        let tree = Tree::live();
        let options = HotplugOptions { force: true, native: way == Way::Native };
        let mut prepared = Vec::new();
        if leave && way == Way::Expedited {
            prepared = sets
                .iter()
                .map(|set| hotplug::prepare(&self.journal, set, options))
                .collect::<Result<Vec<_>, String>>()?;
        }
        let own = own_cpusets(&tree, sets);
        self.tracer.start()?;
        let interrupts = interrupts_elsewhere(&tree, &self.managed);
        let begin = Instant::now();
        let begin_us = now_ns() / 1000;
        match way {
            Way::Park => self.park_or_back(sets, leave, parking.ok_or("parking was not set up")?)?,
            Way::Native => {
                for cpu in sets.iter().flat_map(CpuSet::iter).collect::<Vec<u32>>() {
                    self.native(cpu, leave)?;
                }
            }
            Way::Expedited if leave => {
                for prepared in prepared {
                    hotplug::offline_prepared(&mut self.journal, prepared, options)?;
                }
            }
            Way::Expedited => {
                for set in sets {
                    hotplug::online(&mut self.journal, set, options)?;
                }
            }
        }
        let elapsed = begin.elapsed();
        let end_us = now_ns() / 1000;
        if !leave {
            sets.iter().flat_map(CpuSet::iter).for_each(probe);
        }
        row.call_us.push(elapsed.as_secs_f64() * 1e6);
        row.interrupts_elsewhere
            .push(interrupts_elsewhere(&tree, &self.managed).saturating_sub(interrupts) as f64);
        std::thread::sleep(DWELL);
        self.tracer.stop()?;
        if !leave && way == Way::Native {
            // The kernel's own way forgets our cpuset; put right outside of the time that is measured.
            own.iter().for_each(|(cpu, cpusets)| hotplug::give_back(&tree, *cpu, cpusets));
        }
        Ok((begin_us, end_us, self.tracer.read()?))
    }

    fn native(&mut self, cpu: u32, leave: bool) -> Result<(), String> {
        use eft_linux::journal::Change;
        if leave {
            self.journal.announce(Change::Offline { cpu, cpusets: Vec::new(), tasks: Vec::new() })?;
            return hotplug::set_online(self.journal.tree(), cpu, false);
        }
        hotplug::set_online(self.journal.tree(), cpu, true)?;
        let is_this = |change: &Change| matches!(change, Change::Offline { cpu: own, .. } if *own == cpu);
        let entry = self.journal.entries().iter().find(|entry| is_this(&entry.change)).map(|entry| entry.id);
        entry.map_or(Ok(()), |id| self.journal.done(id))
    }

    fn park_or_back(&mut self, sets: &[CpuSet], leave: bool, parking: &Parking) -> Result<(), String> {
        let all = sets.iter().fold(CpuSet::new(), |all, set| all.union(set));
        let mut parked = if leave { CpuSet::new() } else { all };
        for set in sets {
            parked = if leave { parked.union(set) } else { parked.minus(set) };
            parking.apply(&mut self.journal, &parked, &[])?;
        }
        Ok(())
    }
}

/// All our cpusets that name the CPUs: with parking set up, the kernel takes the CPU out of ours.
fn own_cpusets(tree: &Tree, sets: &[CpuSet]) -> Vec<(u32, Vec<(String, CpuSet)>)> {
    let with_it = |cpu: u32| {
        let cpusets = eft_linux::actuators::cpuset_v1::own(tree).into_iter();
        let named = cpusets.filter_map(|path| {
            let mut cpus: CpuSet = tree.parsed(&format!("{path}/cpuset.cpus"))?;
            cpus.insert(cpu);
            Some((path, cpus))
        });
        (cpu, named.collect())
    };
    sets.iter().flat_map(CpuSet::iter).map(with_it).collect()
}

/// Somebody who wants to run there at once: exit latency ends when it does.
fn probe(cpu: u32) {
    let thread = std::thread::spawn(move || affinity::pin_myself(cpu));
    let _ = thread.join();
}

fn interrupts_elsewhere(tree: &Tree, managed: &CpuSet) -> u64 {
    rates::read(tree)
        .interrupts
        .iter()
        .filter(|(cpu, _)| !managed.contains(**cpu))
        .map(|(_, count)| count)
        .sum()
}

impl Row {
    fn summarise(&mut self) {
        for direction in [&mut self.leave, &mut self.back] {
            direction.call_us.summarise();
            direction.edge_us.summarise();
            direction.vacated_us.summarise();
            direction.interrupts_elsewhere.summarise();
        }
    }
}

/// What must be as before.
fn snapshot(tree: &Tree) -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    let mut look = |path: String| {
        let value = tree.text(&path).unwrap_or_default();
        seen.insert(path, value);
    };
    [
        "sys/devices/system/cpu/online",
        "sys/kernel/rcu_expedited",
        "sys/devices/virtual/workqueue/cpumask",
        "proc/irq/default_smp_affinity",
    ]
    .into_iter()
    .for_each(|path| look(path.into()));
    tree.numbered("proc/irq", "")
        .into_iter()
        .for_each(|irq| look(format!("proc/irq/{irq}/smp_affinity_list")));
    for mount in eft_linux::actuators::cpuset_v1::mount(tree)
        .into_iter()
        .chain(eft_linux::actuators::cpuset_v2::mount(tree))
    {
        for name in tree.entries(&mount) {
            look(format!("{mount}/{name}/cpuset.cpus"));
        }
    }
    seen
}

fn differences(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let changed = |(path, value): (&String, &String)| {
        let now = after.get(path).map_or("gone", String::as_str);
        (now != value).then(|| format!("/{path}: {value} -> {now}"))
    };
    let new = after.keys().filter(|path| !before.contains_key(*path)).map(|path| format!("/{path}: new"));
    before.iter().filter_map(changed).chain(new).collect()
}

fn print_table(report: &Report) {
    let back_end = report.back_end.as_deref().unwrap_or("none");
    println!(
        "kernel {}, managed {}, {} rounds, parking by {back_end}",
        report.kernel, report.managed, report.rounds
    );
    println!("medians in us (spread); against native hotplug of the same run\n");
    let heading =
        "THREADS WHICH WAY LEAVE ENTRY VACATED IRQS-ELSEWHERE FASTER BACK EXIT IRQS-ELSEWHERE FASTER STAYED";
    let mut rows: Vec<Vec<String>> = vec![heading.split(' ').map(String::from).collect()];
    let time = |samples: &Samples| format!("{:.0} ({:.0})", samples.median, samples.spread);
    let times = |factor: Option<f64>| factor.map_or("-".into(), |factor| format!("{factor:.1}x"));
    rows.extend(report.rows.iter().map(|row| {
        vec![
            row.threads.to_string(),
            format!("{:?}", row.which).to_lowercase(),
            format!("{:?}", row.way).to_lowercase(),
            time(&row.leave.call_us),
            time(&row.leave.edge_us),
            time(&row.leave.vacated_us),
            format!("{:.0}", row.leave.interrupts_elsewhere.median),
            times(row.leave_times_faster_than_native),
            time(&row.back.call_us),
            time(&row.back.edge_us),
            format!("{:.0}", row.back.interrupts_elsewhere.median),
            times(row.back_times_faster_than_native),
            row.stayed.to_string(),
        ]
    }));
    print!("{}", crate::commands::cpu::columns(&rows));
    println!("\n{} tasks lost; {} values left changed", report.tasks_lost, report.left_changed.len());
}
