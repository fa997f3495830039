//! Trials that are made whatever the predictions say: only a trial tells what a place beside the load's own programs is
//! worth, and whether a closed-loop load takes more.

use alloc::string::String;
use core::time::Duration;

use eft_base::Instant;
use eft_machine::{CpuId, Share};

use super::{Adaptive, Mode, Trial, WINDOW_SAMPLES};
use crate::estimate::{self, Demand};
use crate::observation::Observation;
use crate::placement;
use crate::plan::Plan;
use crate::platform;
use crate::policy::measure::Measured;
use crate::policy::sharing;
use crate::throughput::Throughput;

/// In the order in which they are tried; each once for a load.
pub(super) const ALL: [Peek; 7] =
    [Peek::Beside, Peek::Apart, Peek::Awake, Peek::Spread, Peek::Slow, Peek::Fewer, Peek::Consolidated];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peek {
    /// Moves the transport, with what shares its CPU, to the equal CPU that others use most: they may be the program
    /// whose data it copies.
    Beside,
    /// Moves it to the equal CPU that others use least.
    Apart,
    /// The fastest rung.
    Spread,
    /// The same seats at [half of their clocks](super::thrifty).
    Slow,
    /// The two CPUs that do least [as one](super::thrifty).
    Fewer,
    /// The fastest rung on one CPU.
    Consolidated,
    /// The same seats at [clocks](super::awake) at which no CPU sleeps much.
    Awake,
}

/// A stack that is less busy stays where it is.
const BUSY_MIN: f64 = 0.2;
/// A smaller share of others makes no difference, and may be an artefact of the kernel's ticks.
const OTHERS_MIN: Share = Share(0.2);
/// What a try may take of all that the load could have had since it began.
pub(super) const LOSS_MAX: f64 = 0.01;
/// How long a plan that does far less is in force until it is taken back.
pub(super) const TAKEN_BACK: Duration = Duration::from_millis(80);

impl Peek {
    pub(super) fn is_sideways(self) -> bool {
        matches!(self, Self::Beside | Self::Apart)
    }

    fn told(self) -> &'static str {
        match self {
            Self::Beside => "tries the CPU on which others do most",
            Self::Apart => "tries the CPU on which others do least",
            Self::Awake => "tries clocks at which no CPU sleeps much",
            Self::Slow => "tries all clocks at half",
            Self::Fewer => "tries one CPU less",
            Self::Spread | Self::Consolidated => "tries whether the load takes more from a faster rung",
        }
    }
}

/// When something is tried, and how long it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// While the load still grows: only trials that take no capacity away.
    Hasty,
    /// When the load no longer grows.
    Early,
    /// When the load has lasted for a while.
    Thorough,
    /// When no neighbour promises more.
    Last,
}

impl Pace {
    pub(super) fn samples(self) -> usize {
        match self {
            Self::Hasty => 6,
            Self::Early | Self::Thorough | Self::Last => WINDOW_SAMPLES,
        }
    }
}

impl Adaptive {
    /// Begins the next trial that is worth while.
    pub(super) fn peek(
        &mut self,
        time: Instant,
        seen: &Observation,
        now: &Measured,
        pace: Pace,
    ) -> Option<String> {
        if now.busy < BUSY_MIN {
            return None;
        }
        let age = self.costs.load_age(time);
        let open = self.peeks.iter().enumerate().filter(|(_, peek)| {
            self.allows(time, **peek, seen, now, pace) && age >= self.affordable_at(**peek, seen, now)
        });
        let mut plans = open.filter_map(|(at, peek)| Some((at, self.peeked(*peek, seen)?)));
        let (at, plan) = plans.find(|(_, plan)| self.is_new(plan, now, time))?;
        drop(plans);
        let peek = self.peeks.remove(at);
        let (base, demand) = (self.plan.clone(), self.work.clone());
        self.change_steady(plan, now);
        self.mode = Mode::Trying(Trial { base, was: *now, demand, peek: Some(peek), pace });
        Some(peek.told().into())
    }

