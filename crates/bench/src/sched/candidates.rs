//! The fixed configurations that a policy is compared with: every way to seat the components on the managed CPUs, and
//! every speed. None of it is asked of the policies' crate, so that what they overlook is found.

use std::collections::BTreeMap;

use eft_cores::plan::{Plan, Seat};
use eft_machine::{CpuId, Share};

/// Components whose seat makes a difference under the loads here; the others follow ip.
const MATTER: [&str; 5] = ["sockets", "tcp", "ip", "filter", "nic"];
/// With more CPUs than this, or more components, there would be too many seatings to try.
const SEATINGS_MAX: usize = 4096;

/// All seatings at full speed. The first is everything on the first CPU.
pub fn seatings(components: &[String], cpus: &[CpuId]) -> Vec<Plan> {
    let matters: Vec<&String> =
        components.iter().filter(|name| MATTER.iter().any(|kind| name.starts_with(kind))).collect();
    let count = cpus.len().saturating_pow(matters.len() as u32).min(SEATINGS_MAX);
    let cpu_of = |name: &str, seating: usize| {
        let index = matters.iter().position(|other| *other == name)?;
        Some(cpus[seating / cpus.len().pow(index as u32) % cpus.len()])
    };
    let plan = |seating: usize| {
        let ip = cpu_of("ip", seating).unwrap_or(cpus[0]);
        let seat = |name: &String| (name.clone(), cpu_of(name, seating).unwrap_or(ip));
        seated(components.iter().map(seat).collect(), cpus)
    };
    (0..count).map(plan).collect()
}

/// A CPU that holds components is used; the others are given back. One that carries a single component is its own.
fn seated(cpus_of: BTreeMap<String, CpuId>, cpus: &[CpuId]) -> Plan {
    let alone = |cpu: CpuId| cpus_of.values().filter(|other| **other == cpu).count() == 1;
    let seats: BTreeMap<String, Seat> = cpus_of
        .iter()
        .map(|(name, cpu)| (name.clone(), Seat { cpu: *cpu, dedicated: alone(*cpu) }))
        .collect();
    let mut plan = Plan { seats, ..Plan::default() };
    let used = plan.used();
    plan.speeds = used.iter().map(|cpu| (cpu, Share::ALL)).collect();
    plan.given_back = cpus.iter().copied().filter(|cpu| !used.contains(*cpu)).collect();
    plan
}

/// The same seats at every combination of these speeds. The sweep of profiles has its own: judge and policy share no code.
pub fn at_speeds(plan: &Plan, levels: &[Share]) -> Vec<Plan> {
    let mut plans = vec![plan.clone()];
    for cpu in plan.used().iter() {
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

/// Obvious plans without a policy: all on one CPU, for each, and each component on a CPU in turn; at full speed.
pub fn trivial(components: &[String], cpus: &[CpuId]) -> Vec<(String, Plan)> {
    let on = |cpu_of: &dyn Fn(usize) -> CpuId| {
        seated(components.iter().enumerate().map(|(i, name)| (name.clone(), cpu_of(i))).collect(), cpus)
    };
    let mut all: Vec<(String, Plan)> =
        cpus.iter().map(|cpu| (format!("all on CPU {cpu}"), on(&|_| *cpu))).collect();
    all.push(("all spread".into(), on(&|index| cpus[index % cpus.len()])));
    all
}

#[cfg(test)]
mod tests;
