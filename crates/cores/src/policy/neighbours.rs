//! Plans worth trying from the present one, and their predictions.
//!
//! Candidates are other seatings (the ladder's rungs, two CPUs merged, one component moved to the next CPU), each with
//! the speeds that fit the work seen, and the present seating with one CPU a step slower ("slower is faster": the paper's
//! section 4, thesis 4.2). A prediction knows work, what [company](sharing) adds to it, and speeds, but no caches; it only chooses what is
//! tried first, and the measurement decides.

use alloc::vec::Vec;

use crate::estimate::{self, Activity, Demand, Waits};
use crate::ladder::Ladder;
use crate::placement;
use crate::plan::{Plan, Seat};
use crate::platform::Platform;
use crate::policy::sharing;
use crate::power::PowerModel;
use eft_component::scheduling::Spare;
use eft_machine::{CpuId, Share, Watts};

/// How busy the busiest CPU may become when speeds are fitted to the work: tight, and with room.
const FITS: [f64; 4] = [1.0, 0.9, 0.75, 0.6];
/// The same beyond 1, where throughput may be given up for power.
const LOOSE_FITS: [f64; 3] = [1.33, 2.0, 4.0];
/// Bounds on one search: plans that are predicted, and seatings that they are made from. The nearest to the present
/// plan come first.
const CANDIDATES_MAX: usize = 160;
const CANDIDATES_MIN: usize = 32;
const SEATINGS_MAX: usize = 24;
const SEATINGS_MIN: usize = 8;
/// A prediction costs time in proportion to the CPUs, and so does a seating.
const CANDIDATES_BY_CPUS: usize = 3072;
const SEATINGS_BY_CPUS: usize = 1536;

#[derive(Clone, Debug)]
pub struct Candidate {
    pub plan: Plan,
    /// Throughput relative to now.
    pub throughput: f64,
    pub power: Watts,
}

/// The present plan and load.
pub struct Position<'a> {
    pub platform: &'a Platform,
    pub model: &'a PowerModel,
    pub spare: Spare,
    pub plan: &'a Plan,
    /// The plan's power, if there is a meter: the model then only gives the difference of other plans.
    pub metered: Option<Watts>,
    /// Work seen at the present throughput.
    pub demand: &'a Demand,
    /// The share of it that waits for memory.
    pub waits: &'a Waits,
    /// What the components' [work would be beside others](sharing), at the present throughput.
    pub beside_others: &'a Demand,
    /// What others take of the CPUs: assumed to follow the throughput, as a load's programs do.
    pub others: &'a Activity,
    /// Whether more would come if the stack could do more.
    pub saturated: bool,
    /// The wanted throughput, relative to now; `None`: as much as a seating can do.
    pub wanted: Option<f64>,
    /// Whether less throughput may be had for less power.
    pub loose: bool,
    /// For a closed-loop load: how much throughput follows the time that messages spend in the stack, from 0 (not at
    /// all) to 1 (in proportion). Learnt from trials.
    pub elasticity: f64,
}

pub fn candidates(here: &Position, ladder: &Ladder) -> Vec<Candidate> {
    let cpus = here.platform.managed().len().max(1);
    let most = (CANDIDATES_BY_CPUS / cpus).clamp(CANDIDATES_MIN, CANDIDATES_MAX);
    let seatings_most = (SEATINGS_BY_CPUS / cpus).clamp(SEATINGS_MIN, SEATINGS_MAX);
    let stepped = one_step(here, false).into_iter().chain(one_step(here, true));
    let loose = if here.loose { &LOOSE_FITS[..] } else { &[] };
    let fits = move || FITS.iter().chain(loose);
    let seatings = seatings(here, ladder, seatings_most);
    let speeds = seatings.iter().flat_map(|seating| fits().map(move |fit| (seating, *fit)));
    let fitted = speeds.map(|(seating, fit)| fitted(here, seating, fit));
    let rungs = ladder.rungs().iter().map(|rung| rung.plan.clone());
    let is_here = |plan: &Plan| plan.is_same(here.plan);
    let plans =
        distinct(stepped.chain(fitted).chain(rungs).filter(|plan| !is_here(plan)), most, Plan::is_same);
    let bias = bias(here);
    plans.into_iter().map(|plan| predict(here, plan, bias)).collect()
}

/// The metered power relative to the modelled power of the same plan.
fn bias(here: &Position) -> f64 {
    const BIAS_MAX: f64 = 8.0;
    let Some(metered) = here.metered else { return 1.0 };
    let modelled = predict(here, here.plan.clone(), 1.0).power;
    (metered / modelled.max(Watts(1e-3))).clamp(1.0 / BIAS_MAX, BIAS_MAX)
}

/// The first `most` distinct plans. Later ones are never built, since building them is most of a search's cost.
fn distinct(plans: impl Iterator<Item = Plan>, most: usize, is_same: fn(&Plan, &Plan) -> bool) -> Vec<Plan> {
    let mut kept: Vec<Plan> = Vec::new();
    for plan in plans {
        if !kept.iter().any(|other| is_same(other, &plan)) {
            kept.push(plan);
        }
        if kept.len() >= most {
            break;
        }
    }
    kept
}

