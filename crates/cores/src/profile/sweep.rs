//! Which configurations a sweep measures: all of them, or those of the paper's step-matching search.
//!
//! Step matching (`slower-is-faster` and `multiserver-scheduling`, sections 4): begin with every core slow; raise the
//! busiest component; when that stops helping, raise the others; end when nothing helps.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::estimate::{Activity, Demand};
use crate::ladder::{Aims, Ladder};
use crate::overlap::Overlaps;
use crate::placement::{self, Nearness};
use crate::plan::{Plan, SPEED_EQUAL, Seat};
use crate::platform::Platform;
use crate::throughput::Throughput;
use eft_component::scheduling::Spare;
use eft_machine::{CpuId, Share};

/// An exhaustive sweep of more would take too long.
pub const CONFIGURATIONS_MAX: usize = 2048;
/// Less than this is no improvement.
const HELPS: f64 = 1.02;

/// What is measured next.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    pub name: String,
    pub plan: Plan,
}

impl Configuration {
    fn new(plan: Plan) -> Self {
        Self { name: format!("{plan}"), plan }
    }
}

/// All ways to cut the stack onto one, two, … CPUs, at all of their speeds. Where these are more than
/// [`CONFIGURATIONS_MAX`], fewer speeds of each CPU are taken, and then the ladder's rungs only.
pub fn exhaustive(platform: &Platform, spare: Spare) -> Vec<Configuration> {
    let cpus = placement::order(platform, &platform.managed(), Nearness::Anywhere, None);
    let seatings = seatings(platform, &cpus);
    let aims = Aims { spare, ..Aims::default() };
    let rungs =
        Ladder::build(platform, &aims).rungs().iter().map(|rung| rung.plan.clone()).collect::<Vec<_>>();
    let longest = cpus.iter().map(|cpu| platform.levels(*cpu).len()).max().unwrap_or(1);
    let mut plans = rungs.clone();
    for levels in (1..=longest).rev() {
        let total: usize = seatings.iter().map(|plan| levels.saturating_pow(plan.used().len() as u32)).sum();
        if total <= CONFIGURATIONS_MAX {
            plans.extend(seatings.iter().flat_map(|plan| at_some_speeds(platform, plan, levels, spare)));
            break;
        }
    }
    let mut kept: Vec<Plan> = Vec::new();
    for plan in plans {
        if !kept.iter().any(|other| other.is_same(&plan)) {
            kept.push(plan);
        }
    }
    kept.into_iter().map(Configuration::new).collect()
}

/// Contiguous cuts, each way round.
fn seatings(platform: &Platform, cpus: &[CpuId]) -> Vec<Plan> {
    let names = platform.components();
    let mut found: Vec<Plan> = Vec::new();
    // Two CPUs: every cut. More: the even one.
    for cpu in cpus.iter().take(1) {
        found.push(seated(names, &|_| *cpu));
    }
    if let [first, second, ..] = cpus {
        for cut in 1..names.len() {
            for (low, high) in [(*first, *second), (*second, *first)] {
                found.push(seated(names, &|index| if index < cut { low } else { high }));
            }
        }
    }
    let most = cpus.len().min(placement::groups_max(platform, &Demand::new()));
    found.extend(
        (3..=most)
            .map(|count| placement::spread(platform, &Demand::new(), &Overlaps::default(), &cpus[..count])),
    );
    found
}

fn seated(names: &[String], cpu_of: &dyn Fn(usize) -> CpuId) -> Plan {
    let seat =
        |(index, name): (usize, &String)| (name.clone(), Seat { cpu: cpu_of(index), dedicated: false });
    Plan { seats: names.iter().enumerate().map(seat).collect(), ..Plan::default() }
}

