//! The modelled power of a plan: [`crate::power`] applied to what a plan says and an observation saw.
//!
//! Everything here is *modelled*. A speed by P-state lowers frequency and voltage; one by duty cycle lowers activity
//! alone. Assumptions beyond the power model's: a core of relative capacity c takes c² of the largest core's power (half
//! as fast, a quarter of the power: about what big.LITTLE pairs show); a managed CPU that the stack leaves idle rests
//! in the deepest state.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use eft_machine::{CpuId, Share, Watts};

use crate::observation::{ComponentLoad, Observation};
use crate::plan::Plan;
use crate::platform::{Platform, THREAD_SHARE};
use crate::power::{CoreState, PowerModel, Sensitivity};
use crate::sample::Hint;

/// Work of each component: seconds per second of the largest core at full speed.
pub type Demand = BTreeMap<String, f64>;

/// Share of the time in which each used CPU executes (works or polls). A prediction above 1 means that the CPU cannot
/// keep up.
pub type Activity = BTreeMap<CpuId, f64>;

/// The share of each component's time that it waits for memory, which does not grow on a slower clock (thesis 4.6).
pub type Waits = BTreeMap<String, f64>;

/// Approximate cost of a last-level cache miss: 80 ns at 2.5 GHz.
const MISS_CYCLES: f64 = 200.0;
/// An upper bound, since no component only waits.
const WAITS_MAX: f64 = 0.9;

/// The waits that performance counters show; empty without a PMU.
pub fn waits(seen: &Observation) -> Waits {
    let of = |load: &ComponentLoad| {
        let share = (load.misses_per_cycle? * MISS_CYCLES).clamp(0.0, WAITS_MAX);
        Some((load.name.clone(), share))
    };
    seen.components.iter().filter_map(of).collect()
}

/// Converts work seen under one plan to what it will be under another: waits for memory take as long as before.
pub fn carried_over(platform: &Platform, demand: &Demand, waits: &Waits, from: &Plan, to: &Plan) -> Demand {
    let of = |(name, work): (&String, &f64)| {
        let speed = |plan: &Plan| Some(platform.effective(plan.seats.get(name)?.cpu, plan).max(0.01));
        let (Some(before), Some(after), Some(share)) = (speed(from), speed(to), waits.get(name)) else {
            return (name.clone(), *work);
        };
        (name.clone(), work * (1.0 - share + share * after / before))
    };
    demand.iter().map(of).collect()
}

/// The observed demand of the components under this plan.
pub fn demand(platform: &Platform, plan: &Plan, seen: &Observation) -> Demand {
    let busy = |name: &str| seen.component(name).map_or(0.0, |load| load.busy.0);
    let of = |name: &String| {
        let Some(seat) = plan.seats.get(name) else { return (name.clone(), busy(name)) };
        let next_door = platform.siblings(seat.cpu).minus(&eft_machine::CpuSet::one(seat.cpu));
        let crowd: f64 = next_door.iter().flat_map(|cpu| plan.on(cpu)).map(busy).sum();
        let share = 1.0 - (1.0 - THREAD_SHARE) * crowd.min(1.0);
        (name.clone(), busy(name) * platform.effective(seat.cpu, plan) * share)
    };
    platform.components().iter().map(of).collect()
}

/// The component that does not keep up, if any: one that is starved, one whose sender waits for it, or the one whose
/// queue passed its upper mark most often.
pub fn overloaded(seen: &Observation) -> Option<&str> {
    let starved = seen.components.iter().find(|load| load.hint == Hint::Starved);
    let waits = |sender: &&ComponentLoad| sender.hint == Hint::ReceiverBehind;
    let behind = seen.components.iter().find(waits).and_then(|sender| {
        let fill = |load: &ComponentLoad| {
            let toward = load.queues.iter().filter(|queue| queue.from == sender.name);
            toward.map(|queue| f64::from(queue.high) / f64::from(queue.capacity.max(1))).fold(0.0, f64::max)
        };
        let fullest = seen.components.iter().max_by(|a, b| fill(a).total_cmp(&fill(b)))?;
        (fill(fullest) > 0.0).then_some(fullest)
    });
    let most = || seen.components.iter().filter(|load| load.overloads > 0).max_by_key(|load| load.overloads);
    starved.or(behind).or_else(most).map(|load| load.name.as_str())
}

/// The observed work and polling on each used CPU.
pub fn seen_activity(plan: &Plan, seen: &Observation) -> Activity {
    let of = |cpu: CpuId| {
        let active = |name: &str| seen.component(name).map_or(0.0, |load| (load.busy + load.polling).0);
        (cpu, plan.on(cpu).map(active).sum::<f64>().min(1.0))
    };
    plan.used().iter().map(of).collect()
}

