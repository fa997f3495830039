//! Dividing the stack between CPUs that the load's own programs use too: no prediction knows how much of a CPU they
//! leave. So every way to cut a packet's path in two, between the CPU that others use most and the one that they use
//! least, is tried once the load has lasted long enough for a search to pay.
//!
//! The best of a first round are tried again, for longer: with a floor on throughput, a twentieth decides. Each try is
//! compared with its base plan, measured just before and just after it: if the two measurements differ, the load or the
//! machine has changed, and the try is void. The best plan is remembered for its kind of traffic, so that a load that
//! comes back needs no new search.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use eft_base::Instant;
use eft_machine::{CpuId, Watts};

use super::trial::STEPS_BACK_MAX;
use super::{ABRUPT, Adaptive, Mode, WINDOW_SAMPLES};
use crate::indicators::Mix;
use crate::observation::Observation;
use crate::placement;
use crate::plan::{Plan, Seat};
use crate::policy::measure::{Measured, SETTLING_SAMPLES};
use crate::policy::memory::SAME_MIX;

/// A search takes some seconds, in half of which the load gets less; it must pay off in the load's remaining time.
const LOAD_LASTS: Duration = Duration::from_secs(3);
/// No cut is made after a component with a smaller share of the stack's work.
const WORK_MIN: f64 = 0.02;
/// If the base plan's throughput after a try differs by more than this from that before it, machine or load have
/// changed.
const SAME: f64 = 0.05;
/// Samples of a try in the first round.
const FIRST_SAMPLES: usize = 10;
/// How many plans go on to the final round, how often they are tried there, and the error granted to the first round.
const FINALISTS: usize = 2;
const FINAL_TRIES: usize = 2;
const DOUBT: f64 = 0.05;
/// How many void tries a search repeats in all.
const AGAIN_MAX: u32 = 4;
/// How long a search's result is valid; twice as long each time.
const BELIEVED: Duration = Duration::from_secs(600);
const DOUBLINGS_MAX: u32 = 6;

/// What a search found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    mix: Mix,
    plan: Plan,
    until: Instant,
    times: u32,
}

/// A search; between two tries its base plan is in force.
#[derive(Clone, Debug)]
pub(super) struct Search {
    base: Plan,
    was: Measured,
    left: Vec<Plan>,
    again: u32,
    /// The plan tried last and its measurement, which is compared once the base has been measured again.
    tried: Option<(Plan, Measured)>,
    results: Vec<Tried>,
    at_base: bool,
    is_final: bool,
}

#[derive(Clone, Debug)]
struct Tried {
    plan: Plan,
    /// Each try's throughput, as a share of the base's.
    shares: Vec<f64>,
    power: Watts,
}

impl Tried {
    fn share(&self) -> f64 {
        self.shares.iter().sum::<f64>() / self.shares.len().max(1) as f64
    }
}

impl Adaptive {
    /// Begins a search, if one may pay.
    pub(super) fn deal(&mut self, time: Instant, seen: &Observation, now: &Measured) -> Option<String> {
        if self.is_dealt {
            return None;
        }
        let left = self.ways(time, seen, now.mix);
        let lasts = time.saturating_since(self.load_changed);
        if !left.is_empty() && lasts < LOAD_LASTS {
            self.patient_until = self.load_changed + LOAD_LASTS;
            return Some("waits whether the load lasts: other ways to deal the stack out may do more".into());
        }
        self.is_dealt = true;
        if left.is_empty() {
            return None;
        }
        let search = Search {
            base: self.plan.clone(),
            was: *now,
            left,
            again: 0,
            tried: None,
            results: Vec::new(),
            at_base: true,
            is_final: false,
        };
        Some(self.next_way(time, search))
    }

    /// One sample during a search.
    pub(super) fn search(&mut self, time: Instant, seen: &Observation, mut search: Search) -> Option<String> {
        let mix = seen.indicators.mix();
        if search.was.mix.difference(&mix) > SAME_MIX {
            self.begin_load(time, seen);
            return Some("the mix of traffic changed during a search: begins to measure anew".into());
        }
        let early = self.meter.last(4, SETTLING_SAMPLES, mix);
        let abrupt =
            early.filter(|early| !search.at_base && early.throughput < search.was.throughput * ABRUPT);
        let samples = if search.is_final { WINDOW_SAMPLES } else { FIRST_SAMPLES };
        let Some(now) = self.meter.last(samples, SETTLING_SAMPLES, mix).or(abrupt) else {
            self.mode = Mode::Dealing(search);
            return None;
        };
        if !search.at_base {
            search.tried = Some((self.plan.clone(), now));
            search.at_base = true;
            self.change_steady(search.base.clone(), &now);
            self.mode = Mode::Dealing(search);
            return Some("goes back to compare".into());
        }
        search.compare(now);
        Some(self.next_way(time, search))
    }

    fn next_way(&mut self, time: Instant, mut search: Search) -> String {
        if search.left.is_empty() && !search.is_final {
            search.is_final = true;
            search.left = self.finalists(&search);
        }
        let Some(plan) = search.left.pop() else { return self.take_best(time, search) };
        let told = format!("tries another way to deal the stack out: {plan}");
        self.change_steady(plan, &search.was);
        search.at_base = false;
        self.mode = Mode::Dealing(search);
        told
    }