    /// How old a load has to be for a try. One CPU, on which the components take the work that was [seen of them beside
    /// others](sharing), may do far less than they do now.
    fn affordable_at(&self, peek: Peek, seen: &Observation, now: &Measured) -> Duration {
        match peek {
            Peek::Awake => return self.awake_from(seen, LOSS_MAX),
            Peek::Slow | Peek::Fewer => {
                let plan = self.peeked(peek, seen);
                return plan.map_or(Duration::ZERO, |plan| self.thrifty_from(&plan, now));
            }
            _ => {}
        }
        let plan = self.peeked(peek, seen).filter(|_| peek == Peek::Consolidated);
        let busiest = plan.and_then(|plan| self.busiest_beside_others(&plan, seen, now)).unwrap_or(0.0);
        TAKEN_BACK.mul_f64((1.0 - 1.0 / busiest.max(1.0)) / LOSS_MAX)
    }

    /// How busy a plan's busiest CPU would be by what was [seen beside others](sharing); above 1 it cannot keep up. `None`: nothing
    /// was seen.
    fn busiest_beside_others(&self, plan: &Plan, seen: &Observation, now: &Measured) -> Option<f64> {
        let beside_others = self.beside_others(seen, now);
        if beside_others.is_empty() {
            return None;
        }
        let work = sharing::carried_over(&self.work, &beside_others, &self.plan, plan);
        Some(estimate::bottleneck(&estimate::utilisation(&self.platform, plan, &work)))
    }

    /// A program that takes a component's CPU changes what its messages take more than its company does: it wakes and delays
    /// the component, and shares its caches.
    pub(super) fn note_sharing(&mut self, work: &Demand, seen: &Observation, throughput: Throughput) {
        if !self.is_crowded(seen) {
            self.sharing.note(&self.plan, work, throughput);
        }
    }

    /// What the components' work would be beside others; nothing while programs crowd the CPUs.
    pub(super) fn beside_others(&self, seen: &Observation, now: &Measured) -> Demand {
        if self.is_crowded(seen) { Demand::new() } else { self.sharing.work(now.throughput) }
    }

    /// When a try can be made that costs too much yet.
    pub(super) fn waits_for_peek(
        &self,
        time: Instant,
        seen: &Observation,
        now: &Measured,
    ) -> Option<Instant> {
        if now.busy < BUSY_MIN {
            return None;
        }
        let allows =
            |peek| [Pace::Thorough, Pace::Last].iter().any(|pace| self.allows(time, peek, seen, now, *pace));
        let open = self.peeks.iter().filter(|peek| allows(**peek));
        let new =
            open.filter(|peek| self.peeked(**peek, seen).is_some_and(|plan| self.is_new(&plan, now, time)));
        let age = self.costs.load_age(time);
        let waits = |peek: &Peek| self.affordable_at(*peek, seen, now).checked_sub(age);
        new.filter_map(waits).filter(|wait| !wait.is_zero()).min().map(|wait| time + wait)
    }

    /// A saturated load needs no trial of whether it takes more; but where its own programs crowd the CPUs, fewer CPUs
    /// may do more.
    fn allows(&self, time: Instant, peek: Peek, seen: &Observation, now: &Measured, pace: Pace) -> bool {
        let saturated = now.overloaded >= 0.5;
        match peek {
            Peek::Beside | Peek::Apart => true,
            // The ladder counts what components take alone, so that its top may have less than the present plan.
            Peek::Spread => pace == Pace::Thorough && !saturated && self.top_keeps_up(seen, now),
            Peek::Consolidated if saturated => pace != Pace::Hasty && self.is_crowded(seen),
            Peek::Consolidated => pace == Pace::Thorough,
            Peek::Slow | Peek::Fewer => {
                pace == Pace::Last && self.saves_power() && !self.others_are_busy(seen)
            }
            Peek::Awake => {
                pace == Pace::Thorough
                    && !saturated
                    && !self.others_are_busy(seen)
                    && !self.refused.holds(&now.mix, time)
            }
        }
    }

    fn top_keeps_up(&self, seen: &Observation, now: &Measured) -> bool {
        let top = &self.ladder.rung(self.ladder.top()).plan;
        self.busiest_beside_others(top, seen, now).is_none_or(|busiest| busiest <= 1.0)
    }

    pub(super) fn others_are_busy(&self, seen: &Observation) -> bool {
        self.platform.managed().iter().any(|cpu| others(seen, cpu) >= OTHERS_MIN)
    }

