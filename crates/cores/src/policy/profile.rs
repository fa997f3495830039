//! `profile`: the nearest recorded profiles decide (`multiserver-scheduling`, section 5).
//!
//! The nature of the traffic is compared with the loads that were swept; what their configurations achieved is
//! interpolated, and the objective chooses. Each measured pair of load and configuration refines the profiles. A change
//! of the node's [role](super::roles) is followed only if the phase usually lasts longer than the reconfiguration
//! costs. A load that the profiles turn out to be wrong about is [explored](exploring) by `adaptive`.

mod exploring;
mod learning;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use eft_base::Instant;

use self::exploring::{Exploration, Work};
use crate::error::SchedulerError;
use crate::indicators::{self, Kind, Mix};
use crate::ladder::{Aims, Ladder};
use crate::observation::Observation;
use crate::plan::{Plan, check};
use crate::platform::Platform;
use crate::policy::cost::Costs;
use crate::policy::follows::{Follows, MIX_MOVED, Verdicts};
use crate::policy::measure::{Measured, Meter, Reading, SETTLING_SAMPLES};
use crate::policy::roles::{Phases, Role};
use crate::policy::{Decision, Settings};
use crate::profile::{Choice, Profiles, Wish};
use crate::throughput::Throughput;

const REST_AFTER: Duration = Duration::from_millis(400);
/// Samples after which the mix of new traffic is known well enough.
const FIRST_SAMPLES: usize = 4;
const WINDOW_SAMPLES: usize = 20;
/// A load that differs by this factor is looked up again, as is one of another mix.
const LOAD_MOVED: f64 = 1.3;
/// After more samples in a row it is another load.
const MOVED_SAMPLES: usize = 3;
/// At an unchanged load, what was learnt changes the plan at most this often.
const REFINE: Duration = Duration::from_secs(90);
/// At once, what was learnt of a load changes the plan at most this often.
const REFINED_MAX: u32 = 3;
/// Better by less than this is not worth a change.
const GAIN_MIN: f64 = 0.02;
/// A change that does not pay yet is considered again when the load has lasted half as long again, and not sooner than
/// this.
const PATIENCE_MIN: Duration = Duration::from_millis(500);
/// A plan that should carry the load must leave this share of the throughput, or the load is a closed-loop one.
const CARRIES: f64 = 0.96;
/// Below this, a trial of whether the load takes more is not worth while.
const BUSY_MIN: f64 = 0.2;

#[derive(Clone, Debug)]
pub struct Profile {
    platform: Platform,
    settings: Settings,
    profiles: Profiles,
    rest: Plan,
    plan: Plan,
    meter: Meter,
    phases: Phases,
    costs: Costs,
    /// What the plan was chosen for.
    chosen_for: Option<(Mix, Throughput, bool)>,
    measured: bool,
    follows: Follows,
    /// The share of the best throughput that the plan was chosen for.
    promised: f64,
    /// Throughput before a change that should not have lowered it.
    carried: Option<Throughput>,
    /// The plan and measurement before a trial that shows whether the load takes more.
    tried: Option<(Plan, Measured)>,
    /// Number of changes made because of measurements of this load.
    refined: u32,
    /// Throughput of this load to that of the recorded one, under the plan with which that was first seen. Loads of one
    /// nature deliver more or less; only how plans compare is learnt.
    level: Option<f64>,
    verdicts: Verdicts,
    /// Measurements of this load.
    seen: Vec<(Plan, Measured)>,
    /// When to consider a promising change again, if the load lasts.
    patient_until: Option<Instant>,
    moved_samples: usize,
    /// Since the plan was chosen.
    work: Work,
    exploration: Option<Exploration>,
    /// A load of which an exploration found nothing better than what the profiles chose.
    vindicated: Option<Mix>,
    resting: bool,
    /// The load carries requests: then latency counts.
    requests: bool,
    /// The plan is a predecessor's, and the load that it was chosen for is not known.
    resumed: bool,
    learnt: u64,
    last_traffic: Instant,
    chosen: Instant,
}

