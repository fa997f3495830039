//! `adaptive`: starts consolidated and finds its way along the [ladder](crate::ladder) by trying (thesis, section 4.6).
//!
//! * Idle: the whole stack rests on one shared core.
//! * Overload is answered at once: the next rungs in strides of 1, 2, 4, two looks apart, without waiting for
//!   measurements. A step after which the trend abruptly worsens, while the mix of traffic is unchanged, is taken back
//!   and remembered (`multiserver-scheduling`, section 5).
//! * When that has calmed down, the most promising [neighbour](super::neighbours) is tried, measured over a window, and
//!   kept if it serves the objective better; also the step *down*, for slower may be faster (`slower-is-faster`, section
//!   4). What failed is [remembered](super::memory) for a time that doubles.
//! * When nothing promising is left, it is settled, and changes nothing until the load does; at long, growing intervals
//!   one neighbour is probed.
//! * A load that [flaps](super::flapping) is not followed.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::estimate::{self, Demand};
use crate::indicators;
use crate::ladder::{Aims, Ladder};
use crate::observation::Observation;
use crate::placement::Nearness;
use crate::plan::Plan;
use crate::platform::Platform;
use crate::policy::flapping::{Advice, Flapping};
use crate::policy::measure::{Look, Measured, Meter, SETTLING_LOOKS};
use crate::policy::memory::{Memory, SAME_MIX};
use crate::policy::neighbours::{Candidate, Position, candidates};
use crate::policy::{Decision, Objective, Settings};

/// Without a packet for so long, the stack rests.
const REST_AFTER_NS: u64 = 400_000_000;
/// Looks with overload that make an overload.
const OVERLOADED_LOOKS: usize = 2;
/// Looks without overload that end a climb.
const CALM_LOOKS: usize = 5;
/// Looks over which a plan is measured.
const WINDOW_LOOKS: usize = 20;
/// A step to less than this of the throughput before is abruptly worse.
const ABRUPT: f64 = 0.75;
/// A settled load that departs by more than this, for [`CHANGED_LOOKS`], is another load.
const DEPARTED: f64 = 0.25;
const CHANGED_LOOKS: usize = 8;
/// Predicted gains below this are not worth a change; moving components costs caches, so it must promise more.
const GAIN_SPEED: f64 = 0.015;
const GAIN_MOVE: f64 = 0.03;
/// After a change of load, nothing is moved down before this: it may come back.
const CALM_BEFORE_DOWN_NS: u64 = 1_000_000_000;
const TRIALS_MAX: u32 = 32;
const PROBE_AFTER_NS: u64 = 180_000_000_000;
const PROBE_AFTER_MAX_NS: u64 = 3_600_000_000_000;

#[derive(Clone, Debug)]
pub struct Adaptive {
    platform: Platform,
    settings: Settings,
    ladder: Ladder,
    plan: Plan,
    mode: Mode,
    meter: Meter,
    memory: Memory,
    flapping: Flapping,
    /// Of the present load: its best throughput so far, trials made.
    best: f64,
    trials: u32,
    overloaded_looks: usize,
    departed_looks: usize,
    last_traffic_ns: u64,
    load_changed_ns: u64,
    probe_wait_ns: u64,
}

#[derive(Clone, Debug)]
enum Mode {
    Resting,
    /// Going up; where the last step came from, and what that achieved.
    Climbing {
        stride: usize,
        from: Option<(Plan, Measured)>,
        calm: usize,
    },
    /// Measuring the present plan.
    Measuring,
    /// Measuring a neighbour.
    Trying {
        base: Plan,
        was: Measured,
        demand: Demand,
    },
    Settled {
        at: Measured,
        since_ns: u64,
    },
}

