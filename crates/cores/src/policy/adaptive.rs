//! `adaptive`: starts consolidated and finds its way along the [ladder](crate::ladder) by trying (thesis, section 4.6).
//!
//! * Idle: the whole stack rests on one shared core.
//! * Overload is answered at once: the next rungs in strides of 1, 3, 9, two looks apart, without waiting for
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
use crate::policy::neighbours::{Candidate, Position, candidates, slower, time_ratio};
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
/// A CPU that is busier will soon have nothing to spare, if the load grows.
const NEARLY_FULL: f64 = 0.85;
/// A settled load that departs by more than this, for [`CHANGED_LOOKS`], is another load.
const DEPARTED: f64 = 0.25;
const CHANGED_LOOKS: usize = 8;
/// Predicted gains below this are not worth a change; moving components costs caches, so it must promise more.
const GAIN_SPEED: f64 = 0.015;
const GAIN_MOVE: f64 = 0.03;
/// By how much a prediction may fall short of the floor and still be tried.
const DOUBT_SPEED: f64 = 0.06;
const DOUBT_MOVE: f64 = 0.01;
/// After a change of load, nothing is moved down before this: it may come back.
const CALM_BEFORE_DOWN_NS: u64 = 1_000_000_000;
/// Less than this is noise.
const MORE: f64 = 1.015;
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
    /// Mean work of the components under the present plan.
    work: Demand,
    /// Of the present load: its best throughput so far, trials made.
    best: f64,
    trials: u32,
    /// How many of the fastest rungs were tried for this load.
    peeked: usize,
    elasticity: f64,
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
    Trying(Trial),
    Settled {
        at: Measured,
        since_ns: u64,
    },
}

#[derive(Clone, Debug)]
struct Trial {
    base: Plan,
    was: Measured,
    /// Work seen under the base plan.
    demand: Demand,
    /// Made to see whether the load takes more at all.
    peek: bool,
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
            work: Demand::new(),
            best: 0.0,
            trials: 0,
            peeked: 0,
            elasticity: 0.0,
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
        // While it goes up, the load is still growing: what is nearly full will be.
        let growing = matches!(self.mode, Mode::Climbing { .. }) && look.busy > NEARLY_FULL;
        let overloaded = look.overloaded || growing;
        self.overloaded_looks = if overloaded { self.overloaded_looks + 1 } else { 0 };
        self.note_work(seen);
        match core::mem::replace(&mut self.mode, Mode::Measuring) {
            Mode::Resting => self.wake(now_ns, seen),
            Mode::Climbing { stride, from, calm } => self.climb(now_ns, seen, stride, from, calm, overloaded),
            Mode::Measuring => self.measure(now_ns, seen),
            Mode::Trying(trial) => self.judge(now_ns, seen, trial),
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
        (self.peeked, self.elasticity) = (0, 0.0);
        self.departed_looks = 0;
        self.rebuild(&self.demand(seen), seen);
    }

    fn demand(&self, seen: &Observation) -> Demand {
        estimate::demand(&self.platform, &self.plan, seen)
    }

    fn note_work(&mut self, seen: &Observation) {
        const NEWEST: f64 = 0.1;
        let now = self.demand(seen);
        if self.meter.since_change() <= SETTLING_LOOKS {
            self.work = now;
            return;
        }
        for (name, work) in now {
            let mean = self.work.entry(name).or_insert(work);
            *mean += (work - *mean) * NEWEST;
        }
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
            && !indicators::is_silent(&seen.traffic)
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
            self.mode = Mode::Climbing { stride: (stride * 3).min(9), from, calm: 0 };
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
        let demand = self.work.clone();
        if let Some(plan) = self.peek(now_ns, &now) {
            let base = self.plan.clone();
            self.change(plan);
            self.mode = Mode::Trying(Trial { base, was: now, demand, peek: true });
            return Some("tries whether the load takes more from a faster rung".into());
        }
        if self.trials < TRIALS_MAX
            && let Some(next) = self.promising(now_ns, seen, &now, &demand)
        {
            return self.attempt(next, now, demand);
        }
        self.mode = Mode::Settled { at: now, since_ns: now_ns };
        Some("settled: no neighbour promises more".into())
    }

