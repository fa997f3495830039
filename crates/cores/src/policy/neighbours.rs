//! Plans worth trying from where we are, and what is predicted of them.
//!
//! Candidates are other seatings (the ladder's rungs, two CPUs merged, one component moved to the next CPU), each with
//! the speeds that fit the work seen, and the present seating with one CPU a step slower ("slower is faster": the paper's
//! section 4, thesis 4.2). A prediction knows work and speeds, but neither wake-ups nor caches; it only chooses what is
//! tried first, and the measurement decides.

use alloc::vec::Vec;

use crate::estimate::{self, Demand, Waits};
use crate::ladder::Ladder;
use crate::placement::{self, Spare};
use crate::plan::{Plan, Seat};
use crate::platform::Platform;
use crate::power::PowerModel;

/// How busy the busiest CPU may become when speeds are fitted to the work: tight, and with room.
const FITS: [f64; 4] = [1.0, 0.9, 0.75, 0.6];
/// Less than all of the work, where throughput may be given up for power.
const LOOSE_FITS: [f64; 3] = [1.33, 2.0, 4.0];
/// Bounds on what one look may take: plans that are predicted, and seatings that they are made from. What is nearest to
/// where we are comes first.
const CANDIDATES_MAX: usize = 160;
const CANDIDATES_MIN: usize = 48;
/// A prediction costs time in proportion to the CPUs.
const CANDIDATES_BY_CPUS: usize = 3072;
const SEATINGS_MAX: usize = 24;

#[derive(Clone, Debug)]
pub struct Candidate {
    pub plan: Plan,
    /// Throughput relative to now.
    pub throughput: f64,
    pub power_w: f64,
}

/// Where we are.
pub struct Position<'a> {
    pub platform: &'a Platform,
    pub model: &'a PowerModel,
    pub spare: Spare,
    pub plan: &'a Plan,
    /// Work seen at the present throughput.
    pub demand: &'a Demand,
    /// What of it waits for memory.
    pub waits: &'a Waits,
    /// Whether more would come if the stack could do more.
    pub saturated: bool,
    /// Throughput that is wanted, relative to now; `None`: all that a seating can do.
    pub wanted: Option<f64>,
    /// Whether less throughput may be had for less power.
    pub loose: bool,
    /// Of a load that waits for its answers: by how much throughput follows the time that messages spend in the
    /// stack, from 0 (not at all) to 1 (in proportion). Learnt from trials.
    pub elasticity: f64,
}

pub fn candidates(here: &Position, ladder: &Ladder) -> Vec<Candidate> {
    let by_cpus = CANDIDATES_BY_CPUS / here.platform.managed().len().max(1);
    let most = by_cpus.clamp(CANDIDATES_MIN, CANDIDATES_MAX);
    let mut plans: Vec<Plan> = Vec::new();
    let mut add = |plan: Plan| {
        let known = plan.is_same(here.plan) || plans.iter().any(|other| other.is_same(&plan));
        if !known && plans.len() < most {
            plans.push(plan);
        }
    };
    one_step(here, false).into_iter().for_each(&mut add);
    one_step(here, true).into_iter().for_each(&mut add);
    for seating in seatings(here, ladder) {
        let loose = LOOSE_FITS.iter().filter(|_| here.loose);
        for fit in FITS.iter().chain(loose) {
            add(fitted(here, &seating, *fit));
        }
    }
    for rung in ladder.rungs() {
        add(rung.plan.clone());
    }
    plans.into_iter().map(|plan| predict(here, plan)).collect()
}

/// The present seating and those next to it.
fn seatings(here: &Position, ladder: &Ladder) -> Vec<Plan> {
    let mut found: Vec<Plan> = alloc::vec![here.plan.clone()];
    let mut add = |plan: Plan| {
        if !found.iter().any(|other| other.seats == plan.seats) && found.len() < SEATINGS_MAX {
            found.push(plan);
        }
    };
    for rung in ladder.rungs() {
        add(rung.plan.clone());
    }
    let used: Vec<u32> = here.plan.used().iter().collect();
    for from in &used {
        for to in used.iter().filter(|to| *to != from) {
            add(moved(here, |_, cpu| if cpu == *from { *to } else { cpu }));
        }
    }
    let names = here.platform.components();
    for pair in names.windows(2) {
        let seat = |name| here.plan.seats.get(name).map(|seat: &Seat| seat.cpu);
        let (Some(below), Some(above)) = (seat(&pair[0]), seat(&pair[1])) else { continue };
        if below != above {
            add(moved(here, |name, cpu| if name == pair[0] { above } else { cpu }));
            add(moved(here, |name, cpu| if name == pair[1] { below } else { cpu }));
        }
    }
    found
}

fn moved(here: &Position, to: impl Fn(&str, u32) -> u32) -> Plan {
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
    let busy = estimate::utilisation(here.platform, &full, here.demand);
    let attainable = if here.saturated { 1.0 / estimate::bottleneck(&busy).max(1e-6) } else { 1.0 };
    let wanted = here.wanted.unwrap_or(attainable);
    for (cpu, share) in busy {
        let needed = share * wanted / fit;
        let levels = here.platform.levels(cpu);
        let level = levels.iter().copied().find(|level| *level >= needed - 1e-6).unwrap_or(1.0);
        plan.speeds.insert(cpu, level);
    }
    placement::complete(here.platform, &mut plan, here.spare);
    plan
}

/// One CPU a step faster or slower.
fn one_step(here: &Position, faster: bool) -> Vec<Plan> {
    let stepped = |cpu: u32| {
        let now = here.plan.speed(cpu);
        let levels = here.platform.levels(cpu).iter().copied();
        let level = if faster {
            levels.into_iter().find(|level| *level > now + 0.01)?
        } else {
            levels.rev().find(|level| *level < now - 0.01)?
        };
        let mut plan = here.plan.clone();
        for other in here.platform.domain(cpu).iter() {
            plan.speeds.insert(other, level);
        }
        placement::complete(here.platform, &mut plan, here.spare);
        Some(plan)
    };
    here.plan.used().iter().filter_map(stepped).collect()
}

/// One CPU a step slower, where that leaves it able to do its work: if it sleeps less often, its neighbours pay less
/// for waking it.
pub fn slower(here: &Position) -> Vec<Candidate> {
    let able = |next: &Candidate| next.throughput >= 0.99;
    one_step(here, false).into_iter().map(|plan| predict(here, plan)).filter(able).collect()
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

fn predict(here: &Position, plan: Plan) -> Candidate {
    let slower = (!here.waits.is_empty())
        .then(|| estimate::carried_over(here.platform, here.demand, here.waits, here.plan, &plan));
    let demand = slower.as_ref().unwrap_or(here.demand);
    let busy = estimate::utilisation(here.platform, &plan, demand);
    let busiest = estimate::bottleneck(&busy).max(1e-6);
    let now = time(here.platform, here.demand, here.plan);
    let longer = if now > 0.0 { time(here.platform, demand, &plan) / now - 1.0 } else { 0.0 };
    let followed = 1.0 / (1.0 + here.elasticity * longer).max(0.05);
    let throughput = if here.saturated { 1.0 / busiest } else { (1.0 / busiest).min(followed) };
    let activity = busy.into_iter().map(|(cpu, share)| (cpu, (share * throughput).min(1.0))).collect();
    let power_w = estimate::power_w(here.platform, here.model, &plan, &activity);
    Candidate { plan, throughput, power_w }
}
