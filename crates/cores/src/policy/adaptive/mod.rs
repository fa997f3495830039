//! `adaptive`: starts consolidated and finds its way along the [ladder](crate::ladder) by trying (thesis, section 4.6).
//!
//! - Idle: the whole stack rests on one shared core.
//! - Overload is answered at once: the next rungs in strides of 1, 3, 9, two samples apart, without waiting for
//!   measurements. If throughput drops abruptly with the same mix of traffic, the stack goes back to the best plan of
//!   the climb, and the failed one is remembered (`multiserver-scheduling`, section 5); likewise if a climb ends
//!   overloaded with less throughput. Before a climb, if others use an equal CPU, the stack is [tried there](peek):
//!   they may be the load's program.
//! - When the overload has ended, the most promising [neighbour](super::neighbours) is tried, measured over a window,
//!   and kept if it serves the objective better; also the step *down*, for slower may be faster (`slower-is-faster`,
//!   section 4). What failed is [remembered](super::memory) for a time that doubles.
//! - Where the goal is about power, [less of it](thrifty) is tried then, whatever the predictions say.
//! - When nothing promising is left, the policy is settled, and keeps the plan until the load changes; at long, growing
//!   intervals one neighbour is probed, if the load has moved a little.
//! - A load that [flaps](super::flapping) is not followed.

mod awake;
mod ceiling;
mod climb;
mod deal;
mod one_cpu;
mod peek;
mod settled;
mod thrifty;
mod trial;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use eft_base::Instant;
use eft_machine::CpuId;

use self::awake::Refused;
use self::ceiling::Ceiling;
use self::deal::{Found, Search};
use self::one_cpu::FellShort;
use self::peek::{Pace, Peek};
use self::settled::{Departure, Restless, Settled};
use crate::estimate::{self, Demand};
use crate::indicators;
use crate::ladder::{Aims, Ladder};
use crate::observation::Observation;
use crate::overlap::Overlaps;
use crate::placement::Nearness;
use crate::plan::Plan;
use crate::platform::Platform;
use crate::policy::cost::Costs;
use crate::policy::flapping::{Advice, Flapping};
use crate::policy::known::Known;
use crate::policy::measure::{Measured, Meter, Reading, SETTLING_SAMPLES};
use crate::policy::memory::Memory;
use crate::policy::sharing::Sharing;
use crate::policy::{Decision, Settings};
use crate::throughput::Throughput;

/// Without a packet for so long, the stack rests.
const REST_AFTER: Duration = Duration::from_millis(400);
/// Samples with overload in a row that count as an overload.
const OVERLOADED_SAMPLES: usize = 2;
/// Samples over which a plan is measured.
const WINDOW_SAMPLES: usize = 20;
/// A drop below this share of the throughput before is abrupt.
const ABRUPT: f64 = 0.75;
/// A CPU that is busier will soon have nothing to spare, if the load grows.
const NEARLY_FULL: f64 = 0.85;
const TRIALS_MAX: u32 = 32;
const PROBE_AFTER: Duration = Duration::from_secs(180);

#[derive(Clone, Debug)]
pub struct Adaptive {
    platform: Platform,
    settings: Settings,
    ladder: Ladder,
    plan: Plan,
    mode: Mode,
    meter: Meter,
    memory: Memory,
    known: Known,
    flapping: Flapping,
    costs: Costs,
    /// Until when a trial or search waits to see whether the load lasts.
    patient_until: Instant,
    /// Mean work of the components under the present plan.
    work: Demand,
    sharing: Sharing,
    /// Which components are busy at the same time.
    overlaps: Overlaps,
    /// Of the present load: its best throughput so far, what it is known to take, trials made, climbs taken back.
    best: Throughput,
    ceiling: Ceiling,
    fell_short: FellShort,
    trials: u32,
    steps_back: u32,
    /// What remains to be tried for this load, whatever the predictions say.
    peeks: Vec<Peek>,
    refused: Refused,
    /// Whether the search beside the load's programs has been made, and the results of searches.
    is_dealt: bool,
    found: Vec<Found>,
    /// The CPU that a trial showed to be the best among its equals.
    favoured: Option<CpuId>,
    /// Whether the stack's package has been checked for this load.
    went_home: bool,
    elasticity: f64,
    overloaded_samples: usize,
    departure: Departure,
    restless: Restless,
    last_traffic: Instant,
    load_changed: Instant,
    probe_wait: Duration,
}

