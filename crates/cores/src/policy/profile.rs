//! `profile`: the nearest recorded profiles decide (`multiserver-scheduling`, section 5).
//!
//! The nature of the traffic is compared with the loads that were swept; what their configurations achieved is
//! interpolated, and the objective chooses. Each measured pair of load and configuration refines what is known. A change
//! of the node's [role](super::roles) is followed only if the phase usually lasts longer than the reconfiguration costs.

use alloc::format;
use alloc::string::String;

use crate::indicators::{self, Kind, Mix};
use crate::ladder::{Aims, Ladder};
use crate::observation::Observation;
use crate::plan::{Plan, check};
use crate::platform::Platform;
use crate::policy::cost::Costs;
use crate::policy::measure::{Look, Measured, Meter, SETTLING_LOOKS};
use crate::policy::roles::{Phases, Role};
use crate::policy::{Decision, Settings};
use crate::profile::{Choice, Profiles, Wish};

const REST_AFTER_NS: u64 = 400_000_000;
/// Looks after which the nature of new traffic is known well enough.
const FIRST_LOOKS: usize = 4;
const WINDOW_LOOKS: usize = 20;
/// A mix that differs by more than this, or a load by this factor, is looked up again.
const MIX_MOVED: f64 = 0.08;
const LOAD_MOVED: f64 = 1.3;
/// At an unchanged load, what was learnt changes the plan at most this often.
const REFINE_NS: u64 = 90_000_000_000;
/// Better by less than this is not worth a change.
const GAIN_MIN: f64 = 0.02;
/// A change to what carries the load must leave this share of the throughput, or the load is one that follows.
const CARRIES: f64 = 0.96;

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
    chosen_for: Option<(Mix, f64, bool)>,
    measured: bool,
    /// The load gave less when it got less: what it does not ask for now says nothing about what it would take.
    elastic: bool,
    /// Throughput before a change that should not have lowered it.
    carried: Option<f64>,
    moved_looks: usize,
    resting: bool,
    /// The load carries requests: then latency counts.
    requests: bool,
    /// The plan is a predecessor's; what it was chosen for is not known yet.
    resumed: bool,
    learnt: u64,
    last_traffic_ns: u64,
    chosen_ns: u64,
}

