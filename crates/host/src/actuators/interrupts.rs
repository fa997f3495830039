//! Placement of interrupts. They are on the base CPUs from the beginning (Bolt, section 3.2), so that parking moves
//! none; the lazy part of parking moves the queues that the operator wants spread.

use eft_machine::CpuSet;
use serde::Serialize;

use crate::error::Error;
use crate::journal::{Change, Journal};
use crate::sensors::Tree;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InterruptReport {
    pub moved: Vec<u32>,
    /// These stay where they are until a CPU parks.
    pub spread: Vec<u32>,
    /// The kernel will not move these (per-CPU, or managed by their driver).
    pub refused: Vec<u32>,
}

const DEFAULT: &str = "proc/irq/default_smp_affinity";

fn path(irq: u32) -> String {
    format!("proc/irq/{irq}/smp_affinity_list")
}

fn mask(tree: &Tree, irq: u32) -> Option<CpuSet> {
    tree.parsed(&path(irq))
}

/// Takes every interrupt off the managed CPUs, new ones too; those in `spread` stay.
pub fn set_base(
    journal: &mut Journal,
    base: &CpuSet,
    managed: &CpuSet,
    spread: &[u32],
) -> Result<InterruptReport, Error> {
    let mut report = InterruptReport { spread: spread.to_vec(), ..InterruptReport::default() };
    let tree = journal.tree().clone();
    if tree.exists(DEFAULT) {
        journal.write(DEFAULT, &base.to_mask())?;
    }
    for irq in tree.numbered("proc/irq", "").into_iter().filter(|irq| !spread.contains(irq)) {
        leave(journal, irq, base, managed, &mut report);
    }
    Ok(report)
}

/// Moves the spread interrupts off parked CPUs.
pub fn move_off(journal: &mut Journal, base: &CpuSet, parked: &CpuSet, spread: &[u32]) -> InterruptReport {
    let mut report = InterruptReport::default();
    spread.iter().for_each(|irq| leave(journal, *irq, base, parked, &mut report));
    report
}

fn leave(journal: &mut Journal, irq: u32, base: &CpuSet, left: &CpuSet, report: &mut InterruptReport) {
    let Some(now) = mask(journal.tree(), irq).filter(|mask| !mask.and(left).is_empty()) else {
        return;
    };
    let rest = now.minus(left);
    let new = if rest.is_empty() { base.clone() } else { rest };
    match journal.write(&path(irq), &new.to_string()) {
        Ok(()) => report.moved.push(irq),
        Err(_) => report.refused.push(irq),
    }
}

/// Restores the spread interrupts' former CPUs.
pub fn move_back(journal: &mut Journal, spread: &[u32]) -> Vec<String> {
    let paths: Vec<String> = spread.iter().map(|irq| path(*irq)).collect();
    journal.undo(|entry| matches!(&entry.change, Change::Write { path, .. } if paths.contains(path)))
}
