//! The rounds: every way in turn, away and back, and what the scheduler's events say about each.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use eft_cores::park::Delays;
use eft_host::actuators::lazy::{LazyOptions, LazyWork, ParkedSince};
use eft_host::actuators::parking::Parking;
use eft_host::sensors::trace::{self, Event};
use eft_machine::{CpuId, CpuSet};

use super::Bench;
use super::report::{Row, Way, Which};
use crate::load::Load;

pub const DWELL: Duration = Duration::from_millis(6);
/// After the steps that run in the background.
const OFFLINE_AFTER: Duration = Duration::from_secs(1);

impl Bench {
    /// Fills `rows` and the name of the parking back end also when it ends early.
    pub fn measure_under(
        &mut self,
        load: &Load,
        rounds: usize,
        ways: &[Way],
        rows: &mut Vec<Row>,
        back_end: &mut Option<String>,
    ) -> Result<()> {
        let mut parking = None;
        if ways.iter().any(|way| way.parks()) {
            let set_up = Parking::set_up(&mut self.journal, &self.options)?.0;
            *back_end = Some(set_up.back_end().name().to_string());
            parking = Some(set_up);
        }
        let whiches: &[Which] =
            if self.managed.len() > 1 { &[Which::One, Which::Bulk, Which::OneByOne] } else { &[Which::One] };
        let mut found: BTreeMap<(Which, Way), Row> = BTreeMap::new();
        let outcome = self.all_rounds(load, rounds, ways, whiches, parking.as_ref(), &mut found);
        rows.extend(found.into_values());
        outcome
    }

    fn all_rounds(
        &mut self,
        load: &Load,
        rounds: usize,
        ways: &[Way],
        whiches: &[Which],
        parking: Option<&Parking>,
        rows: &mut BTreeMap<(Which, Way), Row>,
    ) -> Result<()> {
        for round in 0..rounds {
            for which in whiches {
                for turn in 0..ways.len() {
                    self.limits.check()?;
                    // The order rotates: none is always first.
                    let way = ways[(turn + round) % ways.len()];
                    let row =
                        rows.entry((*which, way)).or_insert_with(|| Row::new(load.threads, way, *which));
                    self.round_trip(way, *which, parking, row)?;
                }
            }
        }
        Ok(())
    }

    fn round_trip(&mut self, way: Way, which: Which, parking: Option<&Parking>, row: &mut Row) -> Result<()> {
        let sets: Vec<CpuSet> = match which {
            Which::One => vec![CpuSet::one(self.managed.first().unwrap_or(CpuId(1)))],
            Which::Bulk => vec![self.managed.clone()],
            Which::OneByOne => self.managed.iter().map(CpuSet::one).collect(),
        };
        let all = sets.iter().fold(CpuSet::new(), |all, set| all.union(set));
        std::thread::sleep(DWELL);
        let (begin_us, end_us, events) = self.timed(way, &sets, true, parking, &mut row.leave)?;
        // Hotplug moves every user task, so all of these must have left, including those of other programs.
        let is_on_it = |event: &&Event| event.cpu != CpuId(u32::MAX) && all.contains(event.cpu);
        let arrives = |event: &&Event| is_on_it(event) && trace::switches_to_user(event);
        let leaves = |event: &&Event| is_on_it(event) && trace::switches_from_user(event);
        let last = |us: Option<u64>| us.map_or(0.0, |us| us.saturating_sub(begin_us) as f64);
        row.leave.edge_us.push(last(
            events
                .iter()
                .filter(arrives)
                .map(|event| event.at.as_micros())
                .filter(|us| *us >= begin_us)
                .max(),
        ));
        row.leave.vacated_us.push(last(
            events.iter().filter(leaves).map(|event| event.at.as_micros()).filter(|us| *us >= begin_us).max(),
        ));
        row.stayed += events.iter().filter(arrives).filter(|event| event.at.as_micros() > end_us).count();
        self.lazy_work(way, &all, parking, row);
        let (begin_us, _, events) = self.timed(way, &sets, false, parking, &mut row.back)?;
        let first = events.iter().filter(|event| {
            event.at.as_micros() >= begin_us && all.contains(event.cpu) && trace::switches_to_user(event)
        });
        if let Some(us) = first.map(|event| event.at.as_micros()).min() {
            row.back.edge_us.push((us - begin_us) as f64);
        }
        Ok(())
    }

    /// What the holder of parked CPUs would do meanwhile, with the same code, but without waiting until it is due.
    fn lazy_work(&mut self, way: Way, parked: &CpuSet, parking: Option<&Parking>, row: &mut Row) {
        let delays = Delays { offline_after: Some(OFFLINE_AFTER), ..Delays::default() };
        let due = match way {
            Way::ParkLazy => OFFLINE_AFTER,
            Way::ParkCancel => delays.background,
            _ => return,
        };
        let Some(parking) = parking else { return };
        let parked: Vec<ParkedSince> =
            parked.iter().map(|cpu| ParkedSince { cpu, since: eft_base::Instant::ZERO }).collect();
        let begin = Instant::now();
        let mut work = LazyWork::default();
        let options = LazyOptions { delays, spread: &[], force: true };
        work.run(&mut self.journal, parking, &parked, &options, eft_base::Instant::ZERO + due);
        row.lazy_us.push(begin.elapsed().as_secs_f64() * 1e6);
        for note in work.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}
