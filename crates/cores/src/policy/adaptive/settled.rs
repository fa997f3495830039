//! Settled: nothing changes until the load does, but for a probe at long, growing intervals.

use alloc::string::String;

use super::{Adaptive, Mode, OVERLOADED_LOOKS, PROBE_AFTER_NS, TRIALS_MAX, WINDOW_LOOKS};
use crate::observation::Observation;
use crate::policy::measure::Measured;
use crate::policy::memory::SAME_MIX;

/// A settled load that departs by more than this, for so long, is another load.
const DEPARTED: f64 = 0.25;
const CHANGED_NS: u64 = 80_000_000;
/// While the stack does all that it can, others who take of its CPUs look like a change of the load. They have to stay.
const CHANGED_SATURATED_NS: u64 = 3_000_000_000;
const PROBE_AFTER_MAX_NS: u64 = 3_600_000_000_000;

impl Adaptive {
    pub(super) fn watch(
        &mut self,
        now_ns: u64,
        seen: &Observation,
        at: Measured,
        since_ns: u64,
    ) -> Option<String> {
        let mix = seen.indicators.mix();
        if self.overloaded_looks >= OVERLOADED_LOOKS + 1 && at.overloaded < 0.3 {
            self.begin_load(now_ns, seen);
            self.mode = Mode::Climbing { stride: 1, from: None, calm: 0 };
            // What carried the load so far is too little; do not come back to it soon.
            self.memory.bar(&self.plan.clone(), &at, now_ns);
            return None;
        }
        let now = self.meter.last(4, 0, mix).unwrap_or(at);
        let departed = (now.throughput - at.throughput).abs() > at.throughput * DEPARTED;
        let other_mix = at.mix.difference(&mix) > SAME_MIX;
        if !departed && !other_mix {
            self.departed_since_ns = None;
        }
        let since = self.departed_since_ns.or((departed || other_mix).then_some(now_ns));
        self.departed_since_ns = since;
        let all = at.is_saturated() && now.is_saturated() && !other_mix;
        let patience_ns = if all { CHANGED_SATURATED_NS } else { CHANGED_NS };
        if since.is_some_and(|since| now_ns.saturating_sub(since) >= patience_ns) {
            self.begin_load(now_ns, seen);
            self.meter.restart();
            self.mode = Mode::Climbing { stride: 1, from: None, calm: 0 };
            self.probe_wait_ns = PROBE_AFTER_NS;
            return Some("the load is another one: measures anew".into());
        }
        if now_ns.saturating_sub(since_ns) >= self.probe_wait_ns {
            self.probe_wait_ns = (self.probe_wait_ns * 2).min(PROBE_AFTER_MAX_NS);
            let demand = self.work.clone();
            if let Some(was) = self.meter.last(WINDOW_LOOKS, 0, mix)
                && let Some(next) = self.promising(now_ns, seen, &was, &demand)
            {
                self.trials = TRIALS_MAX - 1;
                return self.attempt(next, was, demand);
            }
            self.mode = Mode::Settled { at, since_ns: now_ns };
            return None;
        }
        self.mode = Mode::Settled { at, since_ns };
        None
    }
}
