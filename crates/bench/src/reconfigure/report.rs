//! What is reported: rows of samples, how they compare with the kernel's own way, and the table.

use std::collections::BTreeMap;

use eft_machine::CpuSet;
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::figure::{Aim, Figure};
use crate::samples::Samples;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    Native,
    Expedited,
    Park,
    /// Park, all of the lazy work, the CPU taken offline for real included, and back.
    ParkLazy,
    /// Park, the lazy work until before the CPU would go offline, and back, which cancels the rest.
    ParkCancel,
    /// The kernel's own, where it has it.
    Bolt,
}

impl Way {
    pub const ALL: [Way; 6] =
        [Way::Native, Way::Expedited, Way::Park, Way::ParkLazy, Way::ParkCancel, Way::Bolt];

    pub fn name(self) -> &'static str {
        match self {
            Way::Native => "native",
            Way::Expedited => "expedited",
            Way::Park => "park",
            Way::ParkLazy => "park-lazy",
            Way::ParkCancel => "park-cancel",
            Way::Bolt => "bolt",
        }
    }

    pub fn parks(self) -> bool {
        matches!(self, Way::Park | Way::ParkLazy | Way::ParkCancel)
    }
}

impl std::str::FromStr for Way {
    type Err = UnknownWay;

    fn from_str(name: &str) -> Result<Self, UnknownWay> {
        Way::ALL.into_iter().find(|way| way.name() == name).ok_or_else(|| UnknownWay(name.into()))
    }
}

#[derive(Debug, PartialEq, Eq, Error)]
#[error("'{0}' is no way ({names})", names = Way::ALL.map(Way::name).join(", "))]
pub struct UnknownWay(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// The first managed CPU.
    One,
    /// All of them in one call.
    Bulk,
    /// All of them, one call each.
    OneByOne,
}

#[derive(Default, Serialize)]
pub struct Direction {
    /// Until the call returns.
    pub call_us: Samples,
    /// Leaving: the last switch to a task that is no kernel thread. Coming back: the first such switch.
    pub edge_us: Samples,
    /// Leaving: until the last such task was switched away from, if one ran on without a switch.
    pub vacated_us: Samples,
    /// Interrupts on the CPUs that stay, while the call ran.
    pub interrupts_elsewhere: Samples,
}

#[derive(Serialize)]
pub struct Row {
    pub threads: usize,
    pub way: Way,
    pub which: Which,
    pub leave: Direction,
    pub back: Direction,
    pub leave_times_faster_than_native: Option<f64>,
    pub back_times_faster_than_native: Option<f64>,
    /// Background work between leaving and coming back.
    pub lazy_us: Samples,
    /// Switches to tasks that are no kernel threads on a parked CPU after the call had returned.
    pub stayed: usize,
}

#[derive(Serialize)]
pub struct Report {
    pub unit: &'static str,
    pub baseline: &'static str,
    pub kernel: String,
    pub managed: CpuSet,
    pub back_end: Option<String>,
    /// Asked for; how many a row has is the number of its samples.
    pub rounds: usize,
    pub rows: Vec<Row>,
    pub tasks_lost: usize,
    /// What is not as it was before; empty is right.
    pub left_changed: Vec<String>,
    /// What the kernel would not do of the lazy work, each once.
    pub notes: Vec<String>,
    /// Why it ended before all rounds were done; the rows hold what was measured until then.
    #[serde(serialize_with = "as_line")]
    pub ended_early: Option<anyhow::Error>,
}

fn as_line<S: Serializer>(reason: &Option<anyhow::Error>, serializer: S) -> Result<S::Ok, S::Error> {
    reason.as_ref().map(|reason| format!("{reason:#}")).serialize(serializer)
}

impl Row {
    pub fn new(threads: usize, way: Way, which: Which) -> Self {
        Self {
            threads,
            way,
            which,
            leave: Direction::default(),
            back: Direction::default(),
            leave_times_faster_than_native: None,
            back_times_faster_than_native: None,
            lazy_us: Samples::default(),
            stayed: 0,
        }
    }
}

/// Fills in medians, and the ratios to the kernel's own way of the same load.
pub fn summarise(rows: &mut [Row]) {
    for row in rows.iter_mut() {
        row.lazy_us.summarise();
        for direction in [&mut row.leave, &mut row.back] {
            direction.call_us.summarise();
            direction.edge_us.summarise();
            direction.vacated_us.summarise();
            direction.interrupts_elsewhere.summarise();
        }
    }
    let natives: BTreeMap<Which, (f64, f64)> = rows
        .iter()
        .filter(|row| row.way == Way::Native)
        .map(|row| (row.which, (row.leave.call_us.median, row.back.call_us.median)))
        .collect();
    for row in rows.iter_mut().filter(|row| !row.back.call_us.samples.is_empty()) {
        if let Some((leave, back)) = natives.get(&row.which) {
            row.leave_times_faster_than_native = Some(leave / row.leave.call_us.median.max(0.001));
            row.back_times_faster_than_native = Some(back / row.back.call_us.median.max(0.001));
        }
    }
}