impl Profile {
    /// Leaves out profiles whose plans do not fit the present managed CPUs; it is an error if none is left.
    pub fn new(platform: &Platform, settings: &Settings) -> Result<Self, SchedulerError> {
        let mut profiles = settings.profiles.clone();
        profiles.retain_plans(|plan| {
            let all = platform.components().iter().all(|name| plan.seats.contains_key(name));
            all && check(plan, platform.machine()).is_ok()
        });
        if profiles.is_empty() {
            return Err(SchedulerError::NoProfileFits);
        }
        let aims = Aims { spare: settings.spare, ..Aims::default() };
        let rest = Ladder::build(platform, &aims).rung(0).plan.clone();
        Ok(Self {
            platform: platform.clone(),
            settings: settings.clone(),
            profiles,
            plan: rest.clone(),
            rest,
            meter: Meter::default(),
            phases: Phases::default(),
            costs: Costs::default(),
            chosen_for: None,
            measured: false,
            follows: Follows::Unknown,
            promised: 1.0,
            carried: None,
            tried: None,
            refined: 0,
            level: None,
            verdicts: Verdicts::default(),
            seen: Vec::new(),
            patient_until: None,
            moved_samples: 0,
            work: Work::default(),
            exploration: None,
            vindicated: None,
            resting: true,
            requests: false,
            resumed: false,
            learnt: 0,
            last_traffic: Instant::ZERO,
            chosen: Instant::ZERO,
        })
    }

    /// Resumes a predecessor's plan: measures the load under it, and chooses anew only if the load changes.
    pub fn resume(&mut self, plan: Plan, time: Instant) {
        self.change(plan);
        (self.resting, self.resumed) = (false, true);
        (self.last_traffic, self.chosen) = (time, time);
        self.costs.load_begins(time);
    }

    pub fn is_settled(&self) -> bool {
        match self.explorer() {
            Some(explorer) => explorer.is_settled(),
            None => !self.resting && self.measured && self.moved_samples == 0,
        }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The observed costs of changes of plan.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// The profiles with all that was learnt, to be saved.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    pub fn decide(&mut self, time: Instant, seen: &Observation) -> Decision {
        let reason = self.step(time, seen);
        Decision { plan: self.plan.clone(), reason }
    }

    fn step(&mut self, time: Instant, seen: &Observation) -> Option<String> {
        let reading = Reading::of(&self.platform, &self.settings.power, &self.plan, seen);
        if indicators::is_silent(&seen.traffic) {
            let silent = time.saturating_since(self.last_traffic);
            if self.resting {
                return None;
            }
            if silent < REST_AFTER {
                return self.explore(time, seen).flatten();
            }
            self.phases.note(time, Role::Computes);
            (self.resting, self.resumed, self.chosen_for) = (true, false, None);
            (self.exploration, self.vindicated) = (None, None);
            self.forget_load();
            self.costs.load_ends(self.last_traffic);
            self.change(self.rest.clone());
            return Some(format!("no packet for {} ms: rests on one shared core", silent.as_millis()));
        }
        self.last_traffic = time;
        self.requests = matches!(seen.indicators.kind, Kind::RequestResponse | Kind::Mixed);
        if core::mem::take(&mut self.resting) {
            self.meter.restart();
            self.costs.load_begins(time);
        }
        self.meter.add(reading);
        let turned = self.phases.note(time, Role::of(&seen.indicators));
        if turned {
            // The measurements so far belong to the other role.
            self.meter.restart();
            self.costs.load_begins(time);
        }
        if let Some(reason) = self.explore(time, seen) {
            return reason;
        }
        self.note_work(seen);
        let mix = seen.indicators.mix();
        self.learn_cost(mix);
        match self.chosen_for {
            None if self.resumed => {
                let now = self.meter.last(WINDOW_SAMPLES, SETTLING_SAMPLES, mix)?;
                (self.resumed, self.measured) = (false, true);
                self.learn(&now);
                self.chosen_for = Some((now.mix, now.throughput, now.overloaded >= 0.5));
                // Which has explored what was worth it.
                self.vindicated = Some(now.mix);
                Some("goes on with its predecessor's plan".into())
            }
            None => {
                let now = self.meter.last(2, FIRST_SAMPLES, mix)?;
                self.choose(time, now, "new traffic", false)
            }
            Some(before) => self.follow(time, mix, before),
        }
    }

