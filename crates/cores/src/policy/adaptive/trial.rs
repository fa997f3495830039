//! Trying neighbours: what is worth a try, and whether it was better.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use eft_base::Instant;
use eft_component::scheduling::Objective;
use eft_machine::{Share, Watts};

use super::climb::climbs;
use super::peek::{Pace, Peek};
use super::{ABRUPT, Adaptive, Mode, TRIALS_MAX, Trial, WINDOW_SAMPLES};
use crate::estimate::{self, Demand};
use crate::observation::Observation;
use crate::placement::Nearness;
use crate::plan::Plan;
use crate::policy::Goal;
use crate::policy::measure::{Measured, SETTLING_SAMPLES};
use crate::policy::memory::SAME_MIX;
use crate::policy::neighbours::{Candidate, Position, candidates, slower, time_ratio};
use crate::throughput::Throughput;

/// Predicted gains below this are not worth a change, whatever it [costs](crate::policy::cost): predictions are not that
/// exact, those of moves less than those of speeds.
const GAIN_SPEED: f64 = 0.015;
const GAIN_MOVE: f64 = 0.03;
/// By how much a prediction may fall short of the floor and still be tried.
const DOUBT_SPEED: f64 = 0.06;
const DOUBT_MOVE: f64 = 0.01;
/// After a change of load, no step down is made before this: the old load may come back.
const CALM_BEFORE_DOWN: Duration = Duration::from_secs(1);
/// After so many climbs, or trials of the fastest rung, that lowered throughput beside the load's own programs, more
/// cores count as no answer to the overload.
pub(super) const STEPS_BACK_MAX: u32 = 2;
/// After so many samples, a throughput outside these bounds needs no longer measurement.
const CLEAR_SAMPLES: usize = 8;
const CLEARLY_MORE: f64 = 1.2;
pub(super) const CLEARLY_WORSE: f64 = 0.85;
/// Less than this is noise.
pub(super) const MORE: f64 = 1.015;

impl Adaptive {
    pub(super) fn measure(&mut self, time: Instant, seen: &Observation) -> Option<String> {
        let mix = seen.indicators.mix();
        let now = self.meter.last(WINDOW_SAMPLES, SETTLING_SAMPLES, mix)?;
        self.best = self.best.max(now.throughput);
        self.ceiling.rise(now.throughput);
        if let Some(reason) = self.peek(time, seen, &now, Pace::Early) {
            return Some(reason);
        }
        if now.overloaded >= 0.5
            && self.trials == 0
            && self.steps_back < STEPS_BACK_MAX
            && !self.is_sated(&now)
            && let Some((name, plan)) = self.next_up(time, seen, 1, &now)
        {
            let from = Some((self.plan.clone(), now));
            self.change(plan);
            self.mode = Mode::Climbing { stride: 2, from, calm: 0 };
            return Some(climbs(&name, seen));
        }
        if time.saturating_since(self.load_changed) < CALM_BEFORE_DOWN {
            return None;
        }
        let demand = self.work.clone();
        if let Some(plan) = self.homeward(seen, &demand) {
            self.change(plan);
            return Some("goes to the package where it belongs beside the applications".into());
        }
        if let Some(reason) = self.peek(time, seen, &now, Pace::Thorough) {
            return Some(reason);
        }
        if time < self.patient_until {
            return None;
        }
        if let Some(reason) = self.deal(time, seen, &now) {
            return Some(reason);
        }
        if self.trials < TRIALS_MAX {
            if let Some(next) = self.promising(time, seen, &now, &demand) {
                return self.attempt(next, now, demand);
            }
            if time < self.patient_until {
                return Some("waits whether the load lasts long enough for a change to pay".into());
            }
            if let Some(reason) = self.peek(time, seen, &now, Pace::Last) {
                return Some(reason);
            }
        }
        if self.trials < TRIALS_MAX
            && let Some(at) = self.waits_for_peek(time, seen, &now)
        {
            self.patient_until = at;
            return Some("waits until the load has lasted long enough for a try that may cost much".into());
        }
        self.known.note(&self.plan, &now, time);
        self.settle(now, time);
        Some("settled: no neighbour promises more".into())
    }

