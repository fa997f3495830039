//! A load, or a machine, that is unlike what was swept: [`Adaptive`] finds its plan.
//!
//! Loads of nearly the same [`Mix`] may take different work: the mix of a web server with middle-sized files is nearly that of bulk.
//! So how near a mix is does not show whether a profile applies. What the chosen plan does shows it.

use alloc::boxed::Box;
use alloc::string::String;
use core::time::Duration;

use eft_base::Instant;
use eft_component::scheduling::Objective;

use super::{GAIN_MIN, MOVED_SAMPLES, Profile, WINDOW_SAMPLES};
use crate::estimate::{self, Demand};
use crate::indicators::Mix;
use crate::ladder::{self, Aims, Ladder};
use crate::observation::Observation;
use crate::plan::Plan;
use crate::policy::adaptive::Adaptive;
use crate::policy::follows::MIX_MOVED;
use crate::policy::measure::{Measured, SETTLING_SAMPLES};

/// A saturated plan that has less than this share of what it had with the nearest swept load takes more work for the same. In the
/// simulator loads of which there are profiles have 94% of that or more, though these are of another model and another draw of the
/// machine; a load that the profiles were wrong about had 70%.
const LIKE_MIN: f64 = 0.85;
/// A load that has had its plan for so long is worth tries, some of which cost throughput.
const LASTS: Duration = Duration::from_secs(3);
/// As a ladder's rungs: what promises less is within the error of predictions.
const ROOM_MIN: f64 = 1.03;

#[derive(Clone, Debug)]
pub(super) struct Exploration {
    adaptive: Box<Adaptive>,
    /// Of the load.
    mix: Mix,
    /// What the profiles chose, until something is found that is not worse.
    fallback: Option<(Plan, Measured)>,
}

/// Work of the components under one plan, summed over samples: while servers take turns on a CPU, one sample shows some of them only.
#[derive(Clone, Debug, Default)]
pub(super) struct Work(Demand);

impl Work {
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    pub(super) fn add(&mut self, demand: Demand) {
        for (name, work) in demand {
            *self.0.entry(name).or_insert(0.0) += work;
        }
    }
}

impl Profile {
    pub(super) fn note_work(&mut self, seen: &Observation) {
        if !self.measured && self.meter.since_change() > SETTLING_SAMPLES {
            self.work.add(estimate::demand(&self.platform, &self.plan, seen));
        }
    }

    /// Why what the profiles say does not hold for this load on this machine, if it does not. A load may ask for less than a plan can
    /// do, so only a saturated plan shows it.
    pub(super) fn doubt(&self, now: &Measured) -> Option<&'static str> {
        let promised = self.profiles.promised(&now.mix, &self.plan).filter(|_| now.is_saturated())?;
        if self.is_vindicated(now) {
            return None;
        }
        if now.throughput < promised * LIKE_MIN {
            return Some("the profiles promise more than a busy stack does");
        }
        // A plan that does what is recorded of it is on the machine of the record, and what that says of the other plans holds as
        // well: it was measured, and predictions leave out what messages between cores cost.
        let is_another_machine = now.throughput * LIKE_MIN > promised;
        (is_another_machine && self.has_room())
            .then_some("the busiest CPU's work has room elsewhere, of which the profiles know nothing")
    }

    /// Whether another plan is predicted to carry more. The profiles chose this one since all others had no more when they were
    /// recorded: the bottleneck was another one then, if there is one that can be relieved.
    fn has_room(&self) -> bool {
        let demand = self.work.0.clone();
        let relative = ladder::relative(&self.platform, &demand);
        let busiest = estimate::bottleneck(&estimate::utilisation(&self.platform, &self.plan, &relative));
        let ladder =
            Ladder::build(&self.platform, &Aims { spare: self.settings.spare, demand, ..Aims::default() });
        ladder.rung(ladder.top()).capacity * busiest > ROOM_MIN
    }

    pub(super) fn begin_exploring(&mut self, time: Instant, now: Measured, why: &str) -> String {
        let mut adaptive = Adaptive::new(&self.platform, &self.settings);
        adaptive.take_over(self.plan.clone(), time);
        self.explore_by(adaptive, now);
        alloc::format!("{why}: goes on as adaptive does")
    }

    /// What takes less power on this machine than on the one that was swept only trials show: the floor leaves out what has a little
    /// too little there, and clocks come in large steps.
    pub(super) fn save_power(&mut self, time: Instant, now: Measured) -> Option<String> {
        let is_young = time.saturating_since(self.chosen) < LASTS;
        if is_young || self.settings.goal.objective == Objective::Throughput || self.is_vindicated(&now) {
            return None;
        }
        let mut adaptive = Adaptive::new(&self.platform, &self.settings);
        let best = now.throughput / self.promised.clamp(0.1, 1.0);
        adaptive.go_on(self.plan.clone(), best, time);
        self.explore_by(adaptive, now);
        Some("looks for what takes less power, as adaptive does".into())
    }

    fn explore_by(&mut self, adaptive: Adaptive, now: Measured) {
        self.forget_load();
        let fallback = Some((self.plan.clone(), now));
        self.exploration = Some(Exploration { adaptive: Box::new(adaptive), mix: now.mix, fallback });
    }

    fn is_vindicated(&self, now: &Measured) -> bool {
        self.vindicated.is_some_and(|mix| mix.difference(&now.mix) <= MIX_MOVED)
    }

    /// `None` if no load is explored, or no longer.
    pub(super) fn explore(&mut self, time: Instant, seen: &Observation) -> Option<Option<String>> {
        let exploration = self.exploration.as_mut()?;
        let mix = seen.indicators.mix();
        let moved = exploration.mix.difference(&mix) > MIX_MOVED;
        self.moved_samples = if moved { self.moved_samples + 1 } else { 0 };
        if self.moved_samples > MOVED_SAMPLES {
            (self.exploration, self.chosen_for, self.moved_samples) = (None, None, 0);
            self.meter.restart();
            self.costs.load_begins(time);
            return None;
        }
        let decision = exploration.adaptive.decide(time, seen);
        let is_tried = exploration.adaptive.is_trying();
        self.change(decision.plan);
        let now = self.meter.last(WINDOW_SAMPLES, SETTLING_SAMPLES, mix).filter(|_| !is_tried);
        Some(now.and_then(|now| self.fall_back(&now)).or(decision.reason))
    }

    /// Takes the plan of the profiles again if the first one that `adaptive` stays with is worse. From there on `adaptive` itself
    /// keeps nothing that is worse than what it had.
    pub(super) fn fall_back(&mut self, now: &Measured) -> Option<String> {
        let (plan, was) = self.exploration.as_mut()?.fallback.take()?;
        let most = now.throughput.max(was.throughput);
        let score = |seen: &Measured| self.settings.goal.score(seen.throughput.ratio_to(most), seen.power);
        let (before, after) = (score(&was), score(now));
        if before - after <= GAIN_MIN * before.abs() {
            return None;
        }
        (self.exploration, self.vindicated) = (None, Some(now.mix));
        self.change(plan);
        Some("finds nothing better: goes back to the plan of the profiles".into())
    }

    pub(super) fn explorer(&self) -> Option<&Adaptive> {
        self.exploration.as_ref().map(|exploration| &*exploration.adaptive)
    }
}
