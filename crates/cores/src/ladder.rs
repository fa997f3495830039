//! The ladder of configurations that `adaptive` climbs (thesis, section 4.6): the stack consolidated on one core, that
//! core faster, spread over little cores, those faster, then with big cores.
//!
//! It is built from the managed CPUs. Promises: every rung is a plan that passes the check; each rung has more capacity
//! than the one below it; without speeds, rungs differ by placement only; there is always at least one. Where the
//! machine boosts a core whose neighbours idle, the same spread with its neighbours parked is a rung of its own.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use eft_machine::{CoreClass, CpuId, CpuSet, Share};

use crate::estimate::{self, Demand};
use crate::overlap::Overlaps;
use crate::placement::{self, Nearness};
use crate::plan::Plan;
use crate::platform::{Platform, usual_demand};
use eft_component::scheduling::Spare;

/// A rung must have this much more capacity than the one below it.
const GAIN_MIN: f64 = 1.03;
/// Approximate gain of a boosted core from idle neighbours; the sensors measure the real one later.
const BOOST_GAIN: f64 = 1.1;
/// Most cores, big and little, in one configuration.
const CORES_MAX: usize = 8;

#[derive(Clone, Debug)]
pub struct Rung {
    pub name: String,
    pub plan: Plan,
    /// Throughput relative to a stack consolidated on the largest core at full speed, as predicted.
    pub capacity: f64,
}

#[derive(Clone, Debug)]
pub struct Ladder {
    rungs: Vec<Rung>,
}

/// What the ladder is made for.
#[derive(Clone, Debug, Default)]
pub struct Aims {
    pub spare: Spare,
    pub nearness: Nearness,
    /// The CPU that turned out to be the best among its equals.
    pub favoured: Option<CpuId>,
    /// Observed demand of each component; empty: the usual one.
    pub demand: Demand,
    /// Which components were busy at the same time.
    pub overlaps: Overlaps,
}

impl Ladder {
    pub fn build(platform: &Platform, aims: &Aims) -> Self {
        let demand = relative(platform, &aims.demand);
        let mut rungs: Vec<Rung> = Vec::new();
        for rung in candidates(platform, aims, &demand) {
            let below = rungs.last().map_or(0.0, |below| below.capacity);
            if rung.capacity >= below * GAIN_MIN {
                rungs.push(rung);
            }
        }
        if rungs.is_empty() {
            rungs.push(fallback(platform, aims.spare));
        }
        Self { rungs }
    }

    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    pub fn top(&self) -> usize {
        self.rungs.len() - 1
    }

    /// The rung at this index, or the highest one.
    pub fn rung(&self, index: usize) -> &Rung {
        &self.rungs[index.min(self.top())]
    }

    /// The lowest rung that can do this much.
    pub fn lowest_with(&self, capacity: f64) -> usize {
        self.rungs.iter().position(|rung| rung.capacity >= capacity).unwrap_or(self.top())
    }

    /// The fastest rung on which all of the stack is on one CPU.
    pub fn consolidated_top(&self) -> usize {
        self.rungs.iter().rposition(|rung| rung.plan.is_consolidated()).unwrap_or(0)
    }

    pub fn position(&self, plan: &Plan) -> Option<usize> {
        self.rungs.iter().position(|rung| rung.plan.is_same(plan))
    }
}

/// Work of the components, scaled to 1 in sum.
pub fn relative(platform: &Platform, demand: &Demand) -> Demand {
    let clean = |work: &f64| if work.is_finite() && *work > 0.0 { *work } else { 0.0 };
    let total: f64 = demand.values().map(clean).sum();
    let of = |name: &String| match demand.get(name) {
        Some(work) if total > 0.0 => clean(work) / total,
        _ if total > 0.0 => 0.0,
        _ => usual_demand(name),
    };
    let raw: Demand = platform.components().iter().map(|name| (name.clone(), of(name))).collect();
    let sum: f64 = raw.values().sum();
    raw.into_iter().map(|(name, work)| (name, if sum > 0.0 { work / sum } else { work })).collect()
}