    /// Where the applications are draws the stack to their package or keeps it out of it. No measurement of the stack
    /// shows what that does to them, so it is no trial, but done once for each load.
    fn homeward(&mut self, seen: &Observation, demand: &Demand) -> Option<Plan> {
        if core::mem::replace(&mut self.went_home, true) {
            return None;
        }
        let nearness = Nearness::of(&self.platform, &seen.indicators);
        if nearness.is_met(&self.platform, &self.plan) {
            return None;
        }
        self.rebuild(demand, seen);
        let relative = crate::ladder::relative(&self.platform, demand);
        let busiest = estimate::bottleneck(&estimate::utilisation(&self.platform, &self.plan, &relative));
        let rung = self.ladder.rung(self.ladder.lowest_with(0.99 / busiest.max(1e-6)));
        nearness.is_met(&self.platform, &rung.plan).then(|| rung.plan.clone())
    }

    pub(super) fn attempt(&mut self, next: Candidate, was: Measured, demand: Demand) -> Option<String> {
        self.trials += 1;
        let base = self.plan.clone();
        let promise = format!(
            "tries what promises {:.0}% of the throughput at {:.1} instead of {:.1}",
            next.throughput * 100.0,
            next.power,
            was.power
        );
        self.change_steady(next.plan, &was);
        self.mode = Mode::Trying(Trial { base, was, demand, peek: None, pace: Pace::Thorough });
        Some(promise)
    }

    /// The best of the neighbours that are not barred and promise enough. If some would, but for what the change costs,
    /// it is to be looked again when the load has lasted half as long again.
    pub(super) fn promising(
        &mut self,
        time: Instant,
        seen: &Observation,
        now: &Measured,
        demand: &Demand,
    ) -> Option<Candidate> {
        let Goal { objective, floor } = self.settings.goal;
        let saturated = now.overloaded >= 0.5;
        let wanted = match objective {
            Objective::Throughput | Objective::ThroughputPerWatt if saturated => None,
            Objective::LeastPower if saturated => Some((self.best * floor).ratio_to(now.throughput)),
            _ => Some(1.0),
        };
        self.rebuild(demand, seen);
        let (waits, beside_others) = (estimate::waits(seen), self.beside_others(seen, now));
        let others = seen.cpus.iter().map(|cpu| (cpu.cpu, cpu.others.0)).collect();
        let here = Position {
            platform: &self.platform,
            model: &self.settings.power,
            spare: self.settings.spare,
            plan: &self.plan,
            metered: seen.power.map(|_| now.power),
            demand,
            waits: &waits,
            beside_others: &beside_others,
            others: &others,
            saturated,
            wanted,
            loose: objective == Objective::ThroughputPerWatt,
            elasticity: self.elasticity,
        };
        let barred = |plan: &Plan| self.memory.is_barred(plan, now, time) || self.falls_short(plan);
        let free = candidates(&here, &self.ladder)
            .into_iter()
            .filter(|next| !barred(&next.plan) && self.keeps_place(&next.plan))
            .map(|next| self.below_ceiling(next, now));
        let promising: Vec<Candidate> =
            free.filter(|next| self.is_worth(next, now, self.gain_floor(next))).collect();
        let worth = promising.iter().filter(|next| {
            let floor = self.gain_floor(next);
            self.is_worth(next, now, self.costs.gain_min(floor, &self.plan, &next.plan, time))
        });
        let best = worth.max_by(|a, b| self.score(a, now).total_cmp(&self.score(b, now))).cloned();
        if best.is_none() && !promising.is_empty() {
            self.patient_until = time + self.costs.load_age(time) / 2;
            return None;
        }
        // Slower may be faster, which no prediction shows: a component that is not the bottleneck is tried one step
        // slower.
        let slower = || slower(&here).into_iter().find(|next| !barred(&next.plan));
        // What is cheaper by little among others' turns and moods may be so by chance.
        let is_clear = objective != Objective::LeastPower || !self.others_are_busy(seen);
        best.or_else(|| if is_clear { slower() } else { None })
    }