    /// A load that waits for its answers takes more if they come sooner, without ever overloading anything: only
    /// trying tells. Twice for each load: spread, and consolidated, at full speed.
    fn peek(&mut self, now_ns: u64, now: &Measured) -> Option<Plan> {
        const BUSY_MIN: f64 = 0.2;
        while self.peeked < 2 && now.busy >= BUSY_MIN && now.overloaded < 0.5 {
            let rung = if self.peeked == 0 { self.ladder.top() } else { self.ladder.consolidated_top() };
            self.peeked += 1;
            let plan = &self.ladder.rung(rung).plan;
            if !plan.is_same(&self.plan) && !self.memory.is_barred(plan, &now.mix, now.throughput, now_ns) {
                return Some(plan.clone());
            }
        }
        None
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
        self.mode = Mode::Trying(Trial { base, was, demand, peek: false });
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
            elasticity: self.elasticity,
        };
        let barred = |plan: &Plan| self.memory.is_barred(plan, &now.mix, now.throughput, now_ns);
        let free = candidates(&here, &self.ladder).into_iter().filter(|next| !barred(&next.plan));
        let worth = free.filter(|next| self.is_worth(next, now));
        let best = worth.max_by(|a, b| self.score(a, now).total_cmp(&self.score(b, now)));
        // Slower may be faster, which no prediction shows: whoever is not the bottleneck is tried a step slower.
        let slower = || slower(&here).into_iter().find(|next| !barred(&next.plan));
        best.or_else(|| if matches!(objective, Objective::LeastPower { .. }) { None } else { slower() })
    }

    fn score(&self, next: &Candidate, now: &Measured) -> f64 {
        let best = self.best.max(1.0);
        self.settings.objective.score(next.throughput * now.throughput / best, next.power_w)
    }

    fn is_worth(&self, next: &Candidate, now: &Measured) -> bool {
        let gain = if next.plan.same_seats(&self.plan) { GAIN_SPEED } else { GAIN_MOVE };
        let best = self.best.max(1.0);
        // Work that waits for memory is hardly slower on a slower clock, so a step of speed may do better than is
        // predicted.
        let doubt = if next.plan.same_seats(&self.plan) { DOUBT_SPEED } else { DOUBT_MOVE };
        let reaches = next.throughput * now.throughput / best >= self.settings.objective.floor() - doubt;
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

    fn judge(&mut self, now_ns: u64, seen: &Observation, trial: Trial) -> Option<String> {
        let mix = seen.indicators.mix();
        let was = trial.was;
        let early = self.meter.last(4, SETTLING_LOOKS, mix);
        let measured = self.meter.last(WINDOW_LOOKS, SETTLING_LOOKS, mix);
        let same_mix = was.mix.difference(&mix) <= SAME_MIX;
        let floor = self.settings.objective.floor().max(0.3);
        let abrupt = early.is_some_and(|early| early.throughput < was.throughput * ABRUPT * floor);
        if measured.is_none() && !(abrupt && same_mix) {
            self.mode = Mode::Trying(trial);
            return None;
        }
        let now = measured.or(early)?;
        if !same_mix {
            // The traffic has changed, so the comparison says nothing.
            self.begin_load(now_ns, seen);
            return Some("the mix of traffic changed during a trial: begins to measure anew".into());
        }
        self.learn_elasticity(&trial, &now);
        let more = now.throughput > was.throughput * MORE;
        if !abrupt && if trial.peek { more } else { self.is_better(&now, &was) } {
            self.best = self.best.max(now.throughput);
            return Some(format!("keeps it: {}", compare(&now, &was)));
        }
        if !trial.peek {
            self.memory.bar(&self.plan.clone(), &was.mix, was.throughput, now_ns);
        }
        self.change(trial.base);
        Some(format!("takes it back: {}", compare(&now, &was)))
    }

    /// How much throughput followed the time that messages take.
    fn learn_elasticity(&mut self, trial: &Trial, now: &Measured) {
        let longer = time_ratio(&self.platform, &trial.demand, &self.plan, &trial.base) - 1.0;
        if now.overloaded >= 0.5 || trial.was.overloaded >= 0.5 || longer.abs() < 0.03 {
            return;
        }
        let seen = ((trial.was.throughput / now.throughput.max(1.0) - 1.0) / longer).clamp(0.0, 1.0);
        let first = self.elasticity == 0.0;
        self.elasticity = if first { seen } else { (self.elasticity + seen) / 2.0 };
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
                now.throughput > was.throughput * MORE
                    || (cheaper && now.throughput >= was.throughput * 0.99 && now.throughput >= best * 0.985)
            }
            Objective::LeastPower { floor } => {
                let short = was.throughput < floor * best;
                (cheaper && now.throughput >= floor * best)
                    || (short && now.throughput > was.throughput * MORE)
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
            let demand = self.work.clone();
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
