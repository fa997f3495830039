//! Profiles: what configurations achieved under known loads, and predictions from them for the present load.
//!
//! A load is known by its [`Mix`]. Promises: choosing costs time linear in what is stored, and what is stored is bounded;
//! a plan is judged only by loads near enough that were measured with it, or by what was interpolated from them.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use eft_machine::{Latency, Watts};
use serde::{Deserialize, Serialize};

use crate::goal::Goal;
use crate::indicators::Mix;
use crate::plan::Plan;
use crate::throughput::Throughput;

pub mod file;
mod prune;
pub mod sweep;

pub use prune::prune;

/// How many of the nearest loads are used.
const NEAREST: usize = 3;
/// Loads nearer than this (squared distance) are the same.
const SAME_LOAD: f64 = 0.001;
/// Learnt loads are bounded; the oldest go.
const LOADS_MAX: usize = 128;
const OUTCOMES_MAX: usize = 8192;
/// A plan must be known for this share of the neighbours' weight.
const COVERED_MIN: f64 = 0.5;
/// Of two plans that serve the objective as well, one is quicker if its latency is at most this share of the other's:
/// latencies are measured less exactly than throughput.
const QUICKER: f64 = 0.9;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadProfile {
    pub name: String,
    pub mix: Mix,
    #[serde(default, rename = "outcome")]
    pub outcomes: Vec<Outcome>,
    /// Learnt while running, from other loads and from measurements.
    #[serde(default)]
    pub learnt: bool,
}

/// What one configuration achieved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// As delivered with this load.
    pub throughput: Throughput,
    #[serde(default, rename = "latency_us")]
    pub latency: Option<Latency>,
    #[serde(rename = "power_w")]
    pub power: Watts,
    /// Modelled, not measured by a meter.
    #[serde(default)]
    pub modelled: bool,
    /// Interpolated, not measured.
    #[serde(default)]
    pub guessed: bool,
    pub plan: Plan,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profiles {
    pub loads: VecDeque<LoadProfile>,
}

/// What a plan is chosen for.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub mix: Mix,
    /// Share of the present plan's capacity that the load asks for; `None` if it takes all it gets.
    pub demand: Option<f64>,
    pub goal: Goal,
    /// The load carries requests, so that it matters how long the answer takes.
    pub requests: bool,
    /// Of requests, the longest time that an answer may take.
    pub latency_max: Option<Latency>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub plan: Plan,
    /// Relative to the best, or to the demand.
    pub throughput: f64,
    pub power: Watts,
    /// The gain by the objective over the present plan, as a share; `None` if the present plan's score is not known, or
    /// if the plan is chosen for its latency.
    pub gain: Option<f64>,
    /// Latency of requests, if it was measured.
    pub latency: Option<Latency>,
    /// The name of the nearest load.
    pub nearest: String,
}

/// What is known of a plan near a mix.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    weight: f64,
    /// Weighted sums.
    relative: f64,
    power: Watts,
    /// Of the loads with a known latency: their weight, the latency, and the latency relative to the load's least.
    latency_weight: f64,
    latency: Latency,
    latency_relative: f64,
}

impl Known {
    /// The latency, and the same relative to the least; `None` if too few neighbours have one.
    fn latency(&self) -> Option<(Latency, f64)> {
        let told = self.latency_weight >= self.weight * COVERED_MIN && self.latency_weight > 0.0;
        told.then(|| (self.latency / self.latency_weight, self.latency_relative / self.latency_weight))
    }

    /// Whether answers come clearly sooner than with another plan; false if either latency is unknown.
    fn is_quicker(&self, other: &Self) -> bool {
        matches!((self.latency(), other.latency()), (Some(own), Some(other)) if own.1 < other.1 * QUICKER)
    }
}

impl LoadProfile {
    fn best(&self) -> Throughput {
        self.outcomes.iter().map(|outcome| outcome.throughput).fold(Throughput::NONE, Throughput::max)
    }

