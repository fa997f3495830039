//! A load that is unlike what was swept: [`Adaptive`] finds its plan.
//!
//! Loads of nearly the same [`Mix`] may take different work: the mix of a web server with middle-sized files is nearly that of bulk.
//! So how near a mix is does not show whether a profile applies. What the chosen plan does shows it.

use alloc::boxed::Box;
use alloc::string::String;

use eft_base::Instant;

use super::{MOVED_SAMPLES, Profile};
use crate::indicators::Mix;
use crate::observation::Observation;
use crate::policy::adaptive::Adaptive;
use crate::policy::follows::MIX_MOVED;
use crate::policy::measure::Measured;

/// A saturated plan that has less than this share of what it had with the nearest swept load takes more work for the same. In the
/// simulator loads of which there are profiles have 94% of that or more, though these are of another model and another draw of the
/// machine; a load that the profiles were wrong about had 70%.
const LIKE_MIN: f64 = 0.85;

#[derive(Clone, Debug)]
pub(super) struct Exploration {
    adaptive: Box<Adaptive>,
    /// Of the load.
    mix: Mix,
}

impl Profile {
    /// Whether what the profiles say of the present plan does not hold for this load. A load may ask for less than a plan can do, so
    /// only a saturated plan shows it.
    pub(super) fn is_unlike(&self, now: &Measured) -> bool {
        let promised = self.profiles.promised(&now.mix, &self.plan);
        now.is_saturated() && promised.is_some_and(|promised| now.throughput < promised * LIKE_MIN)
    }

    pub(super) fn begin_exploring(&mut self, time: Instant, mix: Mix) -> String {
        self.forget_load();
        let mut adaptive = Adaptive::new(&self.platform, &self.settings);
        adaptive.take_over(self.plan.clone(), time);
        self.exploration = Some(Exploration { adaptive: Box::new(adaptive), mix });
        "the profiles promise more than a busy stack does: goes on as adaptive does".into()
    }

    /// `None` if no load is explored, or no longer.
    pub(super) fn explore(&mut self, time: Instant, seen: &Observation) -> Option<Option<String>> {
        let exploration = self.exploration.as_mut()?;
        let moved = exploration.mix.difference(&seen.indicators.mix()) > MIX_MOVED;
        self.moved_samples = if moved { self.moved_samples + 1 } else { 0 };
        if self.moved_samples > MOVED_SAMPLES {
            (self.exploration, self.chosen_for, self.moved_samples) = (None, None, 0);
            self.meter.restart();
            self.costs.load_begins(time);
            return None;
        }
        let decision = exploration.adaptive.decide(time, seen);
        self.plan = decision.plan;
        Some(decision.reason)
    }

    pub(super) fn explorer(&self) -> Option<&Adaptive> {
        self.exploration.as_ref().map(|exploration| &*exploration.adaptive)
    }
}