    pub(super) fn is_crowded(&self, seen: &Observation) -> bool {
        self.plan.used().iter().any(|cpu| others(seen, cpu) >= OTHERS_MIN)
    }

    fn is_new(&self, plan: &Plan, now: &Measured, time: Instant) -> bool {
        !plan.is_same(&self.plan) && !self.memory.is_barred(plan, now, time)
    }

    fn peeked(&self, peek: Peek, seen: &Observation) -> Option<Plan> {
        match peek {
            Peek::Spread => Some(self.ladder.rung(self.ladder.top()).plan.clone()),
            Peek::Consolidated => Some(self.ladder.rung(self.ladder.consolidated_top()).plan.clone()),
            Peek::Awake => Some(self.kept_awake()),
            Peek::Slow => Some(self.slowed()),
            Peek::Fewer => self.fewer(),
            Peek::Beside | Peek::Apart => {
                let from = self.copies_on(&self.plan)?;
                let [most, least] = self.extremes(from, seen)?;
                let to = if peek == Peek::Beside { most } else { least };
                (to != from).then(|| self.exchanged(&self.plan, from, to))
            }
        }
    }

    /// The plan with its copying on an equal CPU, of several on the one that others use most. There is no threshold,
    /// since a load that flaps may pause just now.
    pub(super) fn elsewhere(&self, plan: &Plan, seen: &Observation) -> Option<Plan> {
        let from = self.copies_on(plan)?;
        let managed = self.platform.managed();
        let is_equal = |cpu: &CpuId| self.are_equal(*cpu, from);
        let equal = managed.iter().filter(|cpu| *cpu != from).filter(is_equal);
        let to = equal.max_by(|a, b| others(seen, *a).total_cmp(&others(seen, *b)))?;
        Some(self.exchanged(plan, from, to))
    }

    /// Of the CPUs equal to this one, those that others use most and least, if the use is significant.
    pub(super) fn extremes(&self, like: CpuId, seen: &Observation) -> Option<[CpuId; 2]> {
        let managed = self.platform.managed();
        let is_equal = |cpu: &CpuId| self.are_equal(*cpu, like);
        let equal = || managed.iter().filter(is_equal);
        let most = equal().max_by(|a, b| others(seen, *a).total_cmp(&others(seen, *b)))?;
        let least = equal().min_by(|a, b| others(seen, *a).total_cmp(&others(seen, *b)))?;
        (others(seen, most) >= OTHERS_MIN).then_some([most, least])
    }

    /// The transport that copies the load's payload to and from the program.
    fn copier(&self) -> Option<&str> {
        let transports = self.work.iter().filter(|(name, _)| platform::is_transport(name));
        transports.max_by(|a, b| a.1.total_cmp(b.1)).map(|(name, _)| name.as_str())
    }

    /// The CPU on which it is copied.
    pub(super) fn copies_on(&self, plan: &Plan) -> Option<CpuId> {
        plan.seats.get(self.copier()?).map(|seat| seat.cpu)
    }

    fn exchanged(&self, plan: &Plan, from: CpuId, to: CpuId) -> Plan {
        let other = |cpu: CpuId| match cpu {
            cpu if cpu == from => to,
            cpu if cpu == to => from,
            cpu => cpu,
        };
        let mut plan = plan.clone();
        for seat in plan.seats.values_mut() {
            seat.cpu = other(seat.cpu);
        }
        plan.speeds = plan.speeds.iter().map(|(cpu, speed)| (other(*cpu), *speed)).collect();
        placement::complete(&self.platform, &mut plan, self.settings.spare);
        plan
    }

    /// Whether a plan leaves the copying on the CPU that a trial showed to be best, or moves it to a CPU of another
    /// capacity: predictions cannot tell equal CPUs apart.
    pub(super) fn keeps_place(&self, plan: &Plan) -> bool {
        let (Some(best), Some(cpu)) = (self.favoured, self.copies_on(plan)) else { return true };
        cpu == best || !self.are_equal(cpu, best)
    }

    fn are_equal(&self, one: CpuId, other: CpuId) -> bool {
        (self.platform.capacity(one) - self.platform.capacity(other)).abs() < 0.01
    }
}

fn others(seen: &Observation, cpu: CpuId) -> Share {
    seen.cpu(cpu).map_or(Share::NONE, |load| load.others)
}

#[cfg(test)]
mod tests;
