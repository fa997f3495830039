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
mod tests {
    use super::*;
    use crate::indicators::Mix;
    use crate::throughput::Throughput;
    use eft_base::time::nanos;

    fn load(throughput: f64) -> Measured {
        Measured { throughput: Throughput(throughput), ..Measured::default() }
    }

    #[test]
    fn what_failed_is_barred_longer_each_time_and_only_for_its_load() {
        let mut memory = Memory::default();
        let plan = Plan::default();
        memory.bar(&plan, &load(100.0), Instant::ZERO);
        assert!(memory.is_barred(&plan, &load(110.0), Instant(nanos(FIRST) - 1)));
        assert!(!memory.is_barred(&plan, &load(110.0), Instant::ZERO + FIRST));
        assert!(!memory.is_barred(&plan, &load(200.0), Instant(1)));
        let other = Measured { mix: Mix { size: 0.9, ..Mix::default() }, ..load(100.0) };
        assert!(!memory.is_barred(&plan, &other, Instant(1)));
        memory.bar(&plan, &load(100.0), Instant::ZERO + FIRST);
        assert!(memory.is_barred(&plan, &load(100.0), Instant(3 * nanos(FIRST) - 1)));
        for _ in 0..100 {
            memory.bar(&plan, &load(1e9), Instant(u64::MAX - 5));
        }
        assert!(memory.entries.len() <= ENTRIES_MAX);
    }

    #[test]
    fn a_load_that_takes_all_is_one_load_whatever_the_machine_gives() {
        let all = |throughput: f64| Measured { busy: 0.97, ..load(throughput) };
        assert!(is_same_load(&all(20.0), &all(40.0)));
        assert!(!is_same_load(&all(20.0), &load(40.0)));
        // Less work on a faster plan: nothing that was seen under different plans tells that it is the same load.
        assert!(!is_same_load(&all(20.0), &Measured { busy: 0.64, ..load(120.0) }));
    }
}
