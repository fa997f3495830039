//! Settled: the plan stays until the load changes, except for probes at long, growing intervals.
//!
//! A probe that fails is two changes of plan, there and back. So it waits until the load has drifted from what was
//! measured, when another plan may have become better; a load that does not drift is probed once an hour, in case the
//! measurement was an accident.

use alloc::string::String;
use core::time::Duration;

use eft_base::Instant;

use super::{Adaptive, Mode, OVERLOADED_SAMPLES, PROBE_AFTER, TRIALS_MAX, WINDOW_SAMPLES};
use crate::estimate::Demand;
use crate::ladder;
use crate::observation::Observation;
use crate::policy::measure::{Measured, is_the_loads};
use crate::policy::memory::SAME_MIX;

/// A settled load that departs by more than this for one of the times below is a new load. There is no hurry: more than
/// the present plan can carry shows as overload, which is answered at once; and on a shared machine, throughput dips
/// for shorter times by itself.
const DEPARTED: f64 = 0.25;
/// For another mix of traffic, or an overload.
const CHANGED: Duration = Duration::from_secs(1);
/// For more or less of the same traffic, with work in proportion.
const LEVEL_CHANGED: Duration = Duration::from_secs(5);
/// For a machine that became slower or faster because others use it: this has to last, or the best plan would be
/// outdated when it is found.
const MACHINE_CHANGED: Duration = Duration::from_secs(30);
/// A level that changes again within this time is less worth following (thesis 4.6), so it has to last twice as long.
const RESTLESS: Duration = Duration::from_secs(600);
const DOUBLINGS_MAX: u32 = 6;
/// A throughput within this of a measured one counts as covered by that measurement.
const MEASURED: f64 = 0.05;
/// If a settled plan is overloaded at the same throughput, a program on its CPU may run in bursts, so the overload has
/// to last. Below this share of the throughput, the machine has become slower.
const AS_MUCH: f64 = 0.9;
const PROBE_AFTER_MAX: Duration = Duration::from_secs(3600);
/// A load that drifted by more than this in its throughput, its mix or the division of the work is worth a probe.
const DRIFTED: f64 = 0.05;
/// How often the load is checked for a drift once a probe is due.
const DRIFT_EVERY: Duration = Duration::from_secs(1);

/// How a settled load differs from what was measured.
#[derive(Clone, Copy, Debug, Default)]
struct Difference {
    mix: bool,
    level: bool,
    /// The load, not the machine, caused the change of level.
    by_load: bool,
}

/// Since when the settled load has differed in each way.
#[derive(Clone, Debug, Default)]
pub(super) struct Departure {
    mix: Option<Instant>,
    level: Option<Instant>,
    at_all: Option<Instant>,
    overloaded: Option<Instant>,
}

/// How often the level of a load changed, and when last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Restless {
    times: u32,
    last: Instant,
}

impl Restless {
    fn note(&mut self, time: Instant) {
        self.times = (self.doublings(time) + 1).min(DOUBLINGS_MAX);
        self.last = time;
    }

    fn doublings(&self, time: Instant) -> u32 {
        if time.saturating_since(self.last) < RESTLESS { self.times } else { 0 }
    }
}

/// Keeps since when `is` has held; returns whether for long enough.
fn lasts(since: &mut Option<Instant>, is: bool, time: Instant, patience: Duration) -> bool {
    *since = since.filter(|_| is).or(is.then_some(time));
    since.is_some_and(|since| time.saturating_since(since) >= patience)
}

impl Departure {
    /// Whether a difference has lasted long enough to act on it.
    fn is_over(&mut self, time: Instant, is: Difference, doublings: u32) -> bool {
        let mix = lasts(&mut self.mix, is.mix, time, CHANGED);
        let by_load = is.level && is.by_load;
        let level = lasts(&mut self.level, by_load, time, LEVEL_CHANGED * (1 << doublings));
        let machine = lasts(&mut self.at_all, is.level, time, MACHINE_CHANGED * (1 << doublings));
        mix || level || machine
    }

    fn stays_overloaded(&mut self, time: Instant, overloaded: bool) -> bool {
        lasts(&mut self.overloaded, overloaded, time, CHANGED)
    }
}

/// What a settled plan was measured with.
#[derive(Clone, Debug)]
pub(super) struct Settled {
    pub at: Measured,
    /// How the work was divided.
    pub work: Demand,
    pub since: Instant,
    /// When to check for a drift again, once a probe is due.
    pub check_again: Instant,
}

