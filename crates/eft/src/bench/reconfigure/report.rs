//! What is reported: rows of samples, how they compare with the kernel's own way, and the table.

use std::collections::BTreeMap;

use eft_machine::CpuSet;
use serde::Serialize;

use crate::samples::Samples;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    Native,
    Expedited,
    Park,
}

impl std::str::FromStr for Way {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "native" => Ok(Self::Native),
            "expedited" => Ok(Self::Expedited),
            "park" => Ok(Self::Park),
            _ => Err(format!("'{name}' is no way (native, expedited, park)")),
        }
    }
}

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
    /// Switches to tasks of the load on a parked CPU after the call had returned.
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
    /// Why it ended before all rounds were done; the rows hold what was measured until then.
    pub ended_early: Option<String>,
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
            stayed: 0,
        }
    }
}

/// Fills in medians, and the ratios to the kernel's own way of the same load.
pub fn summarise(rows: &mut [Row]) {
    for row in rows.iter_mut() {
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
    let heading = "THREADS WHICH WAY ROUNDS LEAVE ENTRY VACATED IRQS-ELSEWHERE FASTER BACK EXIT IRQS-ELSEWHERE FASTER STAYED";
    let mut rows: Vec<Vec<String>> = vec![heading.split(' ').map(String::from).collect()];
    let time = |samples: &Samples| format!("{:.0} ({:.0})", samples.median, samples.spread);
    let times = |factor: Option<f64>| factor.map_or("-".into(), |factor| format!("{factor:.1}x"));
    rows.extend(report.rows.iter().map(|row| {
        vec![
            row.threads.to_string(),
            format!("{:?}", row.which).to_lowercase(),
            format!("{:?}", row.way).to_lowercase(),
            row.back.call_us.samples.len().to_string(),
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