    /// A candidate promises no more than the load is known to take.
    fn below_ceiling(&self, next: Candidate, now: &Measured) -> Candidate {
        let most = self.ceiling.most(now.throughput, now.throughput * next.throughput);
        let throughput = next.throughput.min(most.ratio_to(now.throughput));
        Candidate { throughput, ..next }
    }

    pub(super) fn score(&self, next: &Candidate, now: &Measured) -> f64 {
        let promised = now.throughput * next.throughput;
        self.settings.goal.score(promised.ratio_to(self.best), next.power)
    }

    fn gain_floor(&self, next: &Candidate) -> f64 {
        if next.plan.same_seats(&self.plan) { GAIN_SPEED } else { GAIN_MOVE }
    }

    pub(super) fn is_worth(&self, next: &Candidate, now: &Measured, gain: f64) -> bool {
        let best = self.best.max(Throughput::LEAST);
        // Work that waits for memory is hardly slower on a slower clock, so a step of speed may do better than is
        // predicted.
        let doubt = if next.plan.same_seats(&self.plan) { DOUBT_SPEED } else { DOUBT_MOVE };
        let reaches = now.throughput * next.throughput / best >= self.settings.goal.least_share().0 - doubt;
        let cheaper = next.power < now.power * (1.0 - gain);
        let Goal { objective, floor } = self.settings.goal;
        match objective {
            Objective::Throughput => next.throughput > 1.0 + gain || (reaches && cheaper),
            Objective::LeastPower => {
                let short = now.throughput < best * floor;
                (reaches && cheaper) || (short && next.throughput > 1.0 + gain)
            }
            Objective::ThroughputPerWatt => {
                next.throughput / next.power.max(Watts(1e-3)).0 > (1.0 + gain) / now.power.max(Watts(1e-3)).0
            }
        }
    }

    pub(super) fn judge(&mut self, time: Instant, seen: &Observation, trial: Trial) -> Option<String> {
        let mix = seen.indicators.mix();
        let was = trial.was;
        let early = self.meter.last(4, SETTLING_SAMPLES, mix);
        let measured = self.meter.last(trial.pace.samples(), SETTLING_SAMPLES, mix);
        let clear = self.meter.last(CLEAR_SAMPLES, SETTLING_SAMPLES, mix).filter(|now| trial.is_clear(now));
        let measured = measured.or(clear);
        let same_mix = was.mix.difference(&mix) <= SAME_MIX;
        let floor = self.settings.goal.least_share().max(Share(0.3));
        let abrupt = early.is_some_and(|early| early.throughput < was.throughput * ABRUPT * floor);
        if measured.is_none() && !(abrupt && same_mix) {
            self.mode = Mode::Trying(trial);
            return None;
        }
        let now = measured.or(early)?;
        if !same_mix {
            // The traffic has changed, so the comparison is void.
            self.begin_load(time, seen);
            return Some("the mix of traffic changed during a trial: begins to measure anew".into());
        }
        self.learn_elasticity(&trial, &now);
        let stays = !abrupt && self.is_kept(&trial, &now);
        self.learn_ceiling(&trial, &now, stays);
        if trial.pace == Pace::Hasty {
            self.mode = Mode::Climbing { stride: 1, from: None, calm: 0 };
        }
        if stays {
            self.best = self.best.max(now.throughput);
            if let Some(peek @ (Peek::Slow | Peek::Fewer)) = trial.peek {
                self.peeks.insert(0, peek);
                // That it is full now is no reason to climb.
                self.trials += 1;
            }
            if trial.peek == Some(Peek::Awake) {
                // Faster work may be done at yet slower clocks, and the fastest ones are known to do less.
                self.peeks.retain(|peek| *peek != Peek::Spread);
                self.peeks.insert(0, Peek::Awake);
            }
            if trial.is_sideways() {
                self.favoured = self.copies_on(&self.plan);
                // The equal CPU that the stack left gives less throughput.
                self.memory.bar(&trial.base, &now, time);
            }
            return Some(format!("keeps it: {}", compare(&now, &was)));
        }
        self.memory.bar(&self.plan.clone(), &was, time);
        self.note_short(&was, &now);
        if trial.peek == Some(Peek::Awake) {
            self.refused.note(mix, time);
        }
        if trial.is_sideways() && now.throughput * MORE < was.throughput {
            self.favoured = self.copies_on(&trial.base);
        }
        if trial.peek == Some(Peek::Spread) && now.throughput < was.throughput * CLEARLY_WORSE {
            self.steps_back += u32::from(self.is_crowded(seen));
        }
        self.change_steady(trial.base, &now);
        Some(format!("takes it back: {}", compare(&now, &was)))
    }