    fn follow(&mut self, time: Instant, mix: Mix, before: (Mix, Throughput, bool)) -> Option<String> {
        let now = self.meter.last(5, SETTLING_SAMPLES, mix)?;
        let full = self.meter.last(WINDOW_SAMPLES, SETTLING_SAMPLES, mix);
        if let Some(full) = full.filter(|_| !self.measured) {
            return self.measured_first(time, full);
        }
        let ratio = now.throughput.max(before.1).ratio_to(now.throughput.min(before.1));
        let pressed = now.overloaded >= 0.99 && !before.2;
        let lost = self.carried.is_some_and(|carried| now.throughput < carried * CARRIES);
        if before.0.difference(&mix) > MIX_MOVED {
            self.forget_load();
        } else if lost || (pressed && self.carried.is_some()) {
            self.judge(time, mix, Follows::Yes);
        }
        let moved = before.0.difference(&mix) > MIX_MOVED || (ratio > LOAD_MOVED && !before.2) || pressed;
        self.moved_samples = if moved { self.moved_samples + 1 } else { 0 };
        if self.moved_samples > MOVED_SAMPLES {
            let role = self.phases.role();
            // Another role may want all of the stack elsewhere.
            let reconfiguration = self.costs.of_moves(self.platform.components().len());
            if !self.phases.pays(time, reconfiguration) {
                self.moved_samples = 0;
                self.chosen_for = Some((mix, now.throughput, now.overloaded >= 0.5));
                return Some(format!("{}, but not for long enough to reconfigure", role.name()));
            }
            return self.choose(time, now, role.name(), false);
        }
        let full = full?;
        if let Some(reason) = self.save_power(time, full) {
            return Some(reason);
        }
        if time.saturating_since(self.chosen) >= REFINE {
            self.learn(&full);
            return self.choose_steady(time, full, "refined");
        }
        if self.patient_until.is_some_and(|until| time >= until) {
            return self.choose_steady(time, full, "the load lasts");
        }
        None
    }

    /// The plan was measured for this load for the first time since it was chosen.
    fn measured_first(&mut self, time: Instant, now: Measured) -> Option<String> {
        self.measured = true;
        if let Some(why) = self.doubt(&now) {
            return Some(self.begin_exploring(time, now, why));
        }
        let tried = self.tried.take();
        if let Some((_, before)) = &tried {
            let moved = now.throughput.abs_diff(before.throughput) > before.throughput * GAIN_MIN;
            self.judge(time, now.mix, if moved { Follows::Yes } else { Follows::No });
        }
        self.learn(&now);
        if let Some((plan, before)) = tried.filter(|_| self.follows == Follows::Yes) {
            // So the plan before was saturated by this load.
            self.learn_of(&plan, &before, true);
        }
        self.chosen_for = Some((now.mix, now.throughput, now.overloaded >= 0.5));
        self.refined = self.refined.saturating_add(1);
        match self.refined {
            ..=REFINED_MAX => self.choose_steady(time, now, "measured"),
            refined if refined == REFINED_MAX + 1 => self.go_back(&now),
            _ => None,
        }
    }

    /// Ends the trials for now: the best of the measured plans stays.
    fn go_back(&mut self, now: &Measured) -> Option<String> {
        let most = self.seen.iter().map(|(_, seen)| seen.throughput).fold(Throughput::LEAST, Throughput::max);
        let score = |seen: &Measured| self.settings.goal.score(seen.throughput / most, seen.power);
        let (best, of_best) = self.seen.iter().max_by(|a, b| score(&a.1).total_cmp(&score(&b.1)))?.clone();
        let is_near = |a: f64, b: f64| (a - b).abs() <= GAIN_MIN * b.abs();
        let is_as_good =
            is_near(of_best.throughput.0, now.throughput.0) && is_near(of_best.power.0, now.power.0);
        if best.is_same(&self.plan) || is_as_good || self.follows != Follows::Yes {
            return None;
        }
        self.change(best);
        Some("measured: goes back to the best of what was tried".into())
    }