    /// The plans of the final round, in alternation.
    fn finalists(&self, search: &Search) -> Vec<Plan> {
        let most = search.most();
        let score = |tried: &&Tried| self.settings.goal.score((tried.share() + DOUBT) / most, tried.power);
        let mut all: Vec<&Tried> = search.results.iter().collect();
        all.sort_by(|a, b| score(b).total_cmp(&score(a)));
        let best = all.into_iter().take(FINALISTS).map(|tried| tried.plan.clone());
        let best: Vec<Plan> = best.collect();
        core::iter::repeat_n(best, FINAL_TRIES).flatten().collect()
    }

    fn take_best(&mut self, time: Instant, search: Search) -> String {
        let most = search.most();
        let Search { base, was, results, .. } = search;
        self.best = self.best.max(was.throughput * most);
        let score = |share: f64, power: Watts| self.settings.goal.score(share / most, power);
        let of = |tried: &&Tried| score(tried.share(), tried.power);
        let finalists = results.iter().filter(|tried| tried.shares.len() > 1);
        let best = finalists.max_by(|a, b| of(a).total_cmp(&of(b)));
        let better = best.filter(|tried| {
            let throughput = was.throughput * tried.share();
            let then = Measured { throughput, power: tried.power, ..was };
            of(tried) > score(1.0, was.power) && self.is_better(&then, &was)
        });
        // No further steps back: the search has done all that can be done about the overload.
        self.steps_back = STEPS_BACK_MAX;
        let told = match better {
            Some(tried) => format!(
                "of {} ways to deal the stack out takes the best: {:.1}% of the throughput, {:.1} instead of {:.1}",
                results.len(),
                tried.share() * 100.0,
                tried.power,
                was.power
            ),
            None => format!("of {} ways to deal the stack out none is better", results.len()),
        };
        let plan = better.map_or(base, |tried| tried.plan.clone());
        self.remember(was.mix, &plan, time);
        self.change_steady(plan, &was);
        self.favoured = self.copies_on(&self.plan);
        self.mode = Mode::Measuring;
        told
    }

    fn remember(&mut self, mix: Mix, plan: &Plan, time: Instant) {
        let times = self.found.iter().find(|found| found.is_of(mix)).map_or(0, |found| found.times);
        self.found.retain(|found| !found.is_of(mix) && found.until > time);
        let until = time + BELIEVED * (1 << times.min(DOUBLINGS_MAX));
        self.found.push(Found { mix, plan: plan.clone(), until, times: times + 1 });
    }

    /// The plans worth a try: none if no other programs interfere or the stack has more than two CPUs; only the
    /// remembered one if this kind of traffic has been searched.
    fn ways(&self, time: Instant, seen: &Observation, mix: Mix) -> Vec<Plan> {
        let extremes = self.copies_on(&self.plan).and_then(|cpu| self.extremes(cpu, seen));
        let Some([most, least]) = extremes.filter(|[most, least]| most != least) else { return Vec::new() };
        if self.plan.used().len() > 2 {
            return Vec::new();
        }
        let known = self.found.iter().find(|found| found.is_of(mix) && found.until > time);
        let mut ways: Vec<Plan> = match known {
            Some(found) => Vec::from([found.plan.clone()]),
            None => {
                let both = [[most, least], [least, most]];
                self.cuts().into_iter().flat_map(|at| both.map(|cpus| self.cut(cpus, at))).collect()
            }
        };
        ways.retain(|way| !way.is_same(&self.plan));
        ways
    }

    /// After how many components a packet's path may be cut: after each with enough work.
    fn cuts(&self) -> Vec<usize> {
        let names = self.platform.components();
        let total: f64 = self.work.values().sum();
        let works = |name: &String| self.work.get(name).is_some_and(|work| *work >= WORK_MIN * total);
        let mut cuts: Vec<usize> =
            (0..names.len()).filter(|at| works(&names[*at])).map(|at| at + 1).collect();
        // A cut after the last component leaves the whole stack on one CPU.
        cuts.pop();
        cuts.push(names.len());
        cuts
    }

    /// The first components on one CPU, the others on another, both at full speed.
    fn cut(&self, [first, second]: [CpuId; 2], at: usize) -> Plan {
        let names = self.platform.components().iter().enumerate();
        let seat = |index| Seat { cpu: if index < at { first } else { second }, dedicated: false };
        let mut plan = Plan {
            seats: names.map(|(index, name)| (name.clone(), seat(index))).collect(),
            ..Plan::default()
        };
        placement::complete(&self.platform, &mut plan, self.settings.spare);
        plan
    }
}

impl Found {
    fn is_of(&self, mix: Mix) -> bool {
        self.mix.difference(&mix) <= SAME_MIX
    }
}

impl Search {
    fn most(&self) -> f64 {
        self.results.iter().map(Tried::share).fold(1.0, f64::max)
    }

    /// Notes a try's result, if the base's throughput is the same after it as before.
    fn compare(&mut self, now: Measured) {
        let Some((plan, then)) = self.tried.take() else { return };
        let was = core::mem::replace(&mut self.was, now).throughput;
        let level = (was + now.throughput) / 2.0;
        if was.abs_diff(now.throughput) > level * SAME {
            if self.again < AGAIN_MAX {
                self.again += 1;
                self.left.insert(0, plan);
            }
            return;
        }
        let share = then.throughput.ratio_to(level);
        match self.results.iter_mut().find(|tried| tried.plan.is_same(&plan)) {
            Some(known) => known.shares.push(share),
            None => self.results.push(Tried { plan, shares: Vec::from([share]), power: then.power }),
        }
    }
}

#[cfg(test)]
mod tests;
