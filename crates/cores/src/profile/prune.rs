//! Removes from the profiles what can never be chosen.

use alloc::vec::Vec;

use crate::plan::Plan;
use crate::profile::{LoadProfile, Outcome, Profiles};

/// Outcomes that differ by less than this count as equal.
const NEAR: f64 = 0.005;
/// Loads nearer than this (squared distance) count as equal.
const NEAR_LOADS: f64 = 0.0004;

/// Removes plans that are dominated wherever they were measured (another has at least their throughput for at most
/// their power and latency), one of two that are nearly the same everywhere, and all but the first of nearly equal loads. Returns
/// how many outcomes and loads went.
pub fn prune(profiles: &mut Profiles) -> (usize, usize) {
    let count = |profiles: &Profiles| profiles.loads.iter().map(|load| load.outcomes.len()).sum::<usize>();
    let (outcomes, loads) = (count(profiles), profiles.loads.len());
    merge_loads(profiles);
    let mut plans: Vec<Plan> = Vec::new();
    for outcome in profiles.loads.iter().flat_map(|load| &load.outcomes) {
        if !plans.iter().any(|known| known.is_same(&outcome.plan)) {
            plans.push(outcome.plan.clone());
        }
    }
    // One plan at a time, so that one of two nearly equal plans stays.
    for plan in plans {
        let here = || profiles.loads.iter().filter(|load| has(load, &plan));
        if here().all(|load| is_dominated(load, &plan)) {
            profiles.retain_plans(|other| !other.is_same(&plan));
        }
    }
    (outcomes - count(profiles), loads - profiles.loads.len())
}

fn has(load: &LoadProfile, plan: &Plan) -> bool {
    load.outcomes.iter().any(|outcome| outcome.plan.is_same(plan))
}

fn is_dominated(load: &LoadProfile, plan: &Plan) -> bool {
    let Some(own) = load.outcomes.iter().find(|outcome| outcome.plan.is_same(plan)) else { return true };
    // A known latency can only be beaten by a known one.
    let is_as_quick = |other: &Outcome| match (own.latency, other.latency) {
        (Some(own), Some(other)) => other <= own * (1.0 + NEAR),
        (own, _) => own.is_none(),
    };
    let beats = |other: &Outcome| {
        other.throughput >= own.throughput * (1.0 - NEAR)
            && other.power <= own.power * (1.0 + NEAR)
            && is_as_quick(other)
    };
    load.outcomes.iter().any(|other| !other.plan.is_same(plan) && beats(other))
}

fn merge_loads(profiles: &mut Profiles) {
    let mut kept: Vec<LoadProfile> = Vec::new();
    for load in profiles.loads.drain(..) {
        match kept.iter_mut().find(|known| known.mix.distance(&load.mix) < NEAR_LOADS) {
            Some(known) => {
                let new = load
                    .outcomes
                    .into_iter()
                    .filter(|outcome| !has(known, &outcome.plan))
                    .collect::<Vec<_>>();
                known.outcomes.extend(new);
            }
            None => kept.push(load),
        }
    }
    profiles.loads = kept.into();
}
