//! Decisions with the readings that caused them, for `eft sched why`.
//!
//! Promises: bounded; every entry prints as one line; an entry is made when something was changed, tried, refused or
//! found unusable, and repeated complaints are counted, not listed again.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use core::fmt;

use serde::Serialize;

use crate::estimate;
use crate::indicators::Indicators;
use crate::observation::Observation;
use crate::plan::Plan;

/// Entries that a history keeps.
pub const ENTRIES_MAX: usize = 256;

/// What a decision was made from, in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Readings {
    pub indicators: Indicators,
    pub busiest_cpu: Option<u32>,
    /// Of that CPU, the share that the stack works or polls.
    pub busiest_share: f64,
    /// The component whose queues passed their upper mark most often, and how often.
    pub overloaded: Option<(String, u64)>,
    pub fullest_queue_share: f64,
    pub power_w: Option<f64>,
}

impl Readings {
    pub fn of(plan: &Plan, seen: &Observation) -> Self {
        let activity = estimate::seen_activity(plan, seen);
        let busiest = activity.iter().max_by(|a, b| a.1.total_cmp(b.1));
        let overloaded =
            seen.components.iter().filter(|load| load.overloads > 0).max_by_key(|load| load.overloads);
        Self {
            indicators: seen.indicators,
            busiest_cpu: busiest.map(|(cpu, _)| *cpu),
            busiest_share: busiest.map_or(0.0, |(_, share)| *share),
            overloaded: overloaded.map(|load| (load.name.clone(), load.overloads)),
            fullest_queue_share: seen.components.iter().map(|load| load.fill()).fold(0.0, f64::max),
            power_w: seen.power_w,
        }
    }
}

impl fmt::Display for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.indicators)?;
        if let Some(cpu) = self.busiest_cpu {
            write!(f, "; CPU {cpu} {:.0}%", self.busiest_share * 100.0)?;
        }
        if let Some((name, times)) = &self.overloaded {
            write!(f, "; {name} overloaded {times} times")?;
        }
        write!(f, "; queues up to {:.0}%", self.fullest_queue_share * 100.0)?;
        match self.power_w {
            Some(watts) => write!(f, "; {watts:.1} W"),
            None => Ok(()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    pub at_ns: u64,
    pub policy: &'static str,
    pub reason: String,
    pub readings: Readings,
    /// The new plan; `None` if the old one stays.
    pub plan: Option<Plan>,
    /// How often the same was said again since.
    pub repeated: u64,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan.as_ref().map_or_else(|| "plan stays".into(), |plan| format!("-> {plan}"));
        let again =
            if self.repeated > 0 { format!(" ({} times more)", self.repeated) } else { String::new() };
        let seconds = self.at_ns as f64 / 1e9;
        let line =
            format!("{seconds:.3} s {}: {}{again} [{}] {plan}", self.policy, self.reason, self.readings);
        f.pad(&line)
    }
}

#[derive(Clone, Debug, Default)]
pub struct History {
    entries: VecDeque<Entry>,
    changes: u64,
}

impl History {
    pub fn add(&mut self, entry: Entry) {
        self.changes += u64::from(entry.plan.is_some());
        if let Some(last) = self.entries.back_mut()
            && entry.plan.is_none()
            && last.plan.is_none()
            && last.reason == entry.reason
        {
            last.repeated += 1;
            return;
        }
        if self.entries.len() == ENTRIES_MAX {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    /// The oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> + '_ {
        self.entries.iter()
    }

    /// Changes of plan since the beginning.
    pub fn changes(&self) -> u64 {
        self.changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(reason: &str, plan: Option<Plan>) -> Entry {
        let readings = Readings { busiest_cpu: Some(1), ..Readings::default() };
        Entry { at_ns: 1_500_000_000, policy: "adaptive", reason: reason.into(), readings, plan, repeated: 0 }
    }

    #[test]
    fn it_is_bounded_and_counts_what_repeats() {
        let mut history = History::default();
        for _ in 0..1000 {
            history.add(entry("stale", None));
        }
        assert_eq!(history.entries().count(), 1);
        assert_eq!(history.entries().next().unwrap().repeated, 999);
        for number in 0..1000 {
            history.add(entry(&format!("{number}"), Some(Plan::default())));
        }
        assert_eq!(history.entries().count(), ENTRIES_MAX);
        assert_eq!(history.changes(), 1000);
    }

    #[test]
    fn an_entry_is_one_line() {
        let text = format!("{}", entry("climbed", Some(Plan::default())));
        assert!(!text.contains('\n') && text.starts_with("1.500 s adaptive: climbed ["), "{text}");
    }
}