    fn least_latency(&self) -> Option<Latency> {
        self.outcomes.iter().filter_map(Outcome::told_latency).min_by(Latency::total_cmp)
    }
}

impl Outcome {
    /// The latency, if it is a valid time.
    fn told_latency(&self) -> Option<Latency> {
        self.latency.filter(|latency| latency.is_valid())
    }
}

impl Profiles {
    pub fn is_empty(&self) -> bool {
        self.loads.iter().all(|load| load.outcomes.is_empty())
    }

    pub fn retain_plans(&mut self, keep: impl Fn(&Plan) -> bool) {
        for load in &mut self.loads {
            load.outcomes.retain(|outcome| keep(&outcome.plan));
        }
        self.loads.retain(|load| !load.outcomes.is_empty());
    }

    /// The stored profiles, updated with what a policy learnt. The policy had only the plans that fit its CPUs; the
    /// others stay.
    pub fn updated(&self, learnt: &Self) -> Self {
        let mut all = self.clone();
        for load in &learnt.loads {
            match all.loads.iter_mut().find(|known| known.name == load.name && known.mix == load.mix) {
                Some(known) => {
                    let other = |old: &Outcome| !load.outcomes.iter().any(|new| new.plan.is_same(&old.plan));
                    known.outcomes.retain(other);
                    known.outcomes.extend(load.outcomes.iter().cloned());
                }
                None => {
                    all.make_room();
                    all.loads.push_back(load.clone());
                }
            }
        }
        all
    }

    /// Adds what a sweep measured.
    pub fn record(&mut self, name: &str, mix: Mix, outcome: Outcome) {
        let stored: usize = self.loads.iter().map(|load| load.outcomes.len()).sum();
        if stored >= OUTCOMES_MAX {
            return;
        }
        match self.loads.iter_mut().find(|load| load.name == name) {
            Some(load) => put(load, outcome),
            None => {
                self.make_room();
                self.loads.push_back(LoadProfile {
                    name: name.to_string(),
                    mix,
                    outcomes: alloc::vec![outcome],
                    learnt: false,
                });
            }
        }
    }

    /// The best plan for the wish; the present one, unless another is better by `gain`. For requests, it is the
    /// quickest of the plans within `gain` of the best and within the limit on latency.
    pub fn choose(&self, wish: &Wish, present: &Plan, gain: f64) -> Option<Choice> {
        let near = self.nearest(&wish.mix);
        let name = near.first().map(|(load, _)| load.name.clone())?;
        let known = interpolate(&near);
        let now = known.iter().find(|(plan, _)| plan.is_same(present)).map(|(_, now)| *now);
        let known = within_limit(known, wish);
        let best = known.iter().map(|(_, known)| known.relative / known.weight).fold(1e-9, f64::max);
        // Five percent of reserve: interpolation is not exact.
        let needed = now.zip(wish.demand).map(|(now, share)| share * now.relative / now.weight / 0.95);
        let achieved = |known: &Known| match needed {
            Some(needed) => (known.relative / known.weight / needed.max(1e-9)).min(1.0),
            None => known.relative / known.weight / best,
        };
        let score = |known: &Known| wish.goal.score(achieved(known), known.power / known.weight);
        let top = known.iter().max_by(|a, b| score(&a.1).total_cmp(&score(&b.1)))?;
        let as_good = || known.iter().filter(|(_, known)| is_close(score(known), score(&top.1), gain));
        let relative = |known: &Known| known.latency().map_or(f64::INFINITY, |(_, relative)| relative);
        let quickest = as_good().min_by(|a, b| relative(&a.1).total_cmp(&relative(&b.1)));
        let quickest = quickest.filter(|(_, known)| wish.requests && known.is_quicker(&top.1));
        let present_score = now.map(|now| score(&now)).filter(|_| quickest.is_none());
        let top = quickest.unwrap_or(top);
        let held = as_good().find(|(plan, _)| plan.is_same(present));
        let held = held.filter(|(_, held)| !(wish.requests && top.1.is_quicker(held)));
        let (plan, chosen) = held.unwrap_or(top);
        Some(Choice {
            plan: (*plan).clone(),
            throughput: achieved(chosen),
            power: chosen.power / chosen.weight,
            gain: present_score.map(|present| (score(chosen) - present) / present.abs().max(1e-9)),
            latency: chosen.latency().map(|(latency, _)| latency).filter(|_| wish.requests),
            nearest: name,
        })
    }

