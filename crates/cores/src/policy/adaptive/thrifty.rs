//! Less power, where the goal is about power: all clocks at half, and two CPUs' components on one. Predictions do not find such plans,
//! since a server fills its time: it polls, and takes little at once if it comes early to it. So its work on a fast CPU says little
//! about what a slow one can do.

use alloc::vec::Vec;
use core::time::Duration;

use eft_base::Instant;
use eft_component::scheduling::Objective;
use eft_machine::{CpuId, Share};

use super::peek::{self, LOSS_MAX, TAKEN_BACK};
use super::{Adaptive, Mode};
use crate::estimate;
use crate::placement;
use crate::plan::Plan;
use crate::policy::measure::Measured;
use crate::throughput::Throughput;

/// What a try may take at most of all that the load could have had since it began, if the goal allows more than [`LOSS_MAX`].
const LOSS_MOST: f64 = 0.05;

impl Adaptive {
    /// Goes on from a plan that another policy has measured, which knows what the best plan has. That the stack is full is no reason to
    /// climb.
    pub fn go_on(&mut self, plan: Plan, best: Throughput, time: Instant) {
        self.change(plan);
        (self.last_traffic, self.load_changed) = (time, time);
        self.costs.load_begins(time);
        (self.best, self.trials, self.peeks) = (best, 1, peek::ALL.to_vec());
        self.mode = Mode::Measuring;
    }

    pub(super) fn saves_power(&self) -> bool {
        self.settings.goal.objective != Objective::Throughput
    }

    /// How old a load has to be for a try. A saturated one has less in proportion to its busiest CPU at worst, unless it is known to
    /// take no more.
    pub(super) fn thrifty_from(&self, plan: &Plan, now: &Measured) -> Duration {
        let busiest = estimate::bottleneck(&estimate::utilisation(&self.platform, plan, &self.work));
        let is_spared = now.overloaded < 0.5 || self.is_sated(now);
        let loss = if is_spared { 0.0 } else { 1.0 - 1.0 / busiest.max(1.0) };
        let allowed = (1.0 - self.settings.goal.least_share().0).clamp(LOSS_MAX, LOSS_MOST);
        TAKEN_BACK.mul_f64(loss / allowed)
    }

    /// The same seats, each CPU at half of its speed, or the next level below.
    pub(super) fn slowed(&self) -> Plan {
        let mut plan = self.plan.clone();
        for cpu in self.plan.used().iter() {
            let half = Share(self.plan.speed(cpu).0 / 2.0 + 1e-6);
            if let Some(level) = self.platform.levels(cpu).iter().rfind(|level| **level <= half) {
                plan.speeds.insert(cpu, *level);
            }
        }
        placement::couple_speeds(&self.platform, &mut plan);
        plan
    }

    /// The components of the CPU that does least are with those of the one that does least after it. `None`: there is only one CPU.
    pub(super) fn fewer(&self) -> Option<Plan> {
        let busy = estimate::utilisation(&self.platform, &self.plan, &self.work);
        let mut used: Vec<CpuId> = self.plan.used().iter().collect();
        used.sort_by(|one, other| {
            let of = |cpu| busy.get(cpu).copied().unwrap_or(0.0);
            of(one).total_cmp(&of(other))
        });
        let [from, to, ..] = used[..] else { return None };
        let mut plan = self.plan.clone();
        plan.seats.values_mut().filter(|seat| seat.cpu == from).for_each(|seat| seat.cpu = to);
        placement::complete(&self.platform, &mut plan, self.settings.spare);
        Some(plan)
    }
}

#[cfg(test)]
mod tests;
