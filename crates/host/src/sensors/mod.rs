//! What the machine reports about its CPUs. Each file reads one source; [`observe`] combines them.
//!
//! Promises: reads only. Every path lies under a [`Tree`], so that a folder of recorded files stands in for a machine.
//! What a kernel does not report is absent from the observation, never invented.

pub mod acpi;
pub mod counters;
pub mod cpus;
pub mod energy;
pub mod frequency;
pub mod idle;
pub mod perf_event;
pub mod power;
pub mod rates;
pub mod regions;
pub mod residue;
pub mod speed;
pub mod tasks;
pub mod topology;
pub mod trace;
pub mod tree;

use std::collections::BTreeMap;

use eft_machine::class::{Evidence, classify};
use eft_machine::{Cpu, CpuId, CpuSet, Machine, PState};
pub use tree::Tree;

use crate::error::Error;

/// Everything that one reading gives. Rates (`interrupts_per_s`, `load`) need two: see [`rates`].
pub fn observe(tree: &Tree) -> Result<Machine, Error> {
    let sets = topology::cpu_sets(tree)?;
    let isolated = topology::isolated(tree);
    let core_types = topology::core_types(tree);
    let acpi = acpi::p_states(tree);
    let mut cpus: Vec<Cpu> = sets
        .present
        .iter()
        .map(|cpu| observe_cpu(tree, cpu, &sets.online, &isolated, &core_types, &acpi))
        .collect();
    let evidence: Vec<Evidence> = cpus.iter().map(evidence).collect();
    let (classes, class_from) = classify(&evidence);
    for (cpu, class) in cpus.iter_mut().zip(classes) {
        cpu.class = class;
        cpu.class_from = class_from.clone();
    }
    Ok(Machine {
        model: topology::model(tree),
        offline: sets.present.minus(&sets.online),
        online: sets.online,
        virtual_machine: topology::is_virtual(tree),
        idle_driver: tree
            .text("sys/devices/system/cpu/cpuidle/current_driver")
            .filter(|driver| driver != "none"),
        idle_governor: tree
            .text("sys/devices/system/cpu/cpuidle/current_governor_ro")
            .or_else(|| tree.text("sys/devices/system/cpu/cpuidle/current_governor")),
        cpus,
        ..Machine::default()
    })
}

fn observe_cpu(
    tree: &Tree,
    cpu: CpuId,
    online: &CpuSet,
    isolated: &CpuSet,
    core_types: &[(String, CpuSet)],
    acpi: &BTreeMap<CpuId, Vec<PState>>,
) -> Cpu {
    let frequency = frequency::read(tree, cpu);
    let mut p_states = frequency.as_ref().map(frequency::p_states).unwrap_or_default();
    if let Some(from_tables) = acpi.get(&cpu) {
        // The tables have power and latency, cpufreq only frequencies: the tables win if there are both, unless a state
        // in them is uncertain.
        if p_states.is_empty() || !from_tables.iter().any(|state| state.uncertain) {
            p_states = from_tables.clone();
        }
    }
    let core_type = core_types.iter().find(|(_, cpus)| cpus.contains(cpu)).map(|(name, _)| name.clone());
    Cpu {
        cpu,
        online: online.contains(cpu),
        isolated: isolated.contains(cpu),
        capacity: tree.number(&format!("{}/cpu_capacity", topology::dir(cpu))),
        core_type,
        throttle: frequency::throttle(tree, cpu),
        idle_states: idle::read(tree, cpu),
        frequency,
        p_states,
        ..topology::read(tree, cpu)
    }
}

fn evidence(cpu: &Cpu) -> Evidence {
    Evidence {
        core_type: cpu.core_type.clone(),
        capacity: cpu.capacity,
        fastest: cpu.frequency.as_ref().and_then(|frequency| frequency.max),
    }
}