/// The same seats at every combination of the speeds that `levels` names for each CPU.
fn at_speeds(seating: &Plan, levels: impl Fn(CpuId) -> Vec<Share>) -> Vec<Plan> {
    let mut plans = alloc::vec![seating.clone()];
    for cpu in seating.used().iter() {
        let levels = levels(cpu);
        let with = |plan: &Plan, level: Share| {
            let mut plan = plan.clone();
            plan.speeds.insert(cpu, level);
            plan
        };
        plans = plans
            .iter()
            .flat_map(|plan| levels.iter().map(|level| with(plan, *level)).collect::<Vec<_>>())
            .collect();
    }
    plans
}

/// Every combination of `count` of each CPU's speeds, the fastest among them.
fn at_some_speeds(platform: &Platform, seating: &Plan, count: usize, spare: Spare) -> Vec<Plan> {
    let mut plans = at_speeds(seating, |cpu| {
        let levels = platform.levels(cpu);
        let steps = count.min(levels.len());
        (0..steps).map(|step| levels[(step + 1) * levels.len() / steps - 1]).collect()
    });
    plans.iter_mut().for_each(|plan| placement::complete(platform, plan, spare));
    plans
}

/// What the last configuration achieved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Achieved {
    pub throughput: Throughput,
    /// Share of work of each used CPU.
    pub busy: Activity,
}

#[derive(Clone, Debug)]
pub struct StepMatching {
    platform: Platform,
    spare: Spare,
    plan: Plan,
    best: Throughput,
    /// CPUs that were raised without effect since the last improvement.
    useless: BTreeSet<CpuId>,
    raised: Option<(CpuId, Plan)>,
    /// Work on the CPUs under the best plan so far.
    busy: Activity,
    done: bool,
}

impl StepMatching {
    pub fn new(platform: &Platform, spare: Spare) -> Self {
        let cpus = placement::order(platform, &platform.managed(), Nearness::Anywhere, None);
        let most = cpus.len().min(placement::groups_max(platform, &Demand::new()));
        let chosen = if cpus.is_empty() { alloc::vec![platform.base()] } else { cpus[..most].to_vec() };
        let mut plan = placement::spread(platform, &Demand::new(), &Overlaps::default(), &chosen);
        plan.speeds = plan.used().iter().map(|cpu| (cpu, platform.levels(cpu)[0])).collect();
        placement::complete(platform, &mut plan, spare);
        Self {
            platform: platform.clone(),
            spare,
            plan,
            best: Throughput::NONE,
            useless: BTreeSet::new(),
            raised: None,
            busy: Activity::new(),
            done: false,
        }
    }

    /// The best found so far.
    pub fn plan(&self) -> &Plan {
        self.raised.as_ref().map_or(&self.plan, |(_, before)| before)
    }

    /// `last`: what the previous configuration achieved, `None` at the first call. Returns `None` at the end.
    pub fn next_configuration(&mut self, last: Option<Achieved>) -> Option<Configuration> {
        let Some(last) = last else { return Some(Configuration::new(self.plan.clone())) };
        if self.done {
            return None;
        }
        match self.raised.take() {
            Some((cpu, before)) if last.throughput < self.best * HELPS => {
                self.useless.insert(cpu);
                self.plan = before;
            }
            _ => {
                self.best = last.throughput;
                self.busy = last.busy;
                self.useless.clear();
            }
        }
        self.raise()
    }

    fn raise(&mut self) -> Option<Configuration> {
        let busy = |cpu: &CpuId| self.busy.get(cpu).copied().unwrap_or(0.0);
        let mut cpus: Vec<CpuId> =
            self.plan.used().iter().filter(|cpu| !self.useless.contains(cpu)).collect();
        cpus.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
        for cpu in cpus {
            let now = self.plan.speed(cpu);
            let Some(level) =
                self.platform.levels(cpu).iter().copied().find(|level| *level > now + SPEED_EQUAL)
            else {
                continue;
            };
            let before = self.plan.clone();
            self.plan.speeds.extend(self.platform.domain(cpu).iter().map(|other| (other, level)));
            placement::complete(&self.platform, &mut self.plan, self.spare);
            self.raised = Some((cpu, before));
            return Some(Configuration::new(self.plan.clone()));
        }
        self.done = true;
        None
    }
}