/// How busy each used CPU would be with this work under this plan; above 1 it cannot keep up. While both threads of a
/// core have work, each gets [`THREAD_SHARE`] of its work done.
pub fn utilisation(platform: &Platform, plan: &Plan, demand: &Demand) -> Activity {
    let alone = |cpu: CpuId| {
        let work: f64 = plan.on(cpu).map(|name| demand.get(name).copied().unwrap_or(0.0)).sum();
        work / platform.effective(cpu, plan).max(0.01)
    };
    let used = plan.used();
    let of = |cpu: CpuId| {
        let own = alone(cpu);
        let next_door = platform.siblings(cpu).and(&used).minus(&eft_machine::CpuSet::one(cpu));
        let crowd: f64 = next_door.iter().map(alone).sum();
        (cpu, own + own.min(crowd) * (1.0 / THREAD_SHARE - 1.0))
    };
    used.iter().map(of).collect()
}

/// The busiest CPU's utilisation.
pub fn bottleneck(utilisation: &Activity) -> f64 {
    utilisation.values().copied().fold(0.0, f64::max)
}

/// Power of the packages that have managed CPUs.
pub fn power(platform: &Platform, model: &PowerModel, plan: &Plan, activity: &Activity) -> Watts {
    packages(platform, plan, activity)
        .iter()
        .map(|(states, sizes)| model.estimate_sized(states, sizes).total)
        .sum()
}

/// How [`power`] changes when static share and uncore power are half, and one and a half times, of what was assumed.
pub fn sensitivity(
    platform: &Platform,
    model: &PowerModel,
    plan: &Plan,
    activity: &Activity,
) -> Vec<Sensitivity> {
    model.sensitivity_of(|model| power(platform, model, plan, activity))
}

/// Modelled power now, and what the same work would take with all managed CPUs awake at full speed.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct PowerReport {
    /// Measured by a meter, if there is one.
    #[serde(rename = "measured_w")]
    pub measured: Option<Watts>,
    #[serde(rename = "now_w")]
    pub now: Watts,
    #[serde(rename = "full_w")]
    pub full: Watts,
    /// Share of `full`.
    pub saving: f64,
    /// How the saving depends on what was assumed.
    pub spans: Vec<SavingSpan>,
}

/// The saving if an assumed value were half, and one and a half times, as large.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct SavingSpan {
    pub assumption: &'static str,
    pub low: f64,
    pub high: f64,
    pub saving_low: f64,
    pub saving_high: f64,
}

impl PowerReport {
    pub fn of(platform: &Platform, model: &PowerModel, plan: &Plan, seen: &Observation) -> Self {
        let activity = seen_activity(plan, seen);
        let full = Plan { seats: plan.seats.clone(), ..Plan::default() };
        let mut awake: Activity = platform.managed().iter().map(|cpu| (cpu, 0.0)).collect();
        awake.extend(utilisation(platform, &full, &demand(platform, plan, seen)));
        let taken = |model: &PowerModel| power(platform, model, plan, &activity);
        let most = |model: &PowerModel| power(platform, model, &full, &awake);
        let share = |now: Watts, full: Watts| if full > Watts::ZERO { 1.0 - now / full } else { 0.0 };
        let span = |(now, full): (Sensitivity, Sensitivity)| SavingSpan {
            assumption: now.assumption,
            low: now.low,
            high: now.high,
            saving_low: share(now.total_low, full.total_low),
            saving_high: share(now.total_high, full.total_high),
        };
        let (now, full) = (taken(model), most(model));
        let rows = model.sensitivity_of(taken).into_iter().zip(model.sensitivity_of(most));
        Self { measured: seen.power, now, full, saving: share(now, full), spans: rows.map(span).collect() }
    }
}

fn packages(platform: &Platform, plan: &Plan, activity: &Activity) -> Vec<(Vec<CoreState>, Vec<f64>)> {
    let managed = platform.managed();
    let numbers: BTreeSet<u32> = managed.iter().map(|cpu| platform.package(cpu)).collect();
    let of = |package: &u32| {
        let here = managed.iter().filter(|cpu| platform.package(*cpu) == *package);
        here.map(|cpu| {
            let capacity = platform.capacity(cpu);
            (core_state(platform, plan, activity, cpu), capacity * capacity)
        })
        .unzip()
    };
    numbers.iter().map(of).collect()
}

fn core_state(platform: &Platform, plan: &Plan, activity: &Activity, cpu: CpuId) -> CoreState {
    let idle = !activity.contains_key(&cpu);
    if plan.parked.contains(cpu) || idle {
        return CoreState {
            cpu,
            frequency: Share::ALL,
            duty: Share::ALL,
            parked: true,
            ..CoreState::default()
        };
    }
    let speed = plan.speed(cpu);
    let (frequency, duty) = if platform.by_frequency() { (speed, Share::ALL) } else { (Share::ALL, speed) };
    let active = Share(activity.get(&cpu).copied().unwrap_or(0.0)).within();
    // Under a duty cycle the components' time includes the stalls.
    CoreState { cpu, frequency, duty, activity: active * duty, ..CoreState::default() }
}

#[cfg(test)]
mod tests;
