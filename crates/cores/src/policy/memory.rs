//! Plans that turned out badly, remembered for a time that doubles with each repetition.
//!
//! What was bad for one kind of traffic at one load may be good for another, so both belong to what is remembered. A
//! saturating load counts as the same load at any throughput, since the machine determines that.

use alloc::vec::Vec;
use core::time::Duration;

use eft_base::Instant;

use crate::plan::Plan;
use crate::policy::measure::Measured;

/// The first time; then twice as long each time.
const FIRST: Duration = Duration::from_secs(60);
const DOUBLINGS_MAX: u32 = 6;
const ENTRIES_MAX: usize = 64;
/// Loads within this factor of each other count as the same.
const SAME_LOAD: f64 = 1.3;
/// Mixes closer than this on every axis count as the same.
pub const SAME_MIX: f64 = 0.15;

#[derive(Clone, Debug)]
struct Entry {
    plan: Plan,
    load: Measured,
    until: Instant,
    times: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Memory {
    entries: Vec<Entry>,
}

impl Memory {
    /// Keeps a plan from being tried for a while.
    pub fn bar(&mut self, plan: &Plan, load: &Measured, time: Instant) {
        let until = |times: u32| time + FIRST * (1 << times.min(DOUBLINGS_MAX));
        if let Some(known) = self.entries.iter_mut().find(|entry| entry.is_of(plan, load)) {
            known.times = known.times.saturating_add(1);
            known.until = until(known.times);
            return;
        }
        if self.entries.len() == ENTRIES_MAX {
            let oldest = (0..ENTRIES_MAX).min_by_key(|index| self.entries[*index].until).unwrap_or(0);
            self.entries.swap_remove(oldest);
        }
        let until = until(0);
        self.entries.push(Entry { plan: plan.clone(), load: *load, until, times: 0 });
    }

    pub fn is_barred(&self, plan: &Plan, load: &Measured, time: Instant) -> bool {
        self.entries.iter().any(|entry| entry.until > time && entry.is_of(plan, load))
    }
}

impl Entry {
    fn is_of(&self, plan: &Plan, load: &Measured) -> bool {
        is_same_load(&self.load, load) && self.plan.is_same(plan)
    }
}

/// Whether both have the same kind of traffic and either the same throughput or saturation.
pub fn is_same_load(one: &Measured, other: &Measured) -> bool {
    let (low, high) = (one.throughput.min(other.throughput), one.throughput.max(other.throughput));
    let as_much = high <= low * SAME_LOAD || (one.is_saturated() && other.is_saturated());
    as_much && one.mix.difference(&other.mix) <= SAME_MIX
}

#[cfg(test)]
mod tests;