impl Profile {
    /// Profiles whose plans do not fit the CPUs that are managed now are left out; none left is an error.
    pub fn new(platform: &Platform, settings: &Settings) -> Result<Self, String> {
        let mut profiles = settings.profiles.clone();
        profiles.retain_plans(|plan| {
            let all = platform.components().iter().all(|name| plan.seats.contains_key(name));
            all && check(plan, platform.machine()).is_ok()
        });
        if profiles.is_empty() {
            return Err(
                "no profile fits this stack and its managed CPUs; record some with `eft profile sweep`"
                    .into(),
            );
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
            elastic: false,
            carried: None,
            moved_looks: 0,
            resting: true,
            requests: false,
            resumed: false,
            learnt: 0,
            last_traffic_ns: 0,
            chosen_ns: 0,
        })
    }

    /// Goes on from what a predecessor had chosen: measures the load under it, and chooses anew only if the load moves.
    pub fn resume(&mut self, plan: Plan, now_ns: u64) {
        self.change(plan);
        (self.resting, self.resumed) = (false, true);
        (self.last_traffic_ns, self.chosen_ns) = (now_ns, now_ns);
    }

    pub fn is_settled(&self) -> bool {
        !self.resting && self.measured && self.moved_looks == 0
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What changes of plan were seen to cost.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// With what was learnt since; to be saved.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    pub fn decide(&mut self, now_ns: u64, seen: &Observation) -> Decision {
        let reason = self.step(now_ns, seen);
        Decision { plan: self.plan.clone(), reason }
    }

    fn step(&mut self, now_ns: u64, seen: &Observation) -> Option<String> {
        let look = Look::of(&self.platform, &self.settings.power, &self.plan, seen);
        if indicators::is_silent(&seen.traffic) {
            let silent_ns = now_ns.saturating_sub(self.last_traffic_ns);
            if self.resting || silent_ns < REST_AFTER_NS {
                return None;
            }
            self.phases.note(now_ns, Role::Computes);
            (self.resting, self.resumed, self.chosen_for) = (true, false, None);
            (self.elastic, self.carried) = (false, None);
            self.change(self.rest.clone());
            return Some(format!("no packet for {} ms: rests on one shared core", silent_ns / 1_000_000));
        }
        self.last_traffic_ns = now_ns;
        self.requests = matches!(seen.indicators.kind, Kind::RequestResponse | Kind::Mixed);
        if core::mem::take(&mut self.resting) {
            self.meter.restart();
            self.costs.forget();
        }
        self.meter.add(look);
        let turned = self.phases.note(now_ns, Role::of(&seen.indicators));
        if turned {
            // What was measured so far was of the other role.
            self.meter.restart();
            self.costs.forget();
        }
        let mix = seen.indicators.mix();
        self.learn_cost(mix);
        match self.chosen_for {
            None if self.resumed => {
                let now = self.meter.last(WINDOW_LOOKS, SETTLING_LOOKS, mix)?;
                (self.resumed, self.measured) = (false, true);
                self.learn(&now);
                self.chosen_for = Some((now.mix, now.throughput, now.overloaded >= 0.5));
                Some("goes on with its predecessor's plan".into())
            }
            None => {
                let now = self.meter.last(2, FIRST_LOOKS, mix)?;
                self.choose(now_ns, now, "new traffic")
            }
            Some(before) => self.follow(now_ns, mix, before),
        }
    }

    fn follow(&mut self, now_ns: u64, mix: Mix, before: (Mix, f64, bool)) -> Option<String> {
        let now = self.meter.last(5, SETTLING_LOOKS, mix)?;
        let full = self.meter.last(WINDOW_LOOKS, SETTLING_LOOKS, mix);
        if let Some(full) = full.filter(|_| !self.measured) {
            self.measured = true;
            self.learn(&full);
            self.chosen_for = Some((full.mix, full.throughput, full.overloaded >= 0.5));
            return self.choose_steady(now_ns, full, "measured");
        }
        let ratio = now.throughput.max(before.1) / now.throughput.min(before.1).max(1.0);
        let pressed = now.overloaded >= 0.99 && !before.2;
        let lost = self.carried.is_some_and(|carried| now.throughput < carried * CARRIES);
        if before.0.difference(&mix) > MIX_MOVED {
            (self.elastic, self.carried) = (false, None);
        } else if lost || (pressed && self.carried.is_some()) {
            (self.elastic, self.carried) = (true, None);
        }
        let moved = before.0.difference(&mix) > MIX_MOVED || (ratio > LOAD_MOVED && !before.2) || pressed;
        self.moved_looks = if moved { self.moved_looks + 1 } else { 0 };
        if self.moved_looks > 3 {
            let role = self.phases.role();
            // Another role may want all of the stack elsewhere.
            let reconfiguration_ns = self.costs.of_moves(self.platform.components().len()) as u64;
            if !self.phases.pays(now_ns, reconfiguration_ns) {
                self.moved_looks = 0;
                self.chosen_for = Some((mix, now.throughput, now.overloaded >= 0.5));
                return Some(format!("{}, but not for long enough to reconfigure", role.name()));
            }
            return self.choose(now_ns, now, role.name());
        }
        if now_ns.saturating_sub(self.chosen_ns) >= REFINE_NS
            && let Some(full) = full
        {
            self.learn(&full);
            return self.choose_steady(now_ns, full, "refined");
        }
        None
    }

    /// Grows with everything that is learnt.
    pub fn learnt(&self) -> u64 {
        self.learnt
    }

    fn learn(&mut self, now: &Measured) {
        self.learnt += 1;
        let all = self.elastic || now.overloaded >= 0.5;
        self.profiles.learn(&now.mix, &self.plan, now.throughput, now.power_w, all);
    }

    /// Under a load that was measured over a whole window: what is missing after the change is the change's doing.
    fn choose_steady(&mut self, now_ns: u64, now: Measured, why: &str) -> Option<String> {
        let before = self.plan.clone();
        let reason = self.choose(now_ns, now, why);
        if !self.plan.is_same(&before) {
            self.costs.begins(&before, &self.plan, now.throughput);
        }
        reason
    }

    fn learn_cost(&mut self, mix: Mix) {
        let Some(before) = self.costs.settling() else { return };
        if let Some(now) = self.meter.last(WINDOW_LOOKS, SETTLING_LOOKS, mix) {
            self.costs.learn(self.meter.missing_ns(now.throughput.min(before)));
        }
    }

    fn choose(&mut self, now_ns: u64, now: Measured, why: &str) -> Option<String> {
        let saturated = now.overloaded >= 0.5;
        self.moved_looks = 0;
        let fresh = self.chosen_for.is_none_or(|(mix, ..)| mix.difference(&now.mix) > MIX_MOVED);
        self.chosen_for = Some((now.mix, now.throughput, saturated));
        self.chosen_ns = now_ns;
        let demand = (!saturated && !self.elastic).then_some(now.busy);
        let wish = Wish {
            mix: now.mix,
            demand,
            objective: self.settings.objective,
            requests: self.requests,
            latency_us_max: self.settings.latency_us_max,
        };
        let Choice { plan, throughput, power_w, latency_us, nearest } =
            self.profiles.choose(&wish, &self.plan, GAIN_MIN)?;
        if plan.is_same(&self.plan) {
            return fresh.then(|| format!("{why}: nearest to {nearest}; the plan is the best known"));
        }
        self.carried = demand.map(|_| now.throughput);
        self.change(plan);
        let answered = latency_us.map(|us| format!(" and answers in {us:.0} us")).unwrap_or_default();
        Some(format!(
            "{why}: nearest to {nearest}, which promises {:.0}% of the best at {power_w:.1} W{answered}",
            throughput * 100.0
        ))
    }

    fn change(&mut self, plan: Plan) {
        if !plan.is_same(&self.plan) {
            self.plan = plan;
            self.meter.restart();
            self.costs.forget();
            self.measured = false;
        }
    }
}
