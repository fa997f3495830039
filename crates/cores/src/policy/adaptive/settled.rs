//! Settled: nothing changes until the load does, but for a probe at long, growing intervals.
//!
//! A probe that fails is two changes of plan, there and back. So it waits until the load is no longer quite what was
//! measured, when another plan may have become the better one; a load that stays as it is sees one in an hour, in case what
//! was measured was an accident.

use alloc::string::String;

use super::{Adaptive, Mode, OVERLOADED_LOOKS, PROBE_AFTER_NS, TRIALS_MAX, WINDOW_LOOKS};
use crate::estimate::Demand;
use crate::ladder;
use crate::observation::Observation;
use crate::policy::measure::Measured;
use crate::policy::memory::SAME_MIX;

/// A settled load that departs by more than this, for so long, is another load. There is no hurry: what the present plan
/// cannot carry shows as overload, which is answered at once; and a shared machine makes shorter dents of its own.
const DEPARTED: f64 = 0.25;
const CHANGED_NS: u64 = 1_000_000_000;
/// While the stack does all that it can, others who take of its CPUs look like a change of the load. They have to stay.
const CHANGED_SATURATED_NS: u64 = 3_000_000_000;
const PROBE_AFTER_MAX_NS: u64 = 3_600_000_000_000;
/// A load that moved by more than this, as a share of its throughput, on an axis of its mix, or in how the work is
/// divided, is worth a probe.
const DRIFTED: f64 = 0.05;
/// How often a load whose probe is due is looked at for that.
const DRIFT_EVERY_NS: u64 = 1_000_000_000;

/// What a settled plan was measured with.
#[derive(Clone, Debug)]
pub(super) struct Settled {
    pub at: Measured,
    /// How the work was divided.
    pub work: Demand,
    pub since_ns: u64,
    /// The probe that is due waits for a drift until then.
    pub look_again_ns: u64,
}

impl Settled {
    fn has_drifted(&self, now: &Measured, work: &Demand) -> bool {
        let moved = (now.throughput - self.at.throughput).abs() > self.at.throughput * DRIFTED;
        let shifted = |(name, share): (&String, &f64)| {
            (share - self.work.get(name).copied().unwrap_or(0.0)).abs() > DRIFTED
        };
        moved || now.mix.difference(&self.at.mix) > DRIFTED || work.iter().any(shifted)
    }
}

impl Adaptive {
    pub(super) fn watch(&mut self, now_ns: u64, seen: &Observation, settled: Settled) -> Option<String> {
        let (at, since_ns) = (settled.at, settled.since_ns);
        let mix = seen.indicators.mix();
        if self.overloaded_looks > OVERLOADED_LOOKS && at.overloaded < 0.3 {
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
            if self.known.covers(&self.plan, &now, DEPARTED, now_ns) {
                // It was measured for this load, too.
                self.departed_since_ns = None;
                self.settle(now, now_ns);
                return None;
            }
            self.begin_load(now_ns, seen);
            self.meter.restart();
            self.mode = Mode::Climbing { stride: 1, from: None, calm: 0 };
            self.probe_wait_ns = PROBE_AFTER_NS;
            return Some("the load is another one: measures anew".into());
        }
        if now_ns.saturating_sub(since_ns) >= self.probe_wait_ns && now_ns >= settled.look_again_ns {
            return self.probe(now_ns, seen, settled);
        }
        self.mode = Mode::Settled(settled);
        None
    }

    /// A probe is due, if the load gives reason for one.
    fn probe(&mut self, now_ns: u64, seen: &Observation, mut settled: Settled) -> Option<String> {
        settled.look_again_ns = now_ns + DRIFT_EVERY_NS;
        let work = ladder::relative(&self.platform, &self.work);
        let was = self.meter.last(WINDOW_LOOKS, 0, seen.indicators.mix());
        let overdue = now_ns.saturating_sub(settled.since_ns) >= PROBE_AFTER_MAX_NS;
        let Some(was) = was.filter(|was| overdue || settled.has_drifted(was, &work)) else {
            self.mode = Mode::Settled(settled);
            return None;
        };
        self.probe_wait_ns = (self.probe_wait_ns * 2).min(PROBE_AFTER_MAX_NS);
        let demand = self.work.clone();
        if let Some(next) = self.promising(now_ns, seen, &was, &demand) {
            self.trials = TRIALS_MAX - 1;
            return self.attempt(next, was, demand);
        }
        // What it drifted to is what it is now.
        self.settle(was, now_ns);
        None
    }

    pub(super) fn settle(&mut self, at: Measured, now_ns: u64) {
        let work = ladder::relative(&self.platform, &self.work);
        self.mode = Mode::Settled(Settled { at, work, since_ns: now_ns, look_again_ns: now_ns });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indicators::Mix;

    #[test]
    fn noise_is_no_drift_and_a_twentieth_is() {
        let work = |tcp: f64| Demand::from([("tcp".into(), tcp), ("ip".into(), 1.0 - tcp)]);
        let at = Measured { throughput: 1000.0, ..Measured::default() };
        let settled = Settled { at, work: work(0.6), since_ns: 0, look_again_ns: 0 };
        assert!(!settled.has_drifted(&Measured { throughput: 960.0, ..at }, &work(0.63)));
        assert!(settled.has_drifted(&Measured { throughput: 940.0, ..at }, &work(0.6)));
        assert!(settled.has_drifted(&at, &work(0.67)));
        let mix = Mix { empty: 0.06, ..Mix::default() };
        assert!(settled.has_drifted(&Measured { mix, ..at }, &work(0.6)));
    }
}
