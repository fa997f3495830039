//! Which components share a CPU, and which CPU each group gets.
//!
//! Groups are sections of a packet's path through the components, cut so that the work is split most evenly: neighbours
//! on the path stay together, so that few messages cross between caches. CPUs are chosen by the machine's topology
//! (`multiserver-scheduling`, sections 2, 3 and 5): own cores before hardware threads; one package and one last-level
//! cache before several; near the applications if much is received (the stack copies it to them), else away from them
//! where that lets their cores boost. Groups that share a core's hardware threads are those that were least busy at the
//! [same time](crate::overlap): in turn, or in different periods (tcp and udp). Before that is known, the busiest group
//! goes with the least busy one.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use eft_machine::{CpuId, CpuSet, Share};

use eft_component::scheduling::Spare;

use crate::estimate::Demand;
use crate::indicators::Indicators;
use crate::overlap::{self, Overlaps};
use crate::plan::{Plan, Seat};
use crate::platform::{self, Platform};
use crate::throughput::ByteRate;

/// Where the stack should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nearness {
    #[default]
    Anywhere,
    /// In the applications' package.
    Near,
    /// In another package.
    Away,
}

/// Received traffic is copied to the applications; below this rate the copies do not matter.
const RECEIVES_MUCH: ByteRate = ByteRate(10e6);

impl Nearness {
    pub fn of(platform: &Platform, indicators: &Indicators) -> Self {
        let Some(home) = platform.home(&platform.applications) else { return Self::Anywhere };
        let received = indicators.received;
        if received >= RECEIVES_MUCH && received >= indicators.sent {
            return Self::Near;
        }
        if home.boost { Self::Away } else { Self::Near }
    }
}

impl Nearness {
    /// Whether a plan has any component where the stack should be.
    pub fn is_met(self, platform: &Platform, plan: &Plan) -> bool {
        let Some(home) = platform.home(&platform.applications) else { return true };
        let any_at_home =
            |wanted: bool| plan.used().iter().any(|cpu| (platform.package(cpu) == home.package) == wanted);
        match self {
            Self::Anywhere => true,
            Self::Near => any_at_home(true),
            Self::Away => any_at_home(false),
        }
    }
}

/// Below this a component does not deserve a core of its own.
const OWN_CORE_SHARE: f64 = 0.05;

/// How many groups can be made so that each has something to do.
pub fn groups_max(platform: &Platform, demand: &Demand) -> usize {
    let work = work_of(platform, demand);
    let total: f64 = work.iter().sum();
    work.iter().filter(|work| **work >= OWN_CORE_SHARE * total).count().max(1)
}

/// Seats all components on these CPUs, so that the busiest CPU has as little to do as possible.
pub fn spread(platform: &Platform, demand: &Demand, overlaps: &Overlaps, cpus: &[CpuId]) -> Plan {
    let mut seated = seat(platform, demand, cpus);
    share_threads(platform, overlaps, &mut seated);
    let mut plan = Plan::default();
    for (cpu, group) in seated {
        plan.seats.extend(group.into_iter().map(|name| (name, Seat { cpu, dedicated: false })));
    }
    dedicate(&mut plan);
    plan
}

/// A group on each CPU.
type Seated = Vec<(CpuId, Vec<String>)>;

fn seat(platform: &Platform, demand: &Demand, cpus: &[CpuId]) -> Seated {
    let capacities: Vec<f64> = cpus.iter().map(|cpu| platform.capacity(*cpu)).collect();
    let first = capacities.first().copied().unwrap_or(1.0);
    if capacities.iter().all(|capacity| (capacity - first).abs() < 0.01) {
        return seat_equal(platform, demand, split(platform, demand, &capacities).0, cpus);
    }
    // Unequal cores: every rotation of their order is tried, to find which section of the path fits the big ones.
    let turned = (0..cpus.len()).map(|by| {
        let turn = |index: usize| (index + by) % cpus.len();
        let capacities: Vec<f64> = (0..cpus.len()).map(|index| capacities[turn(index)]).collect();
        let (groups, busiest) = split(platform, demand, &capacities);
        let seated: Seated =
            groups.into_iter().enumerate().map(|(index, group)| (cpus[turn(index)], group)).collect();
        (seated, busiest)
    });
    turned.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(seated, _)| seated).unwrap_or_default()
}

