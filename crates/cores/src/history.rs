//! Decisions with the readings that caused them and their outcomes, for `eft sched why`.
//!
//! Promises: bounded; every entry prints as one line; an entry is made when something was changed, tried, refused or
//! found unusable; repetitions are counted, not listed again.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use core::fmt;

use eft_base::Instant;
use eft_component::scheduling::PolicyName;
use eft_machine::{CpuId, Share, Watts};
use serde::Serialize;

use crate::estimate;
use crate::indicators::Indicators;
use crate::observation::Observation;
use crate::plan::Plan;
use crate::wanted::Wanted;

/// Entries that a history keeps.
pub const ENTRIES_MAX: usize = 256;

/// A summary of the readings behind a decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Readings {
    pub indicators: Indicators,
    pub busiest_cpu: Option<CpuId>,
    /// The share of that CPU that the stack works or polls.
    pub busiest_share: Share,
    /// The component whose queues passed their upper mark most often, and how often.
    pub overloaded: Option<(String, u64)>,
    pub fullest_queue_share: Share,
    #[serde(rename = "power_w")]
    pub power: Option<Watts>,
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
            busiest_share: busiest.map_or(Share::NONE, |(_, share)| Share(*share)),
            overloaded: overloaded.map(|load| (load.name.clone(), load.overloads)),
            fullest_queue_share: seen.components.iter().map(|load| load.fill()).fold(Share::NONE, Share::max),
            power: seen.power,
        }
    }
}

impl fmt::Display for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.indicators)?;
        if let Some(cpu) = self.busiest_cpu {
            write!(f, "; CPU {cpu} {:.0}%", self.busiest_share.percent())?;
        }
        if let Some((name, times)) = &self.overloaded {
            write!(f, "; {name} overloaded {times} times")?;
        }
        write!(f, "; queues up to {:.0}%", self.fullest_queue_share.percent())?;
        match self.power {
            Some(watts) => write!(f, "; {watts:.1}"),
            None => Ok(()),
        }
    }
}

/// What became of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was nothing to change.
    PlanStays,
    UnderWay,
    Applied,
    /// Applied, but some component was not in its place in time.
    AppliedLate,
    /// A newer plan came before it was applied.
    Overtaken,
    Failed(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlanStays => f.pad("the plan stays"),
            Self::UnderWay => f.pad("under way"),
            Self::Applied => f.pad("applied"),
            Self::AppliedLate => f.pad("applied, though not all arrived in time"),
            Self::Overtaken => f.pad("overtaken by the next"),
            Self::Failed(why) => write!(f, "not carried out: {why}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub at: Instant,
    pub policy: PolicyName,
    pub reason: String,
    /// `None`: the decision followed from no observation.
    pub readings: Option<Readings>,
    /// The new plan; `None` if the old one stays.
    pub plan: Option<Wanted>,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan.as_ref().map_or_else(|| "plan stays".into(), |plan| format!("-> {plan}"));
        let readings = self.readings.as_ref().map(|readings| format!(" [{readings}]")).unwrap_or_default();
        let seconds = self.at.0 as f64 / 1e9;
        f.pad(&format!("{seconds:.3} s {}: {}{readings} {plan}", self.policy, self.reason))
    }
}

/// An entry as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Counts all that was ever added.
    pub number: u64,
    pub entry: Entry,
    pub outcome: Outcome,
    /// How often the same entry has been added again since.
    pub repeated: u64,
}

#[derive(Clone, Debug, Default)]
pub struct History {
    entries: VecDeque<Kept>,
    taken: u64,
    changes: u64,
}

impl History {
    pub fn add(&mut self, entry: Entry) {
        let changes = entry.plan.is_some();
        if let Some(last) = self.entries.back_mut()
            && !changes
            && last.entry.plan.is_none()
            && last.entry.reason == entry.reason
        {
            last.repeated += 1;
            return;
        }
        if self.entries.len() == ENTRIES_MAX {
            self.entries.pop_front();
        }
        self.taken += 1;
        self.changes += u64::from(changes);
        let outcome = if changes { Outcome::UnderWay } else { Outcome::PlanStays };
        self.entries.push_back(Kept { number: self.taken, entry, outcome, repeated: 0 });
    }

    /// Sets the outcome of the last decision that is under way.
    pub fn conclude(&mut self, outcome: Outcome) {
        if let Some(kept) = self.entries.iter_mut().rev().find(|kept| kept.outcome == Outcome::UnderWay) {
            kept.outcome = outcome;
        }
    }

    /// Sets the outcome of all decisions under way whose numbers match.
    pub fn conclude_where(&mut self, numbers: impl Fn(u64) -> bool, outcome: &Outcome) {
        for kept in &mut self.entries {
            if kept.outcome == Outcome::UnderWay && numbers(kept.number) {
                kept.outcome = outcome.clone();
            }
        }
    }

    /// The oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Kept> + ExactSizeIterator + '_ {
        self.entries.iter()
    }

    /// Entries since the beginning.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Changes of plan since the beginning.
    pub fn changes(&self) -> u64 {
        self.changes
    }
}

impl fmt::Display for History {
    /// One line per entry.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kept in &self.entries {
            write!(f, "{}", kept.entry)?;
            match kept.repeated {
                0 => writeln!(f)?,
                times => writeln!(f, " ({times} times more)")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