    /// Loads with their weights, nearest first. A measured load hides learnt ones with the same mix.
    fn nearest(&self, mix: &Mix) -> Vec<(&LoadProfile, f64)> {
        let mut near: Vec<(&LoadProfile, f64)> =
            self.loads.iter().map(|load| (load, load.mix.distance(mix))).collect();
        near.sort_by(|a, b| a.1.total_cmp(&b.1));
        near.truncate(NEAREST);
        for (_, distance) in &mut near {
            *distance = 1.0 / (*distance + SAME_LOAD);
        }
        near
    }

    /// The throughput of a plan with the nearest load that was swept. What was learnt of others is left out, since most of it is
    /// interpolated from these.
    pub fn promised(&self, mix: &Mix, plan: &Plan) -> Option<Throughput> {
        let swept = self.loads.iter().filter(|load| !load.learnt);
        let near = swept.min_by(|a, b| a.mix.distance(mix).total_cmp(&b.mix.distance(mix)))?;
        near.outcomes.iter().find(|outcome| outcome.plan.is_same(plan)).map(|outcome| outcome.throughput)
    }

    /// The measured, not interpolated, throughput of a plan with this very load.
    pub fn recorded(&self, mix: &Mix, plan: &Plan) -> Option<Throughput> {
        let load = self.loads.iter().find(|load| load.mix.distance(mix) < SAME_LOAD)?;
        let outcome = load.outcomes.iter().find(|outcome| outcome.plan.is_same(plan))?;
        (!outcome.guessed).then_some(outcome.throughput)
    }

    /// Learns a new pair of load and configuration. If no such load is known, one is made from its neighbours.
    /// `takes_all`: the load saturated the plan, so that the throughput is the plan's.
    pub fn learn(&mut self, mix: &Mix, plan: &Plan, throughput: Throughput, power: Watts, takes_all: bool) {
        if !(throughput.0.is_finite() && power.0.is_finite()) || self.is_empty() {
            return;
        }
        let same = self.loads.iter_mut().find(|load| load.mix.distance(mix) < SAME_LOAD);
        let load = match same {
            Some(load) => load,
            None => {
                let made = self.guess(mix);
                self.make_room();
                self.loads.push_back(made);
                let Some(load) = self.loads.back_mut() else { return };
                load
            }
        };
        let known = load.outcomes.iter_mut().find(|outcome| outcome.plan.is_same(plan));
        match known {
            // The plan can do more than the load asked for, so the known throughput stays.
            Some(known) if !takes_all && throughput <= known.throughput => {}
            Some(known) if !takes_all && !known.guessed => known.throughput = throughput,
            Some(known) if known.guessed && known.throughput > Throughput::NONE => {
                let factor = throughput / known.throughput;
                rescale(load, plan, factor);
            }
            _ => {}
        }
        let is_known = load.outcomes.iter().any(|outcome| outcome.plan.is_same(plan));
        if takes_all || !is_known {
            put(
                load,
                Outcome { throughput, power, plan: plan.clone(), modelled: true, ..Outcome::default() },
            );
        }
    }

