//! One CPU for all that carried far less than was asked for: with a slower clock it carries no more. Slower is faster only where
//! several CPUs wake one another.

use super::Adaptive;
use super::trial::CLEARLY_WORSE;
use crate::plan::Plan;
use crate::policy::measure::Measured;

/// Of the present load: how much of the largest core the fastest single CPU had that fell short.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FellShort(Option<f64>);

impl Adaptive {
    /// The present plan is taken back.
    pub(super) fn note_short(&mut self, was: &Measured, now: &Measured) {
        let least = was.throughput * (CLEARLY_WORSE * self.settings.goal.least_share().0);
        if self.plan.is_consolidated() && now.throughput < least {
            let most = self.fell_short.0.into_iter().chain(self.speed_of_one(&self.plan)).reduce(f64::max);
            self.fell_short = FellShort(most);
        }
    }

    /// Whether a plan has one CPU for all that is no faster than one that fell short.
    pub(super) fn falls_short(&self, plan: &Plan) -> bool {
        let is_slower = |most: f64| self.speed_of_one(plan).is_some_and(|speed| speed <= most);
        plan.is_consolidated() && self.fell_short.0.is_some_and(is_slower)
    }

    fn speed_of_one(&self, plan: &Plan) -> Option<f64> {
        plan.used().iter().map(|cpu| self.platform.effective(cpu, plan)).next()
    }
}

#[cfg(test)]
mod tests;