    /// Chooses under a load that was measured over a whole window: throughput missing after the change is its cost.
    fn choose_steady(&mut self, time: Instant, now: Measured, why: &str) -> Option<String> {
        let before = self.plan.clone();
        let reason = self.choose(time, now, why, true);
        if !self.plan.is_same(&before) {
            self.costs.begins(&before, &self.plan, now.throughput);
        }
        reason
    }

    /// `steady`: the load was measured over a whole window, so that a trial can be compared with it.
    fn choose(&mut self, time: Instant, now: Measured, why: &str, steady: bool) -> Option<String> {
        let saturated = now.overloaded >= 0.5;
        self.moved_samples = 0;
        let fresh = self.chosen_for.is_none_or(|(mix, ..)| mix.difference(&now.mix) > MIX_MOVED);
        let fills = saturated && self.chosen_for.is_some_and(|(.., filled)| !filled);
        self.chosen_for = Some((now.mix, now.throughput, saturated));
        self.chosen = time;
        if fresh || fills {
            // Not yet under this plan, or not while it was full, which alone shows whether the profiles are right about it.
            self.measured = false;
            self.meter.restart();
            self.work.forget();
        }
        if self.follows == Follows::Unknown {
            self.follows = self.verdicts.recall(time, &now.mix);
        }
        let tries = !saturated && steady && self.follows == Follows::Unknown && now.busy >= BUSY_MIN;
        let takes_all = saturated || tries || self.follows == Follows::Yes;
        let mut choice = self.look_up(&now, takes_all)?;
        if tries && choice.plan.is_same(&self.plan) {
            // There is nothing better to try: what carries it shows whether it follows.
            self.follows = Follows::No;
            choice = self.look_up(&now, false)?;
        }
        let tries = tries && self.follows == Follows::Unknown;
        let Choice { plan, throughput, power, gain, latency, nearest } = choice;
        self.patient_until = None;
        if plan.is_same(&self.plan) {
            return fresh.then(|| format!("{why}: nearest to {nearest}; the plan is the best known"));
        }
        let worth = self.costs.gain_min(GAIN_MIN, &self.plan, &plan, time);
        if gain.is_some_and(|gain| gain < worth) {
            self.patient_until = Some(time + (self.costs.load_age(time) / 2).max(PATIENCE_MIN));
            return fresh
                .then(|| format!("{why}: nearest to {nearest}; waits whether the load lasts long enough"));
        }
        let carries = !saturated && !tries && self.follows != Follows::Yes;
        self.carried = carries.then_some(now.throughput);
        self.tried = tries.then(|| (self.plan.clone(), now));
        self.promised = throughput;
        self.change(plan);
        let answered = latency.map(|latency| format!(" and answers in {latency:.0}")).unwrap_or_default();
        Some(format!(
            "{why}: nearest to {nearest}, which promises {:.0}% of the best at {power:.1}{answered}",
            throughput * 100.0
        ))
    }

    fn look_up(&self, now: &Measured, takes_all: bool) -> Option<Choice> {
        let wish = Wish {
            mix: now.mix,
            demand: (!takes_all).then_some(now.busy),
            goal: self.settings.goal,
            requests: self.requests,
            latency_max: self.settings.latency_max,
        };
        self.profiles.choose(&wish, &self.plan, GAIN_MIN)
    }

    fn change(&mut self, plan: Plan) {
        if !plan.is_same(&self.plan) {
            self.plan = plan;
            self.meter.restart();
            self.costs.forget();
            self.work.forget();
            self.measured = false;
        }
    }
}

#[cfg(test)]
mod tests;