    fn guess(&self, mix: &Mix) -> LoadProfile {
        let near = self.nearest(mix);
        let level = near.first().map_or(Throughput::LEAST, |(load, _)| load.best());
        let outcomes = interpolate(&near).into_iter().map(|(plan, known)| Outcome {
            // Loads deliver much or little, so only the ratio between plans carries over to another load.
            throughput: level * (known.relative / known.weight),
            power: known.power / known.weight,
            latency: known.latency().map(|(latency, _)| latency),
            modelled: true,
            guessed: true,
            plan: plan.clone(),
        });
        let outcomes = outcomes.collect();
        LoadProfile { name: format!("seen {}", self.loads.len()), mix: *mix, outcomes, learnt: true }
    }

    fn make_room(&mut self) {
        while self.loads.len() >= LOADS_MAX {
            let oldest = self.loads.iter().position(|load| load.learnt).unwrap_or(0);
            self.loads.remove(oldest);
        }
    }
}

/// Scales a load's interpolated outcomes with its measurements, so that both are comparable: all of them at the first
/// measurement, later those with the same seats.
fn rescale(load: &mut LoadProfile, plan: &Plan, factor: f64) {
    let is_first = load.outcomes.iter().all(|outcome| outcome.guessed);
    let moves = |outcome: &&mut Outcome| outcome.guessed && (is_first || outcome.plan.same_seats(plan));
    load.outcomes.iter_mut().filter(moves).for_each(|outcome| outcome.throughput *= factor);
}

/// The newest measurement weighs most, but one does not override several.
fn put(load: &mut LoadProfile, outcome: Outcome) {
    match load.outcomes.iter_mut().find(|known| known.plan.is_same(&outcome.plan)) {
        Some(known) if known.guessed => {
            // Latency is not measured while running.
            let latency = outcome.latency.or(known.latency);
            *known = Outcome { latency, ..outcome };
        }
        Some(known) => {
            known.latency = match (known.latency, outcome.latency) {
                (Some(before), Some(now)) => Some((before + now) / 2.0),
                (before, now) => now.or(before),
            };
            known.throughput = (known.throughput + outcome.throughput) / 2.0;
            known.power = (known.power + outcome.power) / 2.0;
        }
        None => load.outcomes.push(outcome),
    }
}

fn interpolate<'a>(near: &[(&'a LoadProfile, f64)]) -> Vec<(&'a Plan, Known)> {
    let mut found: Vec<(&Plan, Known)> = Vec::new();
    for (load, weight) in near {
        let best = load.best().max(Throughput(1e-9));
        let least = load.least_latency();
        for outcome in &load.outcomes {
            let index = found.iter().position(|(plan, _)| plan.is_same(&outcome.plan)).unwrap_or_else(|| {
                found.push((&outcome.plan, Known::default()));
                found.len() - 1
            });
            let known = &mut found[index].1;
            known.weight += weight;
            known.relative += outcome.throughput * *weight / best;
            known.power += outcome.power * *weight;
            if let Some((latency, least)) = outcome.told_latency().zip(least) {
                known.latency_weight += weight;
                known.latency += latency * *weight;
                known.latency_relative += latency * *weight / least;
            }
        }
    }
    let total: f64 = near.iter().map(|(_, weight)| weight).sum();
    found.retain(|(_, known)| known.weight >= total * COVERED_MIN);
    found
}

/// For requests, the plans that are known to be quick enough; if none is, the quickest. If no latency is known, the
/// limit is ignored.
fn within_limit<'a>(known: Vec<(&'a Plan, Known)>, wish: &Wish) -> Vec<(&'a Plan, Known)> {
    let Some(limit) = wish.latency_max.filter(|_| wish.requests) else { return known };
    let latency = |known: &Known| known.latency().map(|(latency, _)| latency);
    let told = known.iter().filter_map(|(_, known)| latency(known));
    let Some(least) = told.min_by(Latency::total_cmp) else { return known };
    let limit = limit.max(least);
    known.into_iter().filter(|(_, known)| latency(known).is_some_and(|known| known <= limit)).collect()
}

fn is_close(held: f64, best: f64, gain: f64) -> bool {
    best - held <= gain * best.abs()
}

#[cfg(test)]
mod tests;
