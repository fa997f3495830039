//! What `profile` learns from measurements: about plans, about the load, and about the cost of changes.

use super::{Profile, REFINED_MAX, WINDOW_SAMPLES};
use crate::indicators::Mix;
use crate::plan::Plan;
use crate::policy::follows::Follows;
use crate::policy::measure::{Measured, SETTLING_SAMPLES};
use crate::throughput::Throughput;
use eft_base::Instant;

impl Profile {
    pub(super) fn judge(&mut self, time: Instant, mix: Mix, follows: Follows) {
        (self.follows, self.carried) = (follows, None);
        self.verdicts.note(time, mix, follows);
    }

    /// Forgets findings that do not apply to another load.
    pub(super) fn forget_load(&mut self) {
        (self.follows, self.refined, self.level) = (Follows::Unknown, 0, None);
        (self.carried, self.tried, self.patient_until) = (None, None, None);
        self.seen.clear();
    }

    /// A count that grows with everything that is learnt.
    pub fn learnt(&self) -> u64 {
        self.learnt
    }

    pub(super) fn learn(&mut self, now: &Measured) {
        let takes_all = self.follows == Follows::Yes || now.overloaded >= 0.5;
        let plan = self.plan.clone();
        self.learn_of(&plan, now, takes_all);
    }

    pub(super) fn learn_of(&mut self, plan: &Plan, now: &Measured, takes_all: bool) {
        self.learnt += 1;
        if self.seen.len() <= REFINED_MAX as usize + 1 {
            self.seen.push((plan.clone(), *now));
        }
        if takes_all && self.level.is_none() {
            let recorded =
                self.profiles.recorded(&now.mix, plan).filter(|recorded| *recorded > Throughput::NONE);
            self.level = Some(recorded.map_or(1.0, |recorded| now.throughput / recorded));
        }
        let throughput = now.throughput / self.level.unwrap_or(1.0).max(1e-9);
        self.profiles.learn(&now.mix, plan, throughput, now.power, takes_all);
    }

    pub(super) fn learn_cost(&mut self, mix: Mix) {
        let Some(before) = self.costs.settling() else { return };
        if let Some(now) = self.meter.last(WINDOW_SAMPLES, SETTLING_SAMPLES, mix) {
            self.costs.learn(self.meter.missing(now.throughput.min(before)));
        }
    }
}