impl Settled {
    fn has_drifted(&self, now: &Measured, work: &Demand) -> bool {
        let moved = now.throughput.abs_diff(self.at.throughput) > self.at.throughput * DRIFTED;
        let shifted = |(name, share): (&String, &f64)| {
            (share - self.work.get(name).copied().unwrap_or(0.0)).abs() > DRIFTED
        };
        moved || now.mix.difference(&self.at.mix) > DRIFTED || work.iter().any(shifted)
    }
}

impl Adaptive {
    pub(super) fn watch(&mut self, time: Instant, seen: &Observation, settled: Settled) -> Option<String> {
        let (at, since) = (settled.at, settled.since);
        let mix = seen.indicators.mix();
        let now = self.meter.last(4, 0, mix).unwrap_or(at);
        if self.asks_for_more(time, &at, &now) {
            self.begin_load(time, seen);
            self.mode = Mode::Climbing { stride: 1, from: None, calm: 0 };
            // The present plan is too small for the load; it must not be chosen again soon.
            self.memory.bar(&self.plan.clone(), &at, time);
            return Some("more than it was measured with: overloaded, begins anew".into());
        }
        let is = Difference {
            mix: at.mix.difference(&mix) > SAME_MIX,
            level: now.throughput.abs_diff(at.throughput) > at.throughput * DEPARTED,
            // If both are saturated, the machine determines the throughput, not the load.
            by_load: is_the_loads(at.level(), now.level()) && !(at.is_saturated() && now.is_saturated()),
        };
        if self.departure.is_over(time, is, self.restless.doublings(time)) {
            self.departure = Departure::default();
            if self.known.covers(&self.plan, &now, DEPARTED, time) {
                // The plan was measured with this load too.
                self.settle(now, time);
                return None;
            }
            if !is.mix {
                self.restless.note(time);
            }
            self.begin_load(time, seen);
            self.meter.restart();
            self.mode = Mode::Climbing { stride: 1, from: None, calm: 0 };
            self.probe_wait = PROBE_AFTER;
            return Some("the load is another one: measures anew".into());
        }
        if time.saturating_since(since) >= self.probe_wait && time >= settled.check_again {
            return self.probe(time, seen, settled);
        }
        self.mode = Mode::Settled(settled);
        None
    }

    /// Whether an overload is one that the present plan was not chosen for.
    fn asks_for_more(&mut self, time: Instant, at: &Measured, now: &Measured) -> bool {
        let is_new = at.overloaded < 0.3 && !self.known.covers(&self.plan, now, MEASURED, time);
        let overloaded = self.overloaded_samples > OVERLOADED_SAMPLES && is_new;
        let grew = now.throughput > at.throughput * (1.0 + DEPARTED);
        // After a step back, more cores are known not to help, unless the load has grown.
        let unanswered = self.steps_back == 0 && now.throughput > at.throughput * AS_MUCH;
        self.departure.stays_overloaded(time, overloaded && unanswered) || (overloaded && grew)
    }

    /// A probe is due: begins one if the load has drifted.
    fn probe(&mut self, time: Instant, seen: &Observation, mut settled: Settled) -> Option<String> {
        settled.check_again = time + DRIFT_EVERY;
        let work = ladder::relative(&self.platform, &self.work);
        let was = self.meter.last(WINDOW_SAMPLES, 0, seen.indicators.mix());
        let overdue = time.saturating_since(settled.since) >= PROBE_AFTER_MAX;
        let Some(was) = was.filter(|was| overdue || settled.has_drifted(was, &work)) else {
            self.mode = Mode::Settled(settled);
            return None;
        };
        self.probe_wait = (self.probe_wait * 2).min(PROBE_AFTER_MAX);
        let demand = self.work.clone();
        if let Some(next) = self.promising(time, seen, &was, &demand) {
            self.trials = TRIALS_MAX - 1;
            // A probe is one try.
            self.peeks.clear();
            return self.attempt(next, was, demand);
        }
        // No neighbour promises more: settles at the drifted level.
        self.settle(was, time);
        None
    }

    pub(super) fn settle(&mut self, at: Measured, time: Instant) {
        let work = ladder::relative(&self.platform, &self.work);
        self.mode = Mode::Settled(Settled { at, work, since: time, check_again: time });
    }
}

#[cfg(test)]
mod tests;