impl Adaptive {
    pub fn new(platform: &Platform, settings: &Settings) -> Self {
        let aims = Aims { spare: settings.spare, ..Aims::default() };
        let ladder = Ladder::build(platform, &aims);
        Self {
            platform: platform.clone(),
            settings: settings.clone(),
            plan: ladder.rung(0).plan.clone(),
            ladder,
            mode: Mode::Resting,
            meter: Meter::default(),
            memory: Memory::default(),
            flapping: Flapping::default(),
            best: 0.0,
            trials: 0,
            overloaded_looks: 0,
            departed_looks: 0,
            last_traffic_ns: 0,
            load_changed_ns: 0,
            probe_wait_ns: PROBE_AFTER_NS,
        }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The ladder for the work and the kind of traffic last seen.
    pub fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    pub fn is_settled(&self) -> bool {
        matches!(self.mode, Mode::Settled { .. })
    }

    pub fn decide(&mut self, now_ns: u64, seen: &Observation) -> Decision {
        let reason = self.step(now_ns, seen);
        Decision { plan: self.plan.clone(), reason }
    }

    fn step(&mut self, now_ns: u64, seen: &Observation) -> Option<String> {
        let look = Look::of(&self.platform, &self.settings.power, &self.plan, seen);
        if indicators::is_silent(&seen.traffic) {
            if let Some(reason) = self.rest(now_ns) {
                return reason;
            }
        } else {
            self.last_traffic_ns = now_ns;
        }
        self.flapping.note(now_ns, look, self.meter.since_change());
        if let Some(reason) = self.hold(now_ns, look, seen) {
            return reason;
        }
        self.meter.add(look);
        self.overloaded_looks = if look.overloaded { self.overloaded_looks + 1 } else { 0 };
        match core::mem::replace(&mut self.mode, Mode::Measuring) {
            Mode::Resting => self.wake(now_ns, seen),
            Mode::Climbing { stride, from, calm } => {
                self.climb(now_ns, seen, stride, from, calm, look.overloaded)
            }
            Mode::Measuring => self.measure(now_ns, seen),
            Mode::Trying { base, was, demand } => self.judge(now_ns, seen, base, was, demand),
            Mode::Settled { at, since_ns } => self.watch(now_ns, seen, at, since_ns),
        }
    }

    /// `Some` while it rests.
    fn rest(&mut self, now_ns: u64) -> Option<Option<String>> {
        if matches!(self.mode, Mode::Resting) {
            return Some(None);
        }
        let silent_ns = now_ns.saturating_sub(self.last_traffic_ns);
        if silent_ns < REST_AFTER_NS {
            return None;
        }
        self.mode = Mode::Resting;
        self.flapping = Flapping::default();
        let plan = self.ladder.rung(0).plan.clone();
        self.change(plan);
        Some(Some(format!("no packet for {} ms: rests on one shared core", silent_ns / 1_000_000)))
    }

    fn wake(&mut self, now_ns: u64, seen: &Observation) -> Option<String> {
        self.begin_load(now_ns, seen);
        self.mode = Mode::Climbing { stride: 1, from: None, calm: 0 };
        None
    }

    /// The load is another one: what was best says nothing any more.
    fn begin_load(&mut self, now_ns: u64, seen: &Observation) {
        (self.best, self.trials, self.load_changed_ns) = (0.0, 0, now_ns);
        self.departed_looks = 0;
        self.rebuild(&self.demand(seen), seen);
    }

    fn demand(&self, seen: &Observation) -> Demand {
        estimate::demand(&self.platform, &self.plan, seen)
    }

    fn rebuild(&mut self, demand: &Demand, seen: &Observation) {
        let nearness = Nearness::of(&self.platform, &seen.indicators);
        let aims = Aims { spare: self.settings.spare, nearness, demand: demand.clone() };
        self.ladder = Ladder::build(&self.platform, &aims);
    }

    fn change(&mut self, plan: Plan) {
        if !plan.is_same(&self.plan) {
            self.plan = plan;
            self.meter.restart();
            self.overloaded_looks = 0;
        }
    }

    fn hold(&mut self, now_ns: u64, look: Look, seen: &Observation) -> Option<Option<String>> {
        let (ladder, plan) = (&self.ladder, &self.plan);
        let plans = || {
            let spread =
                if plan.is_consolidated() { ladder.rung(ladder.top()).plan.clone() } else { plan.clone() };
            alloc::vec![spread, ladder.rung(ladder.consolidated_top()).plan.clone()]
        };
        match self.flapping.advise(now_ns, look, self.settings.objective, plans) {
            Advice::Calm => None,
            Advice::Hold(plan, why) => {
                self.change(plan);
                self.meter.add(look);
                self.mode = Mode::Climbing { stride: 1, from: None, calm: 0 };
                self.begin_load(now_ns, seen);
                Some(why.map(String::from))
            }
        }
    }

    fn climb(
        &mut self,
        now_ns: u64,
        seen: &Observation,
        stride: usize,
        from: Option<(Plan, Measured)>,
        calm: usize,
        overloaded: bool,
    ) -> Option<String> {
        let mix = seen.indicators.mix();
        let now = self.meter.last(2, 2, mix);
        if let (Some((before, was)), Some(now)) = (&from, now)
            && now.throughput < was.throughput * ABRUPT
            && was.mix.difference(&mix) <= SAME_MIX
            && !seen.traffic.eq(&Default::default())
        {
            let (before, bad) = (before.clone(), self.plan.clone());
            let share = now.throughput / was.throughput.max(1.0) * 100.0;
            self.memory.bar(&bad, &mix, was.throughput, now_ns);
            self.best = self.best.max(was.throughput);
            self.change(before);
            return Some(format!(
                "took the step back: only {share:.0}% of the throughput with the same traffic"
            ));
        }
        if self.overloaded_looks >= OVERLOADED_LOOKS
            && let Some(was) = self.meter.last(2, 0, mix)
            && let Some((name, plan)) = self.next_up(now_ns, seen, stride, &was)
        {
            let from = Some((self.plan.clone(), was));
            self.change(plan);
            self.mode = Mode::Climbing { stride: (stride * 2).min(4), from, calm: 0 };
            return Some(format!("overload: climbs to {name}"));
        }
        let calm = if overloaded { 0 } else { calm + 1 };
        let on_top = self.overloaded_looks >= CALM_LOOKS;
        self.mode = if calm >= CALM_LOOKS || on_top {
            Mode::Measuring
        } else {
            Mode::Climbing { stride, from, calm }
        };
        None
    }

    /// The rung that is `stride` above what we have, by what it is predicted to do.
    fn next_up(
        &mut self,
        now_ns: u64,
        seen: &Observation,
        stride: usize,
        was: &Measured,
    ) -> Option<(String, Plan)> {
        let demand = self.demand(seen);
        self.rebuild(&demand, seen);
        let relative = crate::ladder::relative(&self.platform, &demand);
        let busiest = estimate::bottleneck(&estimate::utilisation(&self.platform, &self.plan, &relative));
        let above = 1.03 / busiest.max(1e-6);
        let higher = self.ladder.rungs().iter().filter(|rung| rung.capacity > above);
        let allowed =
            higher.filter(|rung| !self.memory.is_barred(&rung.plan, &was.mix, was.throughput, now_ns));
        let rungs: Vec<_> = allowed.collect();
        let rung = rungs.get(stride - 1).or(rungs.last())?;
        Some((rung.name.clone(), rung.plan.clone()))
    }

    fn measure(&mut self, now_ns: u64, seen: &Observation) -> Option<String> {
        let mix = seen.indicators.mix();
        let now = self.meter.last(WINDOW_LOOKS, SETTLING_LOOKS, mix)?;
        self.best = self.best.max(now.throughput);
        if now.overloaded >= 0.5
            && self.trials == 0
            && let Some((name, plan)) = self.next_up(now_ns, seen, 1, &now)
        {
            let from = Some((self.plan.clone(), now));
            self.change(plan);
            self.mode = Mode::Climbing { stride: 2, from, calm: 0 };
            return Some(format!("overload: climbs to {name}"));
        }
        if now_ns.saturating_sub(self.load_changed_ns) < CALM_BEFORE_DOWN_NS {
            return None;
        }
        let demand = self.demand(seen);
        if self.trials < TRIALS_MAX
            && let Some(next) = self.promising(now_ns, seen, &now, &demand)
        {
            return self.attempt(next, now, demand);
        }
        self.mode = Mode::Settled { at: now, since_ns: now_ns };
        Some("settled: no neighbour promises more".into())
    }

    fn attempt(&mut self, next: Candidate, was: Measured, demand: Demand) -> Option<String> {
        self.trials += 1;
        let base = self.plan.clone();
        let promise = format!(
            "tries what promises {:.0}% of the throughput at {:.1} W instead of {:.1} W",
            next.throughput * 100.0,
            next.power_w,
            was.power_w
        );
        self.change(next.plan);
        self.mode = Mode::Trying { base, was, demand };
        Some(promise)
    }

    /// The best of the neighbours that are not barred and promise enough.
    fn promising(
        &mut self,
        now_ns: u64,
        seen: &Observation,
        now: &Measured,
        demand: &Demand,
    ) -> Option<Candidate> {
        let objective = self.settings.objective;
        let saturated = now.overloaded >= 0.5;
        let wanted = match objective {
            Objective::Throughput | Objective::ThroughputPerWatt if saturated => None,
            Objective::LeastPower { floor } if saturated => Some(floor * self.best / now.throughput.max(1.0)),
            _ => Some(1.0),
        };
        self.rebuild(demand, seen);
        let here = Position {
            platform: &self.platform,
            model: &self.settings.power,
            spare: self.settings.spare,
            plan: &self.plan,
            demand,
            saturated,
            wanted,
            loose: objective == Objective::ThroughputPerWatt,
        };
        let found = candidates(&here, &self.ladder).into_iter();
        let free = found.filter(|next| !self.memory.is_barred(&next.plan, &now.mix, now.throughput, now_ns));
        let worth = free.filter(|next| self.is_worth(next, now));
        worth.max_by(|a, b| self.score(a, now).total_cmp(&self.score(b, now)))
    }

    fn score(&self, next: &Candidate, now: &Measured) -> f64 {
        let best = self.best.max(1.0);
        self.settings.objective.score(next.throughput * now.throughput / best, next.power_w)
    }

    fn is_worth(&self, next: &Candidate, now: &Measured) -> bool {
        let gain = if next.plan.same_seats(&self.plan) { GAIN_SPEED } else { GAIN_MOVE };
        let best = self.best.max(1.0);
        let reaches = next.throughput * now.throughput / best >= self.settings.objective.floor() - 0.01;
        let cheaper = next.power_w < now.power_w * (1.0 - gain);
        match self.settings.objective {
            Objective::Throughput => next.throughput > 1.0 + gain || (reaches && cheaper),
            Objective::LeastPower { floor } => {
                let short = now.throughput < floor * best;
                (reaches && cheaper) || (short && next.throughput > 1.0 + gain)
            }
            Objective::ThroughputPerWatt => {
                next.throughput / next.power_w.max(1e-3) > (1.0 + gain) / now.power_w.max(1e-3)
            }
        }
    }

    fn judge(
        &mut self,
        now_ns: u64,
        seen: &Observation,
        base: Plan,
        was: Measured,
        demand: Demand,
    ) -> Option<String> {
        let mix = seen.indicators.mix();
        let early = self.meter.last(4, SETTLING_LOOKS, mix);
        let measured = self.meter.last(WINDOW_LOOKS, SETTLING_LOOKS, mix);
        let same_mix = was.mix.difference(&mix) <= SAME_MIX;
        let floor = self.settings.objective.floor();
        let abrupt = early.is_some_and(|early| early.throughput < was.throughput * ABRUPT * floor.max(0.3));
        if measured.is_none() && !(abrupt && same_mix) {
            self.mode = Mode::Trying { base, was, demand };
            return None;
        }
        let now = measured.or(early)?;
        if !same_mix {
            // The traffic has changed, so the comparison says nothing.
            self.begin_load(now_ns, seen);
            return Some("the mix of traffic changed during a trial: begins to measure anew".into());
        }
        if !abrupt && self.is_better(&now, &was) {
            self.best = self.best.max(now.throughput);
            return Some(format!("keeps it: {}", compare(&now, &was)));
        }
        self.memory.bar(&self.plan.clone(), &was.mix, was.throughput, now_ns);
        self.change(base);
        Some(format!("takes it back: {}", compare(&now, &was)))
    }

    fn is_better(&self, now: &Measured, was: &Measured) -> bool {
        const CHEAPER: f64 = 0.995;
        let best = self.best.max(was.throughput).max(1.0);
        // An open load that the old plan carried without overload must not be overloaded by the new one.
        let overloads =
            was.overloaded < 0.2 && now.overloaded >= 0.5 && now.throughput < was.throughput * 0.99;
        let cheaper = now.power_w < was.power_w * CHEAPER;
        match self.settings.objective {
            _ if overloads => false,
            Objective::Throughput => {
                now.throughput > was.throughput * 1.015
                    || (cheaper && now.throughput >= was.throughput * 0.99 && now.throughput >= best * 0.985)
            }
            Objective::LeastPower { floor } => {
                let short = was.throughput < floor * best;
                (cheaper && now.throughput >= floor * best)
                    || (short && now.throughput > was.throughput * 1.015)
            }
            Objective::ThroughputPerWatt => {
                now.throughput / now.power_w.max(1e-3) > was.throughput / was.power_w.max(1e-3) * 1.005
            }
        }
    }

    fn watch(&mut self, now_ns: u64, seen: &Observation, at: Measured, since_ns: u64) -> Option<String> {
        let mix = seen.indicators.mix();
        if self.overloaded_looks >= OVERLOADED_LOOKS + 1 && at.overloaded < 0.3 {
            self.begin_load(now_ns, seen);
            self.mode = Mode::Climbing { stride: 1, from: None, calm: 0 };
            // What carried the load so far is too little; do not come back to it soon.
            self.memory.bar(&self.plan.clone(), &at.mix, at.throughput, now_ns);
            return None;
        }
        let now = self.meter.last(4, 0, mix).unwrap_or(at);
        let departed = (now.throughput - at.throughput).abs() > at.throughput * DEPARTED;
        let changed = departed || at.mix.difference(&mix) > SAME_MIX;
        self.departed_looks = if changed { self.departed_looks + 1 } else { 0 };
        if self.departed_looks >= CHANGED_LOOKS {
            self.begin_load(now_ns, seen);
            self.meter.restart();
            self.mode = Mode::Climbing { stride: 1, from: None, calm: 0 };
            self.probe_wait_ns = PROBE_AFTER_NS;
            return Some("the load is another one: measures anew".into());
        }
        if now_ns.saturating_sub(since_ns) >= self.probe_wait_ns {
            self.probe_wait_ns = (self.probe_wait_ns * 2).min(PROBE_AFTER_MAX_NS);
            let demand = self.demand(seen);
            if let Some(was) = self.meter.last(WINDOW_LOOKS, 0, mix)
                && let Some(next) = self.promising(now_ns, seen, &was, &demand)
            {
                self.trials = TRIALS_MAX - 1;
                return self.attempt(next, was, demand);
            }
            self.mode = Mode::Settled { at, since_ns: now_ns };
            return None;
        }
        self.mode = Mode::Settled { at, since_ns };
        None
    }
}

fn compare(now: &Measured, was: &Measured) -> String {
    let share = now.throughput / was.throughput.max(1.0) * 100.0;
    format!("{share:.1}% of the throughput, {:.1} W instead of {:.1} W", now.power_w, was.power_w)
}
