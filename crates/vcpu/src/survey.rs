//! From what is known of a machine's CPUs to the classes and groups that the policy deals out.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use eft_machine::{CoreClass, Cpu, CpuSet};

use crate::PPM;
use crate::host::{CLASSES_MAX, Class, Group, Host};

/// Cores whose speeds differ less are of one class.
const SAME_PPM: u64 = 50_000;
/// What an E core executes of a P core's instructions in a cycle, until it was measured.
const LITTLE_IPC_PPM: u64 = 650_000;

/// Speed of each CPU: by capacity, else by frequency and kind; and what share of it was set.
fn speed(cpu: &Cpu, most_khz: u64, most_capacity: u32) -> (u64, u64) {
    let set = cpu.speed_set.as_ref().map_or(PPM, |set| (set.share.clamp(0.01, 1.0) * PPM as f64) as u64);
    let little = matches!(cpu.class, CoreClass::Little);
    let ipc = if little { LITTLE_IPC_PPM } else { PPM };
    let khz = cpu.frequency.as_ref().and_then(|f| f.max_khz);
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
pub fn survey(cpus: &[Cpu], usable: &CpuSet) -> Result<(Host, Vec<CpuSet>), String> {
    let cpus: Vec<&Cpu> =
        cpus.iter().filter(|cpu| cpu.online && !cpu.parked && usable.contains(cpu.cpu)).collect();
    if cpus.is_empty() {
        return Err(format!("no CPU of {usable} is online"));
    }
    let most_khz = cpus.iter().filter_map(|cpu| cpu.frequency.as_ref()?.max_khz).max().unwrap_or(0);
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
    let mut groups: BTreeMap<(usize, u32, u32), CpuSet> = BTreeMap::new();
    for (cpu, figure) in cpus.iter().zip(&figures) {
        let cache = cpu.last_level_cache.as_ref().and_then(|cache| cache.shared.first());
        // E cores share a cache in fours; moving between clusters costs less than leaving the last level.
        let key = (class_of(*figure), cache.or(cpu.package).unwrap_or(0), cpu.numa_node.unwrap_or(0));
        groups.entry(key).or_default().insert(cpu.cpu);
    }
    let (first_clock, first_ipc) = kinds[0];
    let class = |(index, (clock, ipc)): (usize, &(u64, u64))| Class {
        name: class_name(index, kinds.len()),
        speed_ppm: (clock * PPM / first_clock.max(1)).clamp(1, PPM) as u32,
        ipc_ppm: (ipc * PPM / first_ipc.max(1)).max(1) as u32,
    };
    let group = |(key, set): (&(usize, u32, u32), &CpuSet)| Group {
        class: key.0 as u8,
        cores: physical(&cpus, set),
        threads: set.len() as u32,
        cache: key.1,
        node: key.2,
    };
    let mut host = Host {
        classes: kinds.iter().enumerate().map(class).collect(),
        groups: groups.iter().map(group).collect(),
    };
    // Speeds never rise from class to class, though clocks may where IPC is what differs.
    for i in 1..host.classes.len() {
        host.classes[i].speed_ppm = host.classes[i].speed_ppm.min(host.classes[i - 1].speed_ppm);
    }
    host.check()?;
    Ok((host, groups.into_values().collect()))
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
mod tests {
    use super::*;
    use eft_machine::{Cache, Frequency, SpeedSet};

    fn cpu(number: u32, class: CoreClass, khz: u64, siblings: &str, cache: &str) -> Cpu {
        Cpu {
            cpu: number,
            online: true,
            class,
            siblings: siblings.parse().unwrap(),
            frequency: Some(Frequency { max_khz: Some(khz), ..Frequency::default() }),
            last_level_cache: Some(Cache { level: 3, size_kib: None, shared: cache.parse().unwrap() }),
            ..Cpu::default()
        }
    }

    #[test]
    fn p_and_e_cores_are_two_classes_with_threads() {
        let mut cpus: Vec<Cpu> = (0..4)
            .map(|i| cpu(i, CoreClass::Big, 5_000_000, if i < 2 { "0-1" } else { "2-3" }, "0-7"))
            .collect();
        cpus.extend((4..8).map(|i| cpu(i, CoreClass::Little, 4_000_000, &format!("{i}"), "0-7")));
        let (host, sets) = survey(&cpus, &"0-7".parse().unwrap()).unwrap();
        assert_eq!(sets.iter().map(CpuSet::to_string).collect::<Vec<_>>(), ["0-3", "4-7"]);
        assert_eq!((host.groups[0].cores, host.groups[0].threads, host.groups[1].cores), (2, 4, 4));
        assert_eq!((host.classes[1].speed_ppm, host.classes[1].ipc_ppm), (800_000, 650_000));
    }

    #[test]
    fn a_core_that_was_slowed_is_a_class_of_its_own() {
        let mut cpus: Vec<Cpu> =
            (0..3).map(|i| cpu(i, CoreClass::Equal, 3_000_000, &format!("{i}"), "0-3")).collect();
        cpus[1].speed_set = Some(SpeedSet { share: 0.4, back_end: "emulated".into(), phase: None });
        let (host, sets) = survey(&cpus, &"0-1".parse().unwrap()).unwrap();
        assert_eq!(sets.iter().map(CpuSet::to_string).collect::<Vec<_>>(), ["0", "1"]);
        assert_eq!(host.classes[1].speed_ppm, 400_000);
        assert!(!survey(&cpus, &"0,2".parse().unwrap()).unwrap().0.is_asymmetric());
        assert!(survey(&cpus, &"7".parse().unwrap()).is_err());
    }

    #[test]
    fn caches_divide_a_class() {
        let cpus: Vec<Cpu> = (0..4)
            .map(|i| cpu(i, CoreClass::Equal, 1, &format!("{i}"), if i < 2 { "0-1" } else { "2-3" }))
            .collect();
        let (host, _) = survey(&cpus, &"0-3".parse().unwrap()).unwrap();
        assert_eq!(host.groups.len(), 2);
        assert!(host.crosses_cache(0, 1));
    }
}