/// Groups change places among CPUs of the same capacity, so that groups on one core are least busy at the same time.
fn share_threads(platform: &Platform, overlaps: &Overlaps, seated: &mut Seated) {
    let core = |cpu: CpuId| platform.siblings(cpu).first().unwrap_or(cpu);
    let mut left: Vec<usize> = (0..seated.len()).collect();
    while let Some(first) = left.first() {
        let capacity = platform.capacity(seated[*first].0);
        let is_equal = |index: &usize| (platform.capacity(seated[*index].0) - capacity).abs() < 0.01;
        let (equal, others): (Vec<usize>, Vec<usize>) = left.iter().partition(|index| is_equal(index));
        left = others;
        let groups: Vec<Vec<String>> = equal.iter().map(|index| seated[*index].1.clone()).collect();
        let cores: Vec<CpuId> = equal.iter().map(|index| core(seated[*index].0)).collect();
        if let Some(dealt) = overlap::deal(&groups, &cores, overlaps) {
            for (index, group) in equal.iter().zip(dealt) {
                seated[*index].1 = groups[group].clone();
            }
        }
    }
}

/// Cuts a packet's path, from the driver upward, into one section for each core (of this capacity), so that the busiest
/// core has least to do; returns the sections and how busy that core is.
pub fn split(platform: &Platform, demand: &Demand, capacities: &[f64]) -> (Vec<Vec<String>>, f64) {
    let names = platform.components();
    let work = work_of(platform, demand);
    let count = capacities.len().clamp(1, names.len().max(1));
    // least[k][i]: how busy the busiest of k cores is when they have the first i components; cut[k][i]: where the
    // last of the k begins.
    let mut least = alloc::vec![alloc::vec![f64::INFINITY; names.len() + 1]; count + 1];
    let mut cut = alloc::vec![alloc::vec![0usize; names.len() + 1]; count + 1];
    least[0][0] = 0.0;
    for groups in 1..=count {
        let capacity = capacities.get(groups - 1).copied().unwrap_or(1.0).max(0.01);
        for end in 1..=names.len() {
            let mut last = 0.0;
            for begin in (0..end).rev() {
                last += work[begin] / capacity;
                let largest = least[groups - 1][begin].max(last);
                if largest < least[groups][end] {
                    (least[groups][end], cut[groups][end]) = (largest, begin);
                }
            }
        }
    }
    let mut groups = Vec::new();
    let mut end = names.len();
    for made in (1..=count).rev() {
        let begin = cut[made][end];
        groups.push(names[begin..end].to_vec());
        end = begin;
    }
    groups.reverse();
    (groups, least[count][names.len()])
}

fn work_of(platform: &Platform, demand: &Demand) -> Vec<f64> {
    let known = |name: &String| demand.get(name).copied().filter(|work| work.is_finite() && *work >= 0.0);
    let seen: f64 = platform.components().iter().filter_map(known).sum();
    let work = |name: &String| match known(name) {
        Some(work) if seen > 0.0 => work,
        None if seen > 0.0 => 0.0,
        _ => platform::usual_demand(name),
    };
    platform.components().iter().map(work).collect()
}

/// CPUs of the wanted kind, the best first.
pub fn order(platform: &Platform, cpus: &CpuSet, nearness: Nearness, favoured: Option<CpuId>) -> Vec<CpuId> {
    let home = platform.home(&platform.applications).map(|home| home.package);
    let package_cost = |cpu: CpuId| match (nearness, home) {
        (Nearness::Near, Some(home)) => u32::from(platform.package(cpu) != home),
        (Nearness::Away, Some(home)) => u32::from(platform.package(cpu) == home),
        _ => 0,
    };
    let mut cpus: Vec<CpuId> = cpus.iter().collect();
    // The base CPU keeps the interrupts, so it is the last choice among its equals, unless it was seen to be the best.
    cpus.sort_by_cached_key(|cpu| {
        let (first, best) = (platform.is_first_thread(*cpu), favoured == Some(*cpu));
        (
            package_cost(*cpu),
            !best,
            platform.package(*cpu),
            !first,
            *cpu == CpuId(0),
            platform.cache(*cpu),
            *cpu,
        )
    });
    cpus
}