    /// A trial of a place is judged by throughput; any other trial by the objective.
    fn is_kept(&mut self, trial: &Trial, now: &Measured) -> bool {
        let more = now.throughput > trial.was.throughput * MORE;
        match trial.peek {
            None | Some(Peek::Slow | Peek::Fewer) => self.is_better(now, &trial.was),
            Some(Peek::Beside | Peek::Apart | Peek::Spread | Peek::Awake) => more,
            Some(Peek::Consolidated) => {
                // The floor is relative to the best throughput, so that is noted too.
                self.best = self.best.max(now.throughput);
                self.is_better(now, &trial.was)
            }
        }
    }

    /// Learns how much throughput follows the time that messages take.
    pub(super) fn learn_elasticity(&mut self, trial: &Trial, now: &Measured) {
        let longer = time_ratio(&self.platform, &trial.demand, &self.plan, &trial.base) - 1.0;
        if now.overloaded >= 0.5 || trial.was.overloaded >= 0.5 || longer.abs() < 0.03 {
            return;
        }
        let seen = ((trial.was.throughput.ratio_to(now.throughput) - 1.0) / longer).clamp(0.0, 1.0);
        let first = self.elasticity == 0.0;
        self.elasticity = if first { seen } else { (self.elasticity + seen) / 2.0 };
    }

    pub(super) fn is_better(&self, now: &Measured, was: &Measured) -> bool {
        const CHEAPER: f64 = 0.995;
        let best = self.best.max(was.throughput).max(Throughput::LEAST);
        // If the old plan carried an open-loop load without overload, the new one must do so too.
        let overloads =
            was.overloaded < 0.2 && now.overloaded >= 0.5 && now.throughput < was.throughput * 0.99;
        let cheaper = now.power < was.power * CHEAPER;
        let Goal { objective, floor } = self.settings.goal;
        match objective {
            _ if overloads => false,
            Objective::Throughput => {
                now.throughput > was.throughput * MORE
                    || (cheaper && now.throughput >= was.throughput * 0.99 && now.throughput >= best * 0.985)
            }
            Objective::LeastPower => {
                let short = was.throughput < best * floor;
                (cheaper && now.throughput >= best * floor)
                    || (short && now.throughput > was.throughput * MORE)
            }
            Objective::ThroughputPerWatt => {
                now.throughput / now.power.max(Watts(1e-3)).0
                    > was.throughput / was.power.max(Watts(1e-3)).0 * 1.005
            }
        }
    }
}

impl Trial {
    /// Whether its throughput says enough by itself.
    fn is_clear(&self, now: &Measured) -> bool {
        let ratio = now.throughput.ratio_to(self.was.throughput);
        self.peek.is_some() && !(CLEARLY_WORSE..CLEARLY_MORE).contains(&ratio)
    }

    /// Whether it shows which of equal CPUs is the better place; the next load begins there.
    fn is_sideways(&self) -> bool {
        self.peek.is_some_and(Peek::is_sideways)
    }
}

fn compare(now: &Measured, was: &Measured) -> String {
    let share = now.throughput.ratio_to(was.throughput) * 100.0;
    format!("{share:.1}% of the throughput, {:.1} instead of {:.1}", now.power, was.power)
}

#[cfg(test)]
mod tests;
