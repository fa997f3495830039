//! Derives the classes and groups that the policy deals out from a machine's CPUs.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use eft_machine::{CoreClass, Cpu, CpuSet, Ppm};

use crate::PPM;
use crate::efficiency::SIBLING;
use crate::error::HostError;
use crate::host::{CLASSES_MAX, Class, GROUPS_MAX, Group, Host};

/// Cores whose speeds differ less are of one class.
const SAME_PPM: u64 = 50_000;
/// What an E core executes of a P core's instructions in a cycle, until it was measured.
const LITTLE_IPC_PPM: u64 = 650_000;

/// Speed of each CPU: by capacity, else by frequency and kind; and what share of it was set.
fn speed(cpu: &Cpu, most_khz: u64, most_capacity: u32) -> (u64, u64) {
    let set = cpu.speed_set.as_ref().map_or(PPM, |set| (set.share.0.clamp(0.01, 1.0) * PPM as f64) as u64);
    let little = matches!(cpu.class, CoreClass::Little);
    let ipc = if little { LITTLE_IPC_PPM } else { PPM };
    let khz = cpu.frequency.as_ref().and_then(|f| f.max).map(|clock| clock.0);
    let clock = match (cpu.class, khz) {
        (CoreClass::Equal, _) | (_, None) => PPM,
        (_, Some(khz)) => khz.min(most_khz) * PPM / most_khz.max(1),
    };
    match cpu.capacity {
        // The capacity is clock times IPC.
        Some(capacity) if cpu.class != CoreClass::Equal && most_capacity > 0 => {
            let all = u64::from(capacity) * PPM / u64::from(most_capacity);
            let ipc = if clock < PPM { (all * PPM / clock.max(1)).min(PPM) } else { all.min(PPM) };
            (clock * set / PPM, ipc)
        }
        _ => (clock * set / PPM, ipc),
    }
}

/// The host, and the CPUs of each of its groups; only CPUs in `usable`.
pub fn survey(cpus: &[Cpu], usable: &CpuSet) -> Result<(Host, Vec<CpuSet>), HostError> {
    let cpus: Vec<&Cpu> =
        cpus.iter().filter(|cpu| cpu.online && !cpu.parked && usable.contains(cpu.cpu)).collect();
    if cpus.is_empty() {
        return Err(HostError::NothingOnline(usable.clone()));
    }
    let most_khz = cpus.iter().filter_map(|cpu| cpu.frequency.as_ref()?.max).max().map_or(0, |clock| clock.0);
    let most_capacity = cpus.iter().filter_map(|cpu| cpu.capacity).max().unwrap_or(0);
    let figures: Vec<(u64, u64)> = cpus.iter().map(|cpu| speed(cpu, most_khz, most_capacity)).collect();
    // Clock times IPC orders the classes; a class is of one clock and one IPC.
    let total = |(clock, ipc): (u64, u64)| clock * ipc / PPM;
    let mut kinds: Vec<(u64, u64)> = Vec::new();
    let mut sorted = figures.clone();
    sorted.sort_by_key(|figure| core::cmp::Reverse(total(*figure)));
    for figure in sorted {
        if kinds.last().is_none_or(|last| total(*last) > total(figure) + SAME_PPM) {
            kinds.push(figure);
        }
    }
    kinds.truncate(CLASSES_MAX);
    let class_of =
        |figure: (u64, u64)| kinds.iter().rposition(|kind| total(*kind) >= total(figure)).unwrap_or(0);
    let mut groups: BTreeMap<Key, CpuSet> = BTreeMap::new();
    for (cpu, figure) in cpus.iter().zip(&figures) {
        let cache = cpu.last_level_cache.as_ref().and_then(|cache| cache.shared.first()).map(|cpu| cpu.0);
        let key = Key {
            class: class_of(*figure),
            node: cpu.numa_node.unwrap_or(0),
            cache: cache.or(cpu.package).unwrap_or(0),
            cluster: cluster(cpu, &cpus),
        };
        groups.entry(key).or_default().insert(cpu.cpu);
    }
    let (first_clock, first_ipc) = kinds[0];
    let class = |(index, (clock, ipc)): (usize, &(u64, u64))| Class {
        name: class_name(index, kinds.len()),
        speed: Ppm::of(*clock, first_clock.max(1)).clamp(Ppm(1), Ppm::ALL),
        ipc: Ppm::of(*ipc, first_ipc.max(1)).max(Ppm(1)),
        sibling_of: None,
    };
    let group = |(key, set): (&Key, &CpuSet)| Group {
        class: key.class as u8,
        cores: physical(&cpus, set),
        threads: set.len() as u32,
        cache: key.cache,
        cluster: key.cluster,
        node: key.node,
    };
    let mut host = Host {
        classes: kinds.iter().enumerate().map(class).collect(),
        groups: groups.iter().map(group).collect(),
    };
    // Speeds never rise from class to class, though clocks may where IPC is what differs.
    for i in 1..host.classes.len() {
        host.classes[i].speed = host.classes[i].speed.min(host.classes[i - 1].speed);
    }
    let mut sets: Vec<CpuSet> = groups.into_values().collect();
    if host.is_asymmetric() {
        add_siblings(&mut host, &mut sets);
    }
    host.check()?;
    Ok((host, sets))
}