#[derive(Clone, Debug)]
enum Mode {
    Resting,
    /// Climbing; `from` is the best plan of this climb and its measurement.
    Climbing {
        stride: usize,
        from: Option<(Plan, Measured)>,
        calm: usize,
    },
    /// Measuring the present plan.
    Measuring,
    /// Measuring a neighbour.
    Trying(Trial),
    /// Comparing ways to deal the stack out.
    Dealing(Search),
    Settled(Settled),
}

#[derive(Clone, Debug)]
struct Trial {
    base: Plan,
    was: Measured,
    /// Demand seen under the base plan.
    demand: Demand,
    /// Set if the trial is made whatever the predictions say.
    peek: Option<Peek>,
    pace: Pace,
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
            known: Known::default(),
            flapping: Flapping::default(),
            costs: Costs::default(),
            patient_until: Instant::ZERO,
            work: Demand::new(),
            sharing: Sharing::default(),
            overlaps: Overlaps::default(),
            best: Throughput::NONE,
            ceiling: Ceiling::default(),
            fell_short: FellShort::default(),
            trials: 0,
            steps_back: 0,
            peeks: Vec::new(),
            refused: Refused::default(),
            is_dealt: false,
            found: Vec::new(),
            favoured: None,
            went_home: false,
            elasticity: 0.0,
            overloaded_samples: 0,
            departure: Departure::default(),
            restless: Restless::default(),
            last_traffic: Instant::ZERO,
            load_changed: Instant::ZERO,
            probe_wait: PROBE_AFTER,
        }
    }

    /// Resumes a predecessor's plan: measures the load under it and settles there, so that nothing moves until the load
    /// changes.
    pub fn resume(&mut self, plan: Plan, time: Instant) {
        self.change(plan);
        (self.trials, self.went_home) = (TRIALS_MAX, true);
        self.peeks.clear();
        self.is_dealt = true;
        (self.last_traffic, self.load_changed) = (time, time);
        self.costs.load_begins(time);
        self.mode = Mode::Measuring;
    }

    /// Begins with the next traffic from a plan that another policy chose.
    pub fn take_over(&mut self, plan: Plan, time: Instant) {
        self.change(plan);
        self.last_traffic = time;
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The ladder for the work and the kind of traffic last seen.
    pub fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    /// Whether the present plan is there to be compared with another one.
    pub fn is_trying(&self) -> bool {
        matches!(self.mode, Mode::Trying(_) | Mode::Dealing(_))
    }

    pub fn is_settled(&self) -> bool {
        matches!(self.mode, Mode::Settled(_))
    }

    pub fn decide(&mut self, time: Instant, seen: &Observation) -> Decision {
        let reason = self.step(time, seen);
        Decision { plan: self.plan.clone(), reason }
    }

    fn step(&mut self, time: Instant, seen: &Observation) -> Option<String> {
        let reading = Reading::of(&self.platform, &self.settings.power, &self.plan, seen);
        if indicators::is_silent(&seen.traffic) {
            if let Some(reason) = self.rest(time) {
                return reason;
            }
        } else {
            self.last_traffic = time;
            self.overlaps.note(self.platform.components(), seen);
        }
        self.flapping.note(time, reading, seen.indicators.mix(), self.meter.since_change());
        if let Some(reason) = self.hold(time, reading, seen) {
            return reason;
        }
        self.meter.add(reading);
        self.learn_cost(seen);
        // During a climb the load still grows: a CPU that is nearly full counts as full.
        let growing = matches!(self.mode, Mode::Climbing { .. }) && reading.busy > NEARLY_FULL;
        let overloaded = reading.overloaded || growing;
        self.overloaded_samples = if overloaded { self.overloaded_samples + 1 } else { 0 };
        self.note_work(seen, reading.throughput);
        match core::mem::replace(&mut self.mode, Mode::Measuring) {
            Mode::Resting => self.wake(time, seen),
            Mode::Climbing { stride, from, calm } => self.climb(time, seen, stride, from, calm, overloaded),
            Mode::Measuring => self.measure(time, seen),
            Mode::Trying(trial) => self.judge(time, seen, trial),
            Mode::Dealing(search) => self.search(time, seen, search),
            Mode::Settled(settled) => self.watch(time, seen, settled),
        }
    }

    /// `Some` while it rests.
    fn rest(&mut self, time: Instant) -> Option<Option<String>> {
        if matches!(self.mode, Mode::Resting) {
            return Some(None);
        }
        let silent = time.saturating_since(self.last_traffic);
        if silent < REST_AFTER {
            return None;
        }
        self.mode = Mode::Resting;
        self.flapping.rest();
        self.costs.load_ends(self.last_traffic);
        let plan = self.ladder.rung(0).plan.clone();
        self.change(plan);
        Some(Some(format!("no packet for {} ms: rests on one shared core", silent.as_millis())))
    }

    fn wake(&mut self, time: Instant, seen: &Observation) -> Option<String> {
        self.begin_load(time, seen);
        self.mode = Mode::Climbing { stride: 1, from: None, calm: 0 };
        None
    }

    /// A new load begins: results for the old one no longer apply.
    fn begin_load(&mut self, time: Instant, seen: &Observation) {
        (self.best, self.trials, self.load_changed) = (Throughput::NONE, 0, time);
        (self.elasticity, self.went_home, self.steps_back) = (0.0, false, 0);
        (self.ceiling, self.fell_short) = (Ceiling::default(), FellShort::default());
        self.peeks = peek::ALL.to_vec();
        self.sharing.forget();
        self.is_dealt = false;
        self.departure = Departure::default();
        self.patient_until = Instant::ZERO;
        self.costs.load_begins(time);
        self.rebuild(&self.demand(seen), seen);
    }

    fn demand(&self, seen: &Observation) -> Demand {
        estimate::demand(&self.platform, &self.plan, seen)
    }

    fn note_work(&mut self, seen: &Observation, throughput: Throughput) {
        const NEWEST: f64 = 0.3;
        // The mean moves slowly, so not every sample has to be computed.
        const EVERY: usize = 3;
        let samples = self.meter.since_change();
        if samples <= SETTLING_SAMPLES {
            let now = self.demand(seen);
            if samples > 1 {
                self.note_sharing(&now, seen, throughput);
            }
            self.work = now;
            return;
        }
        if !samples.is_multiple_of(EVERY) {
            return;
        }
        let now = self.demand(seen);
        self.note_sharing(&now, seen, throughput);
        for (name, work) in now {
            let mean = self.work.entry(name).or_insert(work);
            *mean += (work - *mean) * NEWEST;
        }
    }

    fn rebuild(&mut self, demand: &Demand, seen: &Observation) {
        let nearness = Nearness::of(&self.platform, &seen.indicators);
        let (demand, overlaps) = (demand.clone(), self.overlaps.clone());
        let aims = Aims { spare: self.settings.spare, nearness, favoured: self.favoured, demand, overlaps };
        self.ladder = Ladder::build(&self.platform, &aims);
    }

    fn change(&mut self, plan: Plan) {
        if !plan.is_same(&self.plan) {
            self.plan = plan;
            self.meter.restart();
            self.costs.forget();
            self.overloaded_samples = 0;
        }
    }

    /// Changes the plan under a steady load: throughput that is missing afterwards is the cost of the change.
    fn change_steady(&mut self, plan: Plan, was: &Measured) {
        let before = self.plan.clone();
        self.change(plan);
        self.costs.begins(&before, &self.plan, was.throughput);
    }

    fn learn_cost(&mut self, seen: &Observation) {
        let Some(before) = self.costs.settling() else { return };
        if let Some(now) = self.meter.last(WINDOW_SAMPLES, SETTLING_SAMPLES, seen.indicators.mix()) {
            // Compared with the lower of the two levels: neither a better plan's gain nor a worse one's loss is a cost
            // of the change.
            self.costs.learn(self.meter.missing(now.throughput.min(before)));
        }
    }

    /// The observed costs of changes of plan.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    fn hold(&mut self, time: Instant, reading: Reading, seen: &Observation) -> Option<Option<String>> {
        let mix = seen.indicators.mix();
        let mut flapping = core::mem::take(&mut self.flapping);
        let advice = flapping.advise(time, reading, mix, self.settings.goal, || self.steady_plans(seen));
        self.flapping = flapping;
        match advice {
            Advice::Calm => None,
            Advice::Hold(plan, why) => {
                self.change(plan);
                self.meter.add(reading);
                self.mode = Mode::Climbing { stride: 1, from: None, calm: 0 };
                self.begin_load(time, seen);
                Some(why.map(String::from))
            }
        }
    }

    /// The candidates for a load that flaps: spread and consolidated, each also with the transport on another equal
    /// CPU.
    fn steady_plans(&self, seen: &Observation) -> Vec<Plan> {
        let rung = |rung: usize| self.ladder.rung(rung).plan.clone();
        let spread = if self.plan.is_consolidated() { rung(self.ladder.top()) } else { self.plan.clone() };
        let mut plans = alloc::vec![spread, rung(self.ladder.consolidated_top())];
        let elsewhere: Vec<Plan> = plans.iter().filter_map(|plan| self.elsewhere(plan, seen)).collect();
        plans.extend(elsewhere);
        plans
    }
}