/// In the order of the thesis.
fn candidates(platform: &Platform, aims: &Aims, demand: &Demand) -> Vec<Rung> {
    let managed = platform.managed();
    let of_class = |wanted: fn(CoreClass) -> bool| -> CpuSet {
        managed.iter().filter(|cpu| wanted(platform.class(*cpu))).collect()
    };
    let little = of_class(|class| class == CoreClass::Little);
    let rest = of_class(|class| class != CoreClass::Little);
    let groups_max = placement::groups_max(platform, demand).min(CORES_MAX);
    let mut rungs = Vec::new();
    let (little, big) =
        if rest.is_empty() || little.is_empty() { (CpuSet::new(), managed) } else { (little, rest) };
    let [big, little] =
        [&big, &little].map(|cpus| placement::order(platform, cpus, aims.nearness, aims.favoured));
    for bigs in 0..=big.len().min(groups_max) {
        for littles in 0..=little.len().min(groups_max - bigs) {
            if bigs + littles > 0 {
                rungs.extend(of_count(platform, aims, demand, [&big[..bigs], &little[..littles]]));
            }
        }
    }
    rungs
}

/// One choice of cores, at each of their speeds, and boosted.
fn of_count(platform: &Platform, aims: &Aims, demand: &Demand, chosen: [&[CpuId]; 2]) -> Vec<Rung> {
    let cpus = chosen.concat();
    let mut seated = placement::spread(platform, demand, &aims.overlaps, &cpus);
    placement::complete(platform, &mut seated, aims.spare);
    let steps = cpus.iter().map(|cpu| platform.levels(*cpu).len()).max().unwrap_or(1);
    let what = describe(platform, &cpus);
    let mut rungs: Vec<Rung> = (0..steps)
        .map(|step| {
            let mut plan = seated.clone();
            let level = |cpu: &CpuId| {
                let levels = platform.levels(*cpu);
                (*cpu, levels[(step + levels.len()).saturating_sub(steps)])
            };
            plan.speeds = cpus.iter().map(level).collect();
            placement::couple_speeds(platform, &mut plan);
            let speed = cpus.iter().map(|cpu| plan.speed(*cpu)).fold(Share::NONE, Share::max);
            let name = if steps > 1 { format!("{what} at {speed:.2}") } else { what.clone() };
            rung(platform, demand, name, plan)
        })
        .collect();
    let boosted = rungs.last().and_then(|full| boosted(platform, full));
    rungs.extend(boosted);
    rungs
}

fn rung(platform: &Platform, demand: &Demand, name: String, plan: Plan) -> Rung {
    let busiest = estimate::bottleneck(&estimate::utilisation(platform, &plan, demand));
    Rung { name, plan, capacity: if busiest > 0.0 { 1.0 / busiest } else { 1.0 } }
}

/// The same with every unused neighbour parked, where boost exists and that changes anything.
fn boosted(platform: &Platform, full: &Rung) -> Option<Rung> {
    let used = full.plan.used();
    let busiest = used.iter().find(|cpu| platform.has_boost(*cpu))?;
    let package = platform.package(busiest);
    let unused = platform.managed().minus(&used);
    let neighbours = unused.iter().filter(|cpu| platform.package(*cpu) == package).collect();
    let idle = placement::parkable(platform, &neighbours);
    if idle.is_empty() || idle.is_subset(&full.plan.parked) {
        return None;
    }
    let mut plan = full.plan.clone();
    plan.parked = plan.parked.union(&idle);
    plan.given_back = plan.given_back.minus(&idle);
    plan.speeds.retain(|cpu, _| !idle.contains(*cpu));
    Some(Rung { name: format!("{}, neighbours idle", full.name), plan, capacity: full.capacity * BOOST_GAIN })
}

fn describe(platform: &Platform, cpus: &[CpuId]) -> String {
    let count = |class: CoreClass| cpus.iter().filter(|cpu| platform.class(**cpu) == class).count();
    let kinds =
        [CoreClass::Little, CoreClass::Medium, CoreClass::Big].map(|class| (count(class), class.name()));
    let told: Vec<String> =
        kinds.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    let what = if told.is_empty() { format!("{}", cpus.len()) } else { told.join(" and ") };
    let threads = if cpus.iter().all(|cpu| platform.is_first_thread(*cpu)) { "core" } else { "thread" };
    format!("{what} {threads}{}", if cpus.len() == 1 { "" } else { "s" })
}

/// Without a managed CPU the stack shares the base CPU with all else.
fn fallback(platform: &Platform, spare: Spare) -> Rung {
    let mut plan = placement::spread(platform, &Demand::new(), &Overlaps::default(), &[platform.base()]);
    placement::complete(platform, &mut plan, spare);
    Rung { name: "the base CPU".into(), plan, capacity: 1.0 }
}

#[cfg(test)]
mod tests;