/// Seats the groups on these equal CPUs: those with most work on cores of their own.
fn seat_equal(platform: &Platform, demand: &Demand, groups: Vec<Vec<String>>, cpus: &[CpuId]) -> Seated {
    let names = platform.components();
    let work = work_of(platform, demand);
    let of = |group: &Vec<String>| -> f64 {
        names.iter().zip(&work).filter(|(name, _)| group.contains(name)).map(|(_, work)| *work).sum()
    };
    let mut by_work: Vec<(f64, Vec<String>)> = groups.into_iter().map(|group| (of(&group), group)).collect();
    by_work.sort_by(|a, b| b.0.total_cmp(&a.0));
    let cores: Vec<CpuId> = cpus.iter().copied().filter(|cpu| platform.is_first_thread(*cpu)).collect();
    // The last groups, which have least to do, share the cores of the first.
    let second = |first: &CpuId| {
        cpus.iter().copied().find(|cpu| cpu != first && platform.siblings(*first).contains(*cpu))
    };
    let mut places = cores.clone();
    places.extend(cores.iter().rev().filter_map(second));
    let left: Vec<CpuId> = cpus.iter().copied().filter(|cpu| !places.contains(cpu)).collect();
    places.extend(left);
    let Some(last) = places.last().copied() else { return Seated::new() };
    let place = |index: usize| places.get(index).copied().unwrap_or(last);
    by_work.into_iter().enumerate().map(|(index, (_, group))| (place(index), group)).collect()
}

/// A component that is alone on its CPU gets it dedicated; a stack on one CPU shares it.
pub fn dedicate(plan: &mut Plan) {
    let consolidated = plan.is_consolidated();
    let alone: CpuSet = plan.used().iter().filter(|cpu| plan.on(*cpu).count() == 1).collect();
    for seat in plan.seats.values_mut() {
        seat.dedicated = !consolidated && alone.contains(seat.cpu);
    }
}

/// Completes a plan whose seats and speeds are chosen: one speed per frequency domain, and a use for the other CPUs.
pub fn complete(platform: &Platform, plan: &mut Plan, spare: Spare) {
    dedicate(plan);
    let unused = platform.managed().minus(&plan.used());
    let parked = if spare == Spare::Park { parkable(platform, &unused) } else { CpuSet::new() };
    let kept = plan.parked.and(&unused);
    let kept = if kept.is_empty() { kept } else { kept.and(&parkable(platform, &unused)) };
    plan.parked = parked.union(&kept);
    plan.given_back = unused.minus(&plan.parked);
    couple_speeds(platform, plan);
}

/// Gives each frequency domain of an otherwise complete plan one speed, that of its fastest used CPU. This takes time
/// in proportion to the used CPUs; the rest of `complete`, in proportion to the managed ones.
pub fn couple_speeds(platform: &Platform, plan: &mut Plan) {
    let used = plan.used();
    let mut speeds = BTreeMap::new();
    for cpu in used.iter().filter(|cpu| platform.is_managed(*cpu)) {
        let domain = platform.domain(cpu);
        let speed = domain.iter().filter(|other| used.contains(*other)).map(|other| plan.speed(other));
        let speed = speed.fold(Share::NONE, Share::max);
        let awake = domain.iter().filter(|other| !plan.parked.contains(*other));
        speeds.extend(awake.map(|other| (other, speed)));
    }
    plan.speeds = speeds;
}

/// Not the base CPU, and never the last one that runs tasks.
pub fn parkable(platform: &Platform, cpus: &CpuSet) -> CpuSet {
    let mut cpus = cpus.and(&platform.managed());
    cpus.remove(CpuId(0));
    let others = platform.machine().online.union(&platform.machine().parked).minus(&cpus);
    if others.is_empty() { CpuSet::new() } else { cpus }
}
