//! Plans that turned out badly, remembered for a time that doubles with each repetition.
//!
//! What was bad for one kind of traffic at one load may be good for another, so both belong to what is remembered.

use alloc::vec::Vec;

use crate::indicators::Mix;
use crate::plan::Plan;

/// The first time; then twice as long each time.
const FIRST_NS: u64 = 60_000_000_000;
const DOUBLINGS_MAX: u32 = 6;
const ENTRIES_MAX: usize = 64;
/// Loads within this factor of each other are one.
const SAME_LOAD: f64 = 1.3;
/// Mixes closer than this on every axis are one.
pub const SAME_MIX: f64 = 0.15;

#[derive(Clone, Debug)]
struct Entry {
    plan: Plan,
    mix: Mix,
    throughput: f64,
    until_ns: u64,
    times: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Memory {
    entries: Vec<Entry>,
}

impl Memory {
    /// Keeps a plan from being tried for a while.
    pub fn bar(&mut self, plan: &Plan, mix: &Mix, throughput: f64, now_ns: u64) {
        let until = |times: u32| now_ns.saturating_add(FIRST_NS << times.min(DOUBLINGS_MAX));
        if let Some(known) = self.entries.iter_mut().find(|entry| entry.is_of(plan, mix, throughput)) {
            known.times = known.times.saturating_add(1);
            known.until_ns = until(known.times);
            return;
        }
        if self.entries.len() == ENTRIES_MAX {
            let oldest = (0..ENTRIES_MAX).min_by_key(|index| self.entries[*index].until_ns).unwrap_or(0);
            self.entries.swap_remove(oldest);
        }
        let until_ns = until(0);
        self.entries.push(Entry { plan: plan.clone(), mix: *mix, throughput, until_ns, times: 0 });
    }

    pub fn is_barred(&self, plan: &Plan, mix: &Mix, throughput: f64, now_ns: u64) -> bool {
        self.entries.iter().any(|entry| entry.until_ns > now_ns && entry.is_of(plan, mix, throughput))
    }
}

impl Entry {
    fn is_of(&self, plan: &Plan, mix: &Mix, throughput: f64) -> bool {
        let (low, high) = (self.throughput.min(throughput), self.throughput.max(throughput));
        high <= low * SAME_LOAD && self.mix.difference(mix) <= SAME_MIX && self.plan.is_same(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_barred_longer_each_time_and_only_for_its_load() {
        let mut memory = Memory::default();
        let (plan, mix) = (Plan::default(), Mix::default());
        memory.bar(&plan, &mix, 100.0, 0);
        assert!(memory.is_barred(&plan, &mix, 110.0, FIRST_NS - 1));
        assert!(!memory.is_barred(&plan, &mix, 110.0, FIRST_NS));
        assert!(!memory.is_barred(&plan, &mix, 200.0, 1));
        assert!(!memory.is_barred(&plan, &Mix { size: 0.9, ..mix }, 100.0, 1));
        memory.bar(&plan, &mix, 100.0, FIRST_NS);
        assert!(memory.is_barred(&plan, &mix, 100.0, FIRST_NS * 3 - 1));
        for _ in 0..100 {
            memory.bar(&plan, &mix, 1e9, u64::MAX - 5);
        }
        assert!(memory.entries.len() <= ENTRIES_MAX);
    }
}
