//! Climbing: overload is answered with higher rungs, in growing strides; a step after which throughput drops abruptly
//! is undone.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use eft_base::Instant;

use super::peek::Pace;
use super::{ABRUPT, Adaptive, Mode, OVERLOADED_SAMPLES};
use crate::estimate;
use crate::indicators::{self, Mix};
use crate::observation::Observation;
use crate::plan::Plan;
use crate::policy::measure::{Measured, SETTLING_SAMPLES};
use crate::policy::memory::SAME_MIX;

/// Assumed demand of a component that does not keep up, relative to the observed one.
const HELD_BACK: f64 = 1.2;
/// Samples after which a load that grew by less than this has reached its level.
const LEVEL_SAMPLES: usize = 4;
const CALM_GROWTH: f64 = 1.05;
/// Samples after which the end of a climb is compared with its best plan, and the ratio below which it is worse.
const TOP_SAMPLES: usize = 6;
const WORSE: f64 = 0.97;
/// Samples without overload that end a climb: the other programs' share of the CPUs is known only after a few.
const CALM_SAMPLES: usize = 10;

impl Adaptive {
    pub(super) fn climb(
        &mut self,
        time: Instant,
        seen: &Observation,
        stride: usize,
        from: Option<(Plan, Measured)>,
        calm: usize,
        overloaded: bool,
    ) -> Option<String> {
        let mix = seen.indicators.mix();
        if let Some((best, was)) = &from
            && let Some(now) = self.meter.last(2, 2, mix)
            && now.throughput < was.throughput * ABRUPT
            && was.mix.difference(&mix) <= SAME_MIX
            && !indicators::is_silent(&seen.traffic)
        {
            return Some(self.step_back(time, seen, best.clone(), was, &now));
        }
        if from.is_none()
            && let Some(was) = self.calm_level(mix)
            && let Some(reason) = self.peek(time, seen, &was, Pace::Hasty)
        {
            return Some(reason);
        }
        if self.overloaded_samples >= OVERLOADED_SAMPLES
            && let Some(was) = self.meter.last(2, 0, mix)
            && !self.is_sated(&was)
            && let Some((name, plan)) = self.next_up(time, seen, stride, &was)
        {
            let from = best_of(from, (self.plan.clone(), was));
            self.change(plan);
            self.mode = Mode::Climbing { stride: (stride * 3).min(9), from: Some(from), calm: 0 };
            return Some(climbs(&name, seen));
        }
        let calm = if overloaded { 0 } else { calm + 1 };
        let on_top = self.overloaded_samples >= CALM_SAMPLES;
        if on_top
            && let Some((best, was)) = &from
            && let Some(now) = self.meter.last(TOP_SAMPLES, SETTLING_SAMPLES, mix)
            && now.throughput < was.throughput * WORSE
            && was.mix.difference(&mix) <= SAME_MIX
        {
            return Some(self.step_back(time, seen, best.clone(), was, &now));
        }
        self.mode = if calm >= CALM_SAMPLES || on_top {
            Mode::Measuring
        } else {
            Mode::Climbing { stride, from, calm }
        };
        None
    }

    /// The load's throughput once it grows no more: only then a try can be compared with it.
    fn calm_level(&self, mix: Mix) -> Option<Measured> {
        let (all, newest) =
            (self.meter.last(LEVEL_SAMPLES, 0, mix)?, self.meter.last(LEVEL_SAMPLES / 2, 0, mix)?);
        (newest.throughput < all.throughput * CALM_GROWTH).then_some(newest)
    }

    /// Goes back to the best plan of a climb, and bars the present one.
    fn step_back(
        &mut self,
        time: Instant,
        seen: &Observation,
        best: Plan,
        was: &Measured,
        now: &Measured,
    ) -> String {
        let share = now.throughput.ratio_to(was.throughput) * 100.0;
        self.memory.bar(&self.plan, was, time);
        self.best = self.best.max(was.throughput);
        self.steps_back += u32::from(self.is_crowded(seen));
        self.change(best);
        format!("took the step back: only {share:.0}% of the throughput with the same traffic")
    }

    /// The rung `stride` above the present plan, by predicted capacity.
    pub(super) fn next_up(
        &mut self,
        time: Instant,
        seen: &Observation,
        stride: usize,
        was: &Measured,
    ) -> Option<(String, Plan)> {
        let mut demand = self.demand(seen);
        // A component that does not keep up has more demand than was observed.
        if let Some(work) = estimate::overloaded(seen).and_then(|name| demand.get_mut(name)) {
            *work *= HELD_BACK;
        }
        self.rebuild(&demand, seen);
        let relative = crate::ladder::relative(&self.platform, &demand);
        let busiest = estimate::bottleneck(&estimate::utilisation(&self.platform, &self.plan, &relative));
        let above = 1.03 / busiest.max(1e-6);
        let higher = self.ladder.rungs().iter().filter(|rung| rung.capacity > above);
        // Another arrangement on the same CPUs is no step up; a trial finds out whether it is better.
        let is_sideways = |plan: &Plan| plan.used() == self.plan.used() && plan.speeds == self.plan.speeds;
        let higher = higher.filter(|rung| !is_sideways(&rung.plan));
        let allowed = higher.filter(|rung| !self.memory.is_barred(&rung.plan, was, time));
        let rungs: Vec<_> = allowed.collect();
        let rung = rungs.get(stride - 1).or(rungs.last())?;
        Some((rung.name.clone(), rung.plan.clone()))
    }
}

fn best_of(known: Option<(Plan, Measured)>, new: (Plan, Measured)) -> (Plan, Measured) {
    known.filter(|(_, was)| was.throughput >= new.1.throughput).unwrap_or(new)
}

pub(super) fn climbs(rung: &str, seen: &Observation) -> String {
    match estimate::overloaded(seen) {
        Some(who) => format!("overload of {who}: climbs to {rung}"),
        None => format!("overload: climbs to {rung}"),
    }
}
