//! Clock: speed now and range, boost, governor and driver from cpufreq; thermal throttling.

use eft_machine::{
    CpuId, CpuSet, Frequency, KiloHertz, Microseconds, Nanoseconds, PState, PStateSource, Throttle,
};

use super::{Tree, topology};

pub fn read(tree: &Tree, cpu: CpuId) -> Option<Frequency> {
    let dir = format!("{}/cpufreq", topology::dir(cpu));
    if !tree.exists(&dir) {
        return clock_only(tree, cpu);
    }
    let clock = |name: &str| tree.number::<KiloHertz>(&format!("{dir}/{name}"));
    let text = |name: &str| tree.text(&format!("{dir}/{name}")).filter(|value| value != "<unknown>");
    let list = |name: &str| -> Vec<KiloHertz> {
        text(name)
            .map(|list| list.split_whitespace().filter_map(|khz| khz.parse().ok()).collect())
            .unwrap_or_default()
    };
    let mut available = [list("scaling_available_frequencies"), list("scaling_boost_frequencies")].concat();
    available.sort_unstable();
    available.dedup();
    Some(Frequency {
        now: clock("cpuinfo_avg_freq")
            .or_else(|| clock("scaling_cur_freq"))
            .or_else(|| clock("cpuinfo_cur_freq")),
        min: clock("cpuinfo_min_freq"),
        max: clock("cpuinfo_max_freq"),
        base: clock("base_frequency").or_else(|| nominal(tree, cpu)),
        limit_min: clock("scaling_min_freq"),
        limit_max: clock("scaling_max_freq"),
        available,
        // -1 (eternal, as u32) means that the driver does not know.
        transition_latency: tree
            .number(&format!("{dir}/cpuinfo_transition_latency"))
            .filter(|latency| *latency < Nanoseconds(u64::from(u32::MAX))),
        boost: boost(tree, &dir),
        governor: text("scaling_governor"),
        driver: text("scaling_driver"),
        domain: related(tree, &dir).unwrap_or_else(|| CpuSet::one(cpu)),
    })
}

/// Without cpufreq the clock is still printed by x86 kernels.
fn clock_only(tree: &Tree, cpu: CpuId) -> Option<Frequency> {
    let info = tree.text("proc/cpuinfo")?;
    let mut current = None;
    for line in info.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        match name.trim() {
            "processor" => current = value.trim().parse::<CpuId>().ok(),
            "cpu MHz" if current == Some(cpu) => {
                let mhz: f64 = value.trim().parse().ok()?;
                let now = Some(KiloHertz((mhz * 1000.0) as u64));
                return Some(Frequency { now, domain: CpuSet::one(cpu), ..Frequency::default() });
            }
            _ => {}
        }
    }
    None
}

fn nominal(tree: &Tree, cpu: CpuId) -> Option<KiloHertz> {
    tree.number::<u64>(&format!("{}/acpi_cppc/nominal_freq", topology::dir(cpu)))
        .map(KiloHertz::from_mhz)
        .filter(|clock| *clock > KiloHertz(0))
}

/// `related_cpus` is separated by blanks, unlike every other list.
fn related(tree: &Tree, dir: &str) -> Option<CpuSet> {
    tree.text(&format!("{dir}/related_cpus"))?.replace(' ', ",").parse().ok()
}

fn boost(tree: &Tree, dir: &str) -> Option<bool> {
    let flag = |path: &str| tree.number::<u32>(path).map(|flag| flag != 0);
    flag(&format!("{dir}/boost"))
        .or_else(|| flag("sys/devices/system/cpu/cpufreq/boost"))
        .or_else(|| flag("sys/devices/system/cpu/intel_pstate/no_turbo").map(|off| !off))
}

/// cpufreq names frequencies; power and latency per state it does not know, the transition latency it does.
pub fn p_states(frequency: &Frequency) -> Vec<PState> {
    let latency = frequency.transition_latency.map(Microseconds::from);
    let state = |clock: &KiloHertz| PState {
        frequency: *clock,
        power: None,
        latency,
        source: PStateSource::Cpufreq,
        uncertain: false,
    };
    frequency.available.iter().rev().map(state).collect()
}

pub fn throttle(tree: &Tree, cpu: CpuId) -> Option<Throttle> {
    let dir = format!("{}/thermal_throttle", topology::dir(cpu));
    Some(Throttle {
        core_events: tree.number(&format!("{dir}/core_throttle_count"))?,
        package_events: tree.number(&format!("{dir}/package_throttle_count")),
    })
}
