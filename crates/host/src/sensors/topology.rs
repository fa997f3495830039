//! Where each CPU sits: package, die, core, threads, cluster, cache, NUMA node; and of which kind it is.

use eft_machine::{Cache, Cpu, CpuId, CpuSet};

use super::Tree;

use crate::error::{Error, error};

pub struct CpuSets {
    pub present: CpuSet,
    pub online: CpuSet,
}

pub fn dir(cpu: CpuId) -> String {
    format!("sys/devices/system/cpu/cpu{cpu}")
}

pub fn cpu_sets(tree: &Tree) -> Result<CpuSets, Error> {
    Ok(CpuSets { present: list(tree, "present")?, online: online(tree)? })
}

pub fn online(tree: &Tree) -> Result<CpuSet, Error> {
    list(tree, "online")
}

fn list(tree: &Tree, name: &str) -> Result<CpuSet, Error> {
    let path = format!("sys/devices/system/cpu/{name}");
    tree.read(&path)?.parse().map_err(|error| error!(Invalid, "/{path}: {error}"))
}

/// CPUs kept from the scheduler's balancing: at boot, or by an isolated partition of a cgroup.
pub fn isolated(tree: &Tree) -> CpuSet {
    let list = |path: &str| tree.parsed::<CpuSet>(path).unwrap_or_default();
    list("sys/devices/system/cpu/isolated").union(&list("sys/fs/cgroup/cpuset.cpus.isolated"))
}

pub fn model(tree: &Tree) -> Option<String> {
    let info = tree.text("proc/cpuinfo")?;
    let field = |key: &str| {
        info.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key && !value.trim().is_empty()).then(|| value.trim().to_string())
        })
    };
    field("model name").or_else(|| field("Hardware")).or_else(|| tree.text("proc/device-tree/model"))
}

pub fn is_virtual(tree: &Tree) -> bool {
    let flags = tree.text("proc/cpuinfo").unwrap_or_default();
    flags
        .lines()
        .any(|line| line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// PMUs with a `cpus` list belong to one core type each. Others (uncore, `cpumask`) say nothing about cores.
pub fn core_types(tree: &Tree) -> Vec<(String, CpuSet)> {
    let devices = "sys/bus/event_source/devices";
    tree.entries(devices)
        .into_iter()
        .filter_map(|name| {
            let cpus = tree.parsed::<CpuSet>(&format!("{devices}/{name}/cpus"))?;
            Some((name, cpus))
        })
        .collect()
}

pub fn read(tree: &Tree, cpu: CpuId) -> Cpu {
    let dir = dir(cpu);
    // The kernel writes -1 where the hardware has no such level.
    let number = |name: &str| {
        tree.number::<i64>(&format!("{dir}/topology/{name}")).and_then(|id| u32::try_from(id).ok())
    };
    let list = |name: &str| tree.parsed::<CpuSet>(&format!("{dir}/topology/{name}"));
    Cpu {
        cpu,
        package: number("physical_package_id"),
        die: number("die_id"),
        cluster: number("cluster_id").filter(|id| *id != u32::from(u16::MAX)),
        core: number("core_id"),
        siblings: list("core_cpus_list")
            .or_else(|| list("thread_siblings_list"))
            .unwrap_or_else(|| CpuSet::one(cpu)),
        last_level_cache: last_level_cache(tree, &dir),
        numa_node: tree.numbered(&dir, "node").first().copied(),
        ..Cpu::default()
    }
}

fn last_level_cache(tree: &Tree, dir: &str) -> Option<Cache> {
    let caches = format!("{dir}/cache");
    let read = |index: u32| {
        let cache = format!("{caches}/index{index}");
        Some(Cache {
            level: tree.number(&format!("{cache}/level"))?,
            size_kib: tree
                .text(&format!("{cache}/size"))
                .and_then(|size| size.strip_suffix('K')?.parse().ok()),
            shared: tree.parsed(&format!("{cache}/shared_cpu_list")).unwrap_or_default(),
        })
    };
    tree.numbered(&caches, "index").into_iter().filter_map(read).max_by_key(|cache| cache.level)
}