pub fn print_table(report: &Report) {
    let back_end = report.back_end.as_deref().unwrap_or("none");
    println!(
        "kernel {}, managed {}, {} rounds, parking by {back_end}",
        report.kernel, report.managed, report.rounds
    );
    println!("medians in us (spread); against native hotplug of the same run\n");
    let heading = "THREADS WHICH WAY ROUNDS LEAVE ENTRY VACATED IRQS-ELSEWHERE FASTER LAZY BACK EXIT IRQS-ELSEWHERE FASTER STAYED";
    let mut rows: Vec<Vec<String>> = vec![heading.split(' ').map(String::from).collect()];
    let time = |samples: &Samples| format!("{:.0} ({:.0})", samples.median, samples.spread);
    let times = |factor: Option<f64>| factor.map_or("-".into(), |factor| format!("{factor:.1}x"));
    rows.extend(report.rows.iter().map(|row| {
        vec![
            row.threads.to_string(),
            format!("{:?}", row.which).to_lowercase(),
            row.way.name().to_string(),
            row.back.call_us.samples.len().to_string(),
            time(&row.leave.call_us),
            time(&row.leave.edge_us),
            time(&row.leave.vacated_us),
            format!("{:.0}", row.leave.interrupts_elsewhere.median),
            times(row.leave_times_faster_than_native),
            if row.lazy_us.samples.is_empty() { "-".into() } else { time(&row.lazy_us) },
            time(&row.back.call_us),
            time(&row.back.edge_us),
            format!("{:.0}", row.back.interrupts_elsewhere.median),
            times(row.back_times_faster_than_native),
            row.stayed.to_string(),
        ]
    }));
    print!("{}", eft_text::columns(&rows));
    println!("\n{} tasks lost; {} values left changed", report.tasks_lost, report.left_changed.len());
}

/// By which factor each way must beat native hotplug, by the load's threads (`None`: with any number).
const AIMS: [(Way, Option<usize>, Where, f64); 4] = [
    (Way::Park, Some(200), Where::Leave, 50.0),
    (Way::Park, Some(1000), Where::Leave, 20.0),
    (Way::Expedited, None, Where::Leave, 8.0),
    (Way::Expedited, None, Where::Back, 2.0),
];

/// Aims of the ways and loads that were asked for which no round has measured: the run ended before.
pub fn unmeasured(rows: &[Row], ways: &[Way], threads: &[usize]) -> Vec<String> {
    let has = |way: Way, threads: usize| {
        let is_it = |row: &&Row| row.way == way && row.which == Which::One && row.threads == threads;
        rows.iter().find(is_it).is_some_and(|row| !row.back.call_us.samples.is_empty())
    };
    if !ways.contains(&Way::Native) {
        return Vec::new();
    }
    let mut missing = Vec::new();
    for load in threads {
        for (way, _, at, _) in
            AIMS.iter().filter(|(way, of, ..)| ways.contains(way) && of.is_none_or(|of| of == *load))
        {
            if !has(*way, *load) || !has(Way::Native, *load) {
                missing.push(format!("native hotplug beside {}, {}, {load} threads", way.name(), at.name()));
            }
        }
    }
    missing
}

#[derive(Clone, Copy, PartialEq)]
enum Where {
    Leave,
    Back,
}

impl Where {
    fn name(self) -> &'static str {
        match self {
            Where::Leave => "leave",
            Where::Back => "back",
        }
    }
}

/// Native hotplug beside each way, of the same rounds, for one CPU.
pub fn figures(rows: &[Row]) -> Vec<Figure> {
    let mut all = Vec::new();
    for row in rows.iter().filter(|row| row.way != Way::Native && row.which == Which::One) {
        let is_native = |other: &&Row| {
            other.way == Way::Native && other.which == row.which && other.threads == row.threads
        };
        let Some(native) = rows.iter().find(is_native) else { continue };
        for place in [Where::Leave, Where::Back] {
            let (own, natives) = match place {
                Where::Leave => (&row.leave, &native.leave),
                Where::Back => (&row.back, &native.back),
            };
            let what = format!("native hotplug, {}, {} threads", place.name(), row.threads);
            let aim = AIMS.iter().find(|(way, threads, at, _)| {
                *way == row.way && *at == place && threads.is_none_or(|threads| threads == row.threads)
            });
            all.push(Figure {
                aim: aim.map(|(.., times)| Aim::AtLeast(*times)),
                ..Figure::new(what, "us", natives.call_us.samples.clone())
                    .beside(row.way.name(), own.call_us.samples.clone())
            });
        }
    }
    all
}

#[cfg(test)]
mod tests;
