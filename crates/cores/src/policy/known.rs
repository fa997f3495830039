//! Plans that were found best, with the loads for which they were.
//!
//! A load that comes and goes between two rates, or a machine that others use for seconds at a time, would be measured
//! anew at each turn, with all the changes of plan that this takes. A plan that was best at both ends is assumed to be
//! best between them, for a time.

use alloc::vec::Vec;
use core::time::Duration;

use eft_base::Instant;

use crate::indicators::Mix;
use crate::plan::Plan;
use crate::policy::measure::Measured;
use crate::policy::memory::SAME_MIX;
use crate::throughput::Throughput;

/// How long a result is valid.
const KNOWN_FOR: Duration = Duration::from_secs(600);
const ENTRIES_MAX: usize = 16;

#[derive(Clone, Debug)]
struct Entry {
    plan: Plan,
    mix: Mix,
    /// The least and the most throughput at which it was best.
    low: Throughput,
    high: Throughput,
    since: Instant,
}

#[derive(Clone, Debug, Default)]
pub struct Known {
    entries: Vec<Entry>,
}

impl Known {
    /// `plan` was found best for the load with which it was measured.
    pub fn note(&mut self, plan: &Plan, at: &Measured, time: Instant) {
        self.forget_old(time);
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.is_of(plan, &at.mix)) {
            (entry.low, entry.high) = (entry.low.min(at.throughput), entry.high.max(at.throughput));
            return;
        }
        if self.entries.len() == ENTRIES_MAX {
            self.entries.remove(0);
        }
        let (low, high) = (at.throughput, at.throughput);
        self.entries.push(Entry { plan: plan.clone(), mix: at.mix, low, high, since: time });
    }

    /// Whether `plan` was found best for such a load, or for less and for more of it. `slack`: how far beyond, as a share
    /// of the throughput.
    pub fn covers(&self, plan: &Plan, now: &Measured, slack: f64, time: Instant) -> bool {
        self.entries.iter().any(|entry| {
            let range = entry.low * (1.0 - slack)..=entry.high * (1.0 + slack);
            entry.is_recent(time) && entry.is_of(plan, &now.mix) && range.contains(&now.throughput)
        })
    }

    fn forget_old(&mut self, time: Instant) {
        self.entries.retain(|entry| entry.is_recent(time));
    }
}

impl Entry {
    fn is_of(&self, plan: &Plan, mix: &Mix) -> bool {
        self.mix.difference(mix) <= SAME_MIX && self.plan.is_same(plan)
    }

    fn is_recent(&self, time: Instant) -> bool {
        time.saturating_since(self.since) < KNOWN_FOR
    }
}

#[cfg(test)]
mod tests;
