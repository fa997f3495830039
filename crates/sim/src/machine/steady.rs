//! A plan's long-run throughput under a load: mean value analysis of a closed network whose stations are the CPUs
//! (Reiser and Lavenberg, 1980). The cost of waking sleepers is found by iteration, since it depends on how idle
//! they are, and their idleness depends on the cost.

use std::collections::BTreeMap;

use eft_cores::plan::Plan;
use eft_machine::CpuId;

use crate::machine::hardware::Hardware;
use crate::machine::load::Load;

/// Measured on a 2-core virtual machine, see the design.
const WAKE_SENDER_NS: f64 = 13_000.0;
const WAKE_LATE_NS: f64 = 35_000.0;
const SWITCH_NS: f64 = 1_200.0;
/// How long a server that is alone polls its queues before it sleeps.
const POLL_NS: f64 = 50_000.0;
/// Most messages handed on together on a shared core.
const BATCH_MAX: f64 = 32.0;
/// A message fetched from another core's cache, from another package.
const OTHER_CORE_NS: f64 = 150.0;
const OTHER_PACKAGE_NS: f64 = 450.0;
/// Slower than any load; prevents a division by zero.
const RATE_MIN: f64 = 1e-6;
const ROUNDS: usize = 40;
/// Throughput of each of two busy hardware threads of a core, relative to one that is alone (thesis 4.5). The
/// machine's own figure, so that a policy that assumes another shows its error.
const THREAD_SHARE: f64 = 0.62;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steady {
    /// Messages a second.
    pub rate: f64,
    /// Wall time of each message in each component, ns.
    pub service_ns: BTreeMap<String, f64>,
    pub cpus: BTreeMap<CpuId, CpuShare>,
    /// Wakes per message that each component sends, and receives.
    pub wakes_sent: BTreeMap<String, f64>,
    pub wakes_received: BTreeMap<String, f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuShare {
    pub busy: f64,
    pub polling: f64,
    /// The share that the load's program and peer take.
    pub others: f64,
    /// Messages there, waiting or served.
    pub messages: f64,
}

/// A CPU's state between two rounds.
#[derive(Clone, Copy, Default)]
struct Station {
    asleep: f64,
    share: CpuShare,
}

pub fn steady(platform: &Hardware, plan: &Plan, load: &Load) -> Steady {
    let mut stations: BTreeMap<CpuId, Station> =
        plan.used().iter().map(|cpu| (cpu, Station::default())).collect();
    let mut result = Steady::default();
    for _ in 0..ROUNDS {
        result = round(platform, plan, load, &stations);
        for (cpu, station) in &mut stations {
            let share = result.cpus.get(cpu).copied().unwrap_or_default();
            let asleep = asleep(plan, *cpu, share, result.rate);
            // Half of the way each round: the whole way would oscillate.
            station.asleep = (station.asleep + asleep) / 2.0;
            station.share = share;
        }
    }
    result
}

/// Probability that a message finds its CPU asleep.
fn asleep(plan: &Plan, cpu: CpuId, share: CpuShare, rate: f64) -> f64 {
    let idle = (1.0 - share.busy - share.others).max(0.0);
    let polls = if is_alone(plan, cpu) { poll_through(idle, rate) } else { 0.0 };
    // While it wakes, further messages come, and wake nobody.
    idle * (1.0 - polls) / (1.0 + rate * WAKE_LATE_NS * 1e-9)
}

/// The share of its idle time in which a server polls: it gives up after [`POLL_NS`].
fn poll_through(idle: f64, rate: f64) -> f64 {
    let gap_ns = idle / rate.max(RATE_MIN) * 1e9;
    1.0 - (-POLL_NS / gap_ns.max(1.0)).exp()
}

fn is_alone(plan: &Plan, cpu: CpuId) -> bool {
    plan.seats.values().any(|seat| seat.cpu == cpu && seat.dedicated)
}

fn round(platform: &Hardware, plan: &Plan, load: &Load, stations: &BTreeMap<CpuId, Station>) -> Steady {
    let mut result = Steady::default();
    let mut demand: BTreeMap<CpuId, f64> = stations.keys().map(|cpu| (*cpu, 0.0)).collect();
    let mut late_ns = load.outside_ns;
    let way = load.costs.iter().filter(|cost| cost.cpu_ns + cost.memory_ns > 0.0);
    let mut previous: Option<(&str, CpuId)> = None;
    for cost in way {
        let Some(seat) = plan.seats.get(cost.component) else { continue };
        let station = stations.get(&seat.cpu).copied().unwrap_or_default();
        let slow = slowness(platform, plan, seat.cpu, stations);
        let mut service = cost.cpu_ns * slow.0 + cost.memory_ns * slow.1;
        if plan.on(seat.cpu).count() > 1 {
            service += SWITCH_NS * slow.0 / station.share.messages.clamp(1.0, BATCH_MAX);
        }
        let from = previous.map_or(CpuId(0), |(_, cpu)| cpu);
        if from != seat.cpu {
            let far = platform.package(from) != platform.package(seat.cpu);
            service += if far { OTHER_PACKAGE_NS } else { OTHER_CORE_NS };
            late_ns += station.asleep * WAKE_LATE_NS;
            result.wakes_received.insert(cost.component.into(), station.asleep);
            // The kernel wakes the driver; every other component is woken by its neighbour, which pays.
            if let Some((sender, cpu)) = previous {
                let price = station.asleep * WAKE_SENDER_NS * slowness(platform, plan, cpu, stations).0;
                *demand.entry(cpu).or_default() += price;
                *result.service_ns.entry(sender.into()).or_default() += price;
                *result.wakes_sent.entry(sender.into()).or_default() += station.asleep;
            }
        }
        *demand.entry(seat.cpu).or_default() += service;
        *result.service_ns.entry(cost.component.into()).or_default() += service;
        previous = Some((cost.component, seat.cpu));
    }
    let others = add_ends(platform, plan, load, &mut demand, &mut result);
    let (rate, messages) = mean_value_analysis(load.window, &demand, late_ns);
    result.rate = load.offered.map_or(rate, |offered| offered.min(rate));
    for (cpu, demand_ns) in demand {
        let all = (result.rate * demand_ns * 1e-9).min(1.0);
        let others = result.rate * others.get(&cpu).copied().unwrap_or(0.0) * 1e-9;
        let busy = (all - others).max(0.0);
        let polling =
            if is_alone(plan, cpu) { (1.0 - all) * poll_through(1.0 - all, result.rate) } else { 0.0 };
        let open = all / (1.0 - all).max(0.01);
        let closed = messages.get(&cpu).copied().unwrap_or(0.0);
        let messages = if result.rate < rate { open.min(closed) } else { closed };
        result.cpus.insert(cpu, CpuShare { busy, polling, others, messages });
    }
    result
}

/// Adds the program's and peer's CPU time per message, and the stack's cost of being beside or away from them.
fn add_ends(
    platform: &Hardware,
    plan: &Plan,
    load: &Load,
    demand: &mut BTreeMap<CpuId, f64>,
    result: &mut Steady,
) -> BTreeMap<CpuId, f64> {
    let mut others = BTreeMap::new();
    let Some(ends) = &load.ends else { return others };
    for (cpu, ns) in [(ends.program, ends.program_ns), (ends.peer, ends.peer_ns)] {
        let taken_ns = ns / platform.effective(cpu, plan).max(0.01);
        *others.entry(cpu).or_default() += taken_ns;
        *demand.entry(cpu).or_default() += taken_ns;
    }
    let mut pays = |who: &str, cpu: CpuId, ns: f64| {
        *demand.entry(cpu).or_default() += ns;
        *result.service_ns.entry(who.into()).or_default() += ns;
    };
    if let Some(tcp) = plan.seats.get("tcp").filter(|seat| seat.cpu != ends.program) {
        pays("tcp", tcp.cpu, ends.far_copy_ns);
    }
    for (receiver, cpu) in crossings(plan, load) {
        if cpu == ends.program || cpu == ends.peer {
            pays(receiver, cpu, ends.crossing_ns);
        }
    }
    others
}

/// Components that receive a message from another CPU on its path, and their CPUs.
fn crossings<'a>(plan: &Plan, load: &'a Load) -> Vec<(&'a str, CpuId)> {
    let way = load.costs.iter().filter(|cost| cost.cpu_ns + cost.memory_ns > 0.0);
    let seats = way.filter_map(|cost| Some((cost.component, plan.seats.get(cost.component)?.cpu)));
    let seats: Vec<(&str, CpuId)> = seats.collect();
    seats.windows(2).filter(|pair| pair[0].1 != pair[1].1).map(|pair| pair[1]).collect()
}

