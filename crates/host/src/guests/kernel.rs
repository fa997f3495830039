//! What the kernel itself does for asymmetric cores, so that an operator knows what else places threads.

use serde::Serialize;

use crate::sensors::Tree;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Feature {
    pub name: &'static str,
    pub is_on: bool,
    pub what: &'static str,
}

pub fn features(tree: &Tree) -> Vec<Feature> {
    let flags = tree.text("proc/cpuinfo").unwrap_or_default();
    let has_flag =
        |flag: &str| flags.lines().any(|l| l.starts_with("flags") && l.split_whitespace().any(|f| f == flag));
    let number = |path: &str| tree.number::<u64>(path);
    let capacities: Vec<u64> = tree
        .numbered("sys/devices/system/cpu", "cpu")
        .into_iter()
        .filter_map(|cpu| number(&format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity")))
        .collect();
    let feature = |name, is_on, what| Feature { name, is_on, what };
    vec![
        feature(
            "itmt",
            number("proc/sys/kernel/sched_itmt_enabled").is_some_and(|on| on > 0),
            "fills the cores that turbo reaches first",
        ),
        feature(
            "thread director",
            has_flag("hfi") || has_flag("itd"),
            "the processor ranks its cores for the kernel",
        ),
        feature(
            "capacity awareness",
            capacities.windows(2).any(|pair| pair[0] != pair[1]),
            "moves what outgrows a small core to a large one",
        ),
        feature(
            "energy awareness",
            number("proc/sys/kernel/sched_energy_aware").is_some_and(|on| on > 0),
            "places small work where it costs least energy",
        ),
        feature(
            "uclamp",
            number("proc/sys/kernel/sched_util_clamp_min").is_some(),
            "lets programs claim or renounce capacity",
        ),
        feature(
            "core scheduling",
            tree.text("proc/config").is_some_and(|c| c.contains("CONFIG_SCHED_CORE=y"))
                || tree.exists("sys/kernel/debug/sched/core_enabled"),
            "keeps strangers from sharing a core's threads",
        ),
    ]
}

#[cfg(test)]
mod tests;
