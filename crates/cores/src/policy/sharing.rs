//! What a component's work takes beside others on its CPU.
//!
//! Alone on a CPU a component polls, and its neighbours find it awake. Beside others it sleeps, is woken, and waits for its turn,
//! so that the same messages take more work. How much more depends on the load, so it is *learnt*: the least work per byte that was
//! seen of it beside others since the load began. The least, since work seen while the load still grows, or while a change settles,
//! is too much rather than too little; and of what was seen at the fastest clock, since waits for memory are shorter in proportion
//! at a slow one.

use alloc::collections::BTreeMap;
use alloc::string::String;

use eft_machine::Share;

use crate::estimate::Demand;
use crate::plan::Plan;
use crate::throughput::Throughput;

/// A component with less work is no company.
const COMPANY_MIN: f64 = 0.01;

#[derive(Clone, Debug, Default)]
pub struct Sharing {
    least: BTreeMap<String, Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    speed: Share,
    /// Work for each byte per second.
    per_byte: f64,
}

impl Sharing {
    /// `work` was seen under the plan, with this throughput.
    pub fn note(&mut self, plan: &Plan, work: &Demand, throughput: Throughput) {
        if throughput <= Throughput::LEAST {
            return;
        }
        for (name, seen) in work.iter().filter(|(name, _)| has_company(plan, work, name)) {
            let per_byte = seen / throughput.0;
            let speed = plan.seats.get(name).map_or(Share::ALL, |seat| plan.speed(seat.cpu));
            let least = self.least.entry(name.clone()).or_insert(Seen { speed, per_byte });
            if speed > least.speed {
                *least = Seen { speed, per_byte };
            } else if speed == least.speed {
                least.per_byte = least.per_byte.min(per_byte);
            }
        }
    }

    /// The load is another one.
    pub fn forget(&mut self) {
        self.least.clear();
    }

    /// What the components' work would be beside others, at this throughput; only of those that have been seen so.
    pub fn work(&self, throughput: Throughput) -> Demand {
        self.least.iter().map(|(name, seen)| (name.clone(), seen.per_byte * throughput.0)).collect()
    }
}

/// Converts work seen under one plan to what it will be under another, in which some get company.
pub fn carried_over(demand: &Demand, beside_others: &Demand, from: &Plan, to: &Plan) -> Demand {
    let of = |(name, work): (&String, &f64)| {
        let joins = has_company(to, demand, name) && !has_company(from, demand, name);
        let more = beside_others.get(name).filter(|_| joins);
        (name.clone(), more.map_or(*work, |more| work.max(*more)))
    };
    demand.iter().map(of).collect()
}

/// Whether a component has work and shares its CPU with another one that has.
fn has_company(plan: &Plan, work: &Demand, name: &str) -> bool {
    let is_busy = |name: &str| work.get(name).is_some_and(|work| *work >= COMPANY_MIN);
    let Some(seat) = plan.seats.get(name).filter(|_| is_busy(name)) else { return false };
    plan.on(seat.cpu).any(|other| other != name && is_busy(other))
}

#[cfg(test)]
mod tests;