/// The factors by which computing and waiting for memory take longer on this CPU.
fn slowness(platform: &Hardware, plan: &Plan, cpu: CpuId, stations: &BTreeMap<CpuId, Station>) -> (f64, f64) {
    let next_door = platform.siblings(cpu);
    let crowd: f64 = next_door
        .iter()
        .filter(|other| *other != cpu)
        .filter_map(|other| stations.get(&other))
        .map(|s| s.share.busy)
        .sum();
    let crowded = 1.0 / (1.0 - (1.0 - THREAD_SHARE) * crowd.min(1.0));
    let (speed, class) = (plan.speed(cpu).0.max(0.01), platform.capacity(cpu));
    // A duty cycle stops everything; a lower frequency leaves memory as fast as it is.
    let memory = if platform.by_frequency() { 1.0 } else { speed };
    (crowded / (speed * class), crowded / memory)
}

/// Throughput per second, and the mean number of messages at each station.
fn mean_value_analysis(
    window: f64,
    demand_ns: &BTreeMap<CpuId, f64>,
    outside_ns: f64,
) -> (f64, BTreeMap<CpuId, f64>) {
    let mut messages: BTreeMap<CpuId, f64> = demand_ns.keys().map(|cpu| (*cpu, 0.0)).collect();
    let mut rate = 0.0;
    for inside in 1..=(window as u32).max(1) {
        let stay = |cpu: &CpuId| demand_ns[cpu] * (1.0 + messages[cpu]);
        let stays: BTreeMap<CpuId, f64> = demand_ns.keys().map(|cpu| (*cpu, stay(cpu))).collect();
        rate = f64::from(inside) / (outside_ns + stays.values().sum::<f64>()).max(1.0);
        messages = stays.into_iter().map(|(cpu, stay)| (cpu, rate * stay)).collect();
    }
    (rate * 1e9, messages)
}
