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
use crate::policy::measure::{Measured, is_the_loads};
use crate::policy::memory::SAME_MIX;

/// A settled load that departs by more than this, for so long, is another load. There is no hurry: more than the present
/// plan can carry shows as overload, which is answered at once; and a shared machine makes shorter dents of its own.
const DEPARTED: f64 = 0.25;
/// Other traffic, or an overload.
const CHANGED_NS: u64 = 1_000_000_000;
/// More or less of the same traffic, with as much more or less work.
const LEVEL_CHANGED_NS: u64 = 5_000_000_000;
/// If it is the machine that became slower or faster, since others use it, that has to stay: what is best on it then may
/// be no longer so when it has been found.
const MACHINE_CHANGED_NS: u64 = 30_000_000_000;
/// A level that changes again within this is less worth following each time (thesis 4.6), so it has to stay twice as long.
const RESTLESS_NS: u64 = 600_000_000_000;
const DOUBLINGS_MAX: u32 = 6;
/// What a plan was measured with, it is measured with again within this.
const MEASURED: f64 = 0.05;
/// A settled plan that carries as much as ever and is overloaded may stand beside a program whose turns on the CPU come and
/// go, so the overload has to last; one that carries less than this share of it, too, is on a slower machine.
const AS_MUCH: f64 = 0.9;
const PROBE_AFTER_MAX_NS: u64 = 3_600_000_000_000;
/// A load that moved by more than this, as a share of its throughput, on an axis of its mix, or in how the work is
/// divided, is worth a probe.
const DRIFTED: f64 = 0.05;
/// How often a load whose probe is due is looked at for that.
const DRIFT_EVERY_NS: u64 = 1_000_000_000;

/// How a settled load differs from what was measured.
#[derive(Clone, Copy, Debug, Default)]
struct Difference {
    mix: bool,
    level: bool,
    /// By the load's own doing.
    by_load: bool,
}

/// Since when the settled load has been otherwise.
#[derive(Clone, Debug, Default)]
pub(super) struct Departure {
    mix_ns: Option<u64>,
    level_ns: Option<u64>,
    at_all_ns: Option<u64>,
    overloaded_ns: Option<u64>,
}

/// How often the level of a load changed, and when last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Restless {
    times: u32,
    last_ns: u64,
}

impl Restless {
    fn note(&mut self, now_ns: u64) {
        self.times = (self.doublings(now_ns) + 1).min(DOUBLINGS_MAX);
        self.last_ns = now_ns;
    }

    fn doublings(&self, now_ns: u64) -> u32 {
        if now_ns.saturating_sub(self.last_ns) < RESTLESS_NS { self.times } else { 0 }
    }
}

/// Since when something is so, and whether that is long enough.
fn lasts(since: &mut Option<u64>, is: bool, now_ns: u64, patience_ns: u64) -> bool {
    *since = since.filter(|_| is).or(is.then_some(now_ns));
    since.is_some_and(|since| now_ns.saturating_sub(since) >= patience_ns)
}

impl Departure {
    /// Whether it has lasted long enough to be believed.
    fn is_over(&mut self, now_ns: u64, is: Difference, doublings: u32) -> bool {
        let mix = lasts(&mut self.mix_ns, is.mix, now_ns, CHANGED_NS);
        let by_load = is.level && is.by_load;
        let level = lasts(&mut self.level_ns, by_load, now_ns, LEVEL_CHANGED_NS << doublings);
        let machine = lasts(&mut self.at_all_ns, is.level, now_ns, MACHINE_CHANGED_NS << doublings);
        mix || level || machine
    }

    fn stays_overloaded(&mut self, now_ns: u64, overloaded: bool) -> bool {
        lasts(&mut self.overloaded_ns, overloaded, now_ns, CHANGED_NS)
    }
}

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
        let now = self.meter.last(4, 0, mix).unwrap_or(at);
        if self.asks_for_more(now_ns, &at, &now) {
            self.begin_load(now_ns, seen);
            self.mode = Mode::Climbing { stride: 1, from: None, calm: 0 };
            // What carried the load so far is too little; do not come back to it soon.
            self.memory.bar(&self.plan.clone(), &at, now_ns);
            return Some("more than it was measured with: overloaded, begins anew".into());
        }
        let is = Difference {
            mix: at.mix.difference(&mix) > SAME_MIX,
            level: (now.throughput - at.throughput).abs() > at.throughput * DEPARTED,
            // What is full both times does what the machine lets it.
            by_load: is_the_loads(at.level(), now.level()) && !(at.is_saturated() && now.is_saturated()),
        };
        if self.departure.is_over(now_ns, is, self.restless.doublings(now_ns)) {
            self.departure = Departure::default();
            if self.known.covers(&self.plan, &now, DEPARTED, now_ns) {
                // It was measured for this load, too.
                self.settle(now, now_ns);
                return None;
            }
            if !is.mix {
                self.restless.note(now_ns);
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

    /// Whether an overload is one that the present plan was not chosen for.
    fn asks_for_more(&mut self, now_ns: u64, at: &Measured, now: &Measured) -> bool {
        let is_new = at.overloaded < 0.3 && !self.known.covers(&self.plan, now, MEASURED, now_ns);
        let overloaded = self.overloaded_looks > OVERLOADED_LOOKS && is_new;
        let grew = now.throughput > at.throughput * (1.0 + DEPARTED);
        // Whether more cores are an answer was tried, unless the load is another one.
        let unanswered = self.steps_back == 0 && now.throughput > at.throughput * AS_MUCH;
        self.departure.stays_overloaded(now_ns, overloaded && unanswered) || (overloaded && grew)
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

    const S: u64 = 1_000_000_000;
    const LOADS: Difference = Difference { mix: false, level: true, by_load: true };
    const MACHINES: Difference = Difference { by_load: false, ..LOADS };
    const MIX: Difference = Difference { mix: true, ..MACHINES };
    const NONE: Difference = Difference { mix: false, level: false, by_load: false };

    /// After how many s of it.
    fn believed_after(is: Difference, doublings: u32) -> Option<u64> {
        let mut departure = Departure::default();
        (0..10_000).find(|at| departure.is_over(at * S, is, doublings))
    }

    #[test]
    fn other_traffic_is_believed_sooner_than_more_of_it_and_that_sooner_than_a_slower_machine() {
        assert_eq!(
            [MIX, LOADS, MACHINES, NONE].map(|is| believed_after(is, 0)),
            [Some(1), Some(5), Some(30), None]
        );
        assert_eq!(
            [MIX, LOADS, MACHINES, NONE].map(|is| believed_after(is, 3)),
            [Some(1), Some(40), Some(240), None]
        );
        let mut departure = Departure::default();
        for at in 1..100 {
            // Some seconds of the load's own now and then are not on end.
            assert!(!departure.is_over(at * S, if at % 5 == 0 { NONE } else { LOADS }, 0), "{at}");
        }
    }

    #[test]
    fn a_level_that_keeps_changing_has_to_stay_longer_each_time_until_it_has_been_calm() {
        let mut restless = Restless::default();
        for times in 0..20 {
            assert_eq!(restless.doublings(times * S), (times as u32).min(DOUBLINGS_MAX));
            restless.note(times * S);
        }
        assert_eq!(restless.doublings(19 * S + RESTLESS_NS), 0);
    }

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