/// The present seating and those next to it.
fn seatings(here: &Position, ladder: &Ladder, most: usize) -> Vec<Plan> {
    let rungs = ladder.rungs().iter().map(|rung| rung.plan.clone());
    let used: Vec<CpuId> = here.plan.used().iter().collect();
    let pairs = used.iter().flat_map(|from| used.iter().map(move |to| (*from, *to)));
    let merged = pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| moved(here, |_, cpu| if cpu == from { to } else { cpu }));
    let names = here.platform.components();
    let shifted = names.windows(2).flat_map(|pair| {
        let seat = |name| here.plan.seats.get(name).map(|seat: &Seat| seat.cpu);
        let (below, above) = (seat(&pair[0]), seat(&pair[1]));
        let apart = below.zip(above).filter(|(below, above)| below != above);
        let up = apart.map(|(_, above)| moved(here, |name, cpu| if name == pair[0] { above } else { cpu }));
        let down = apart.map(|(below, _)| moved(here, |name, cpu| if name == pair[1] { below } else { cpu }));
        up.into_iter().chain(down)
    });
    let all = core::iter::once(here.plan.clone()).chain(rungs).chain(merged).chain(shifted);
    distinct(all, most, Plan::same_seats)
}

fn moved(here: &Position, to: impl Fn(&str, CpuId) -> CpuId) -> Plan {
    let mut plan = here.plan.clone();
    for (name, seat) in &mut plan.seats {
        seat.cpu = to(name, seat.cpu);
    }
    placement::complete(here.platform, &mut plan, here.spare);
    plan
}

/// The same seats, each CPU at the lowest speed at which it is at most `fit` busy with what is wanted.
fn fitted(here: &Position, seating: &Plan, fit: f64) -> Plan {
    let mut plan = seating.clone();
    let full = Plan { speeds: Default::default(), ..seating.clone() };
    let demand = sharing::carried_over(here.demand, here.beside_others, here.plan, &full);
    let busy = crowded(here, estimate::utilisation(here.platform, &full, &demand));
    let attainable = if here.saturated { 1.0 / estimate::bottleneck(&busy).max(1e-6) } else { 1.0 };
    let wanted = here.wanted.unwrap_or(attainable);
    for (cpu, share) in busy {
        let needed = share * wanted / fit;
        let levels = here.platform.levels(cpu);
        let level = levels.iter().copied().find(|level| level.0 >= needed - 1e-6).unwrap_or(Share::ALL);
        plan.speeds.insert(cpu, level);
    }
    placement::couple_speeds(here.platform, &mut plan);
    plan
}

/// A step changes a speed by more than this.
const STEP: Share = Share(0.01);

/// One CPU a step faster or slower.
fn one_step(here: &Position, faster: bool) -> Vec<Plan> {
    let stepped = |cpu: CpuId| {
        let now = here.plan.speed(cpu);
        let levels = here.platform.levels(cpu).iter().copied();
        let level = if faster {
            levels.into_iter().find(|level| *level > now + STEP)?
        } else {
            levels.rev().find(|level| *level < now - STEP)?
        };
        let mut plan = here.plan.clone();
        for other in here.platform.domain(cpu).iter() {
            plan.speeds.insert(other, level);
        }
        placement::couple_speeds(here.platform, &mut plan);
        Some(plan)
    };
    here.plan.used().iter().filter_map(stepped).collect()
}

/// One CPU a step slower, where it can still do its work: if it sleeps less often, its neighbours spend less on waking
/// it.
pub fn slower(here: &Position) -> Vec<Candidate> {
    let able = |next: &Candidate| next.throughput >= 0.99;
    let bias = bias(here);
    one_step(here, false).into_iter().map(|plan| predict(here, plan, bias)).filter(able).collect()
}

/// Time that messages spend being worked on under a plan, relative to another.
pub fn time_ratio(platform: &Platform, demand: &Demand, plan: &Plan, other: &Plan) -> f64 {
    let before = time(platform, demand, other);
    if before > 0.0 { time(platform, demand, plan) / before } else { 1.0 }
}

fn time(platform: &Platform, demand: &Demand, plan: &Plan) -> f64 {
    let of = |(name, work): (&alloc::string::String, &f64)| {
        plan.seats.get(name).map_or(0.0, |seat| work / platform.effective(seat.cpu, plan).max(0.01))
    };
    demand.iter().map(of).sum()
}

/// Adds what others take of the same CPUs.
fn crowded(here: &Position, mut busy: Activity) -> Activity {
    for (cpu, share) in &mut busy {
        *share += here.others.get(cpu).copied().unwrap_or(0.0);
    }
    busy
}

fn predict(here: &Position, plan: Plan, bias: f64) -> Candidate {
    let slower = (!here.waits.is_empty())
        .then(|| estimate::carried_over(here.platform, here.demand, here.waits, here.plan, &plan));
    let demand = slower.as_ref().unwrap_or(here.demand);
    let demand = &sharing::carried_over(demand, here.beside_others, here.plan, &plan);
    let busy = estimate::utilisation(here.platform, &plan, demand);
    let busiest = estimate::bottleneck(&crowded(here, busy.clone())).max(1e-6);
    let now = time(here.platform, here.demand, here.plan);
    let longer = if now > 0.0 { time(here.platform, demand, &plan) / now - 1.0 } else { 0.0 };
    let followed = 1.0 / (1.0 + here.elasticity * longer).max(0.05);
    let throughput = if here.saturated { 1.0 / busiest } else { (1.0 / busiest).min(followed) };
    let activity = busy.into_iter().map(|(cpu, share)| (cpu, (share * throughput).min(1.0))).collect();
    let power = estimate::power(here.platform, here.model, &plan, &activity) * bias;
    Candidate { plan, throughput, power }
}

#[cfg(test)]
mod tests;