/// What the CPUs of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    class: usize,
    node: u32,
    cache: u32,
    cluster: u32,
}

/// The cluster of cores that share a cache before the last level, counted from 1; 0 if only hardware threads share it, as
/// on P cores.
fn cluster(cpu: &Cpu, all: &[&Cpu]) -> u32 {
    let place = |cpu: &Cpu| (cpu.package, cpu.die, cpu.cluster);
    let is_other = |other: &&&Cpu| {
        place(other) == place(cpu) && !cpu.siblings.contains(other.cpu) && other.cpu != cpu.cpu
    };
    match cpu.cluster {
        Some(number) if all.iter().any(|other| is_other(&other)) => number.saturating_add(1),
        _ => 0,
    }
}

/// A class for the second hardware threads of each class that has some. All of these come last: what they add to a core
/// is less than any core of its own does.
fn add_siblings(host: &mut Host, sets: &mut Vec<CpuSet>) {
    for class in 0..host.classes.len() {
        let of: Vec<usize> = host
            .of_class(class)
            .filter(|group| host.groups[*group].threads > host.groups[*group].cores)
            .collect();
        if of.is_empty() || host.classes.len() == CLASSES_MAX || host.groups.len() + of.len() > GROUPS_MAX {
            continue;
        }
        let (own, last) = (host.classes[class].clone(), &host.classes[host.classes.len() - 1]);
        let sibling = Class {
            name: format!("{} with busy sibling", own.name),
            speed: (own.speed * SIBLING).clamp(Ppm(1), last.speed),
            ipc: own.ipc,
            sibling_of: Some(class as u8),
        };
        let number = host.classes.len() as u8;
        host.classes.push(sibling);
        for group in of {
            let own = host.groups[group];
            host.groups.push(Group { class: number, cores: own.threads - own.cores, ..own });
            sets.push(sets[group].clone());
        }
    }
}

fn class_name(index: usize, count: usize) -> String {
    match (index, count) {
        (_, 1) => "equal".into(),
        (0, _) => "fast".into(),
        (i, n) if i + 1 == n => "slow".into(),
        (i, _) => format!("middle{i}"),
    }
}

/// Cores of a set: hardware threads of one count once.
fn physical(cpus: &[&Cpu], set: &CpuSet) -> u32 {
    let first = |cpu: &&&Cpu| {
        set.contains(cpu.cpu) && cpu.siblings.iter().find(|s| set.contains(*s)).is_none_or(|s| s == cpu.cpu)
    };
    cpus.iter().filter(first).count().max(1) as u32
}

#[cfg(test)]
mod tests;
