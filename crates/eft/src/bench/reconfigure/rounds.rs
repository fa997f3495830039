//! The rounds: every way in turn, away and back, and what the scheduler's events say about each.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use eft_cores::park::ParkBackEnd;
use eft_linux::actuators::parking::{self, ParkOptions, Parking};
use eft_linux::actuators::scope::Scope;
use eft_linux::sensors::trace::{self, Event};
use eft_linux::sensors::{Tree, tasks};
use eft_machine::CpuSet;

use super::Bench;
use super::report::{Row, Way, Which};
use crate::bench::load::Load;

pub const DWELL: Duration = Duration::from_millis(6);

impl Bench {
    /// Fills `rows` and the name of the parking back end also when it ends early.
    pub fn measure_under(
        &mut self,
        load: &Load,
        rounds: usize,
        ways: &[Way],
        rows: &mut Vec<Row>,
        back_end: &mut Option<String>,
    ) -> Result<(), String> {
        let mut parking = None;
        if ways.contains(&Way::Park) {
            // v2 isolates from everybody; it needs no scope.
            if self.options.back_end == Some(ParkBackEnd::V2) || self.prefers_v2() {
                self.options.scope = Scope::All;
            }
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
    ) -> Result<(), String> {
        for round in 0..rounds {
            for which in whiches {
                for turn in 0..ways.len() {
                    if let Some(reason) = self.limits.reached() {
                        return Err(reason);
                    }
                    // The order rotates: none is always first.
                    let way = ways[(turn + round) % ways.len()];
                    let row =
                        rows.entry((*which, way)).or_insert_with(|| Row::new(load.threads, way, *which));
                    self.round_trip(way, *which, load.pid(), parking, row)?;
                }
            }
        }
        Ok(())
    }

    fn prefers_v2(&self) -> bool {
        let any = ParkOptions { scope: Scope::All, ..self.options.clone() };
        parking::choose(&Tree::live(), &any) == Ok(ParkBackEnd::V2)
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
}
