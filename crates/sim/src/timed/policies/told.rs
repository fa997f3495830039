//! What the scheduler is told of the machine: its cores as a live machine shows them, and figures that are off.

use eft_base::random::Random;
use eft_cores::power::PowerModel;
use eft_machine::class::{Evidence, classify};
use eft_machine::{Cache, Cpu, CpuId, CpuSet, Frequency, KiloHertz, Machine, Share, Watts};

use super::placement::PROGRAM;
use crate::hardware::Cores;
use crate::hardware::clock::DUTY_STEPS;
use crate::hardware::cores::{Class, SPEEDS, Speeds};

fn cpus(cores: impl Iterator<Item = usize>) -> CpuSet {
    cores.map(|core| CpuId(core as u32)).collect()
}

/// The stack's chip, whose cores are managed, and another one for the program, whose core is as the stack's largest.
pub fn machine(cores: &Cores) -> Machine {
    let stack = cpus(1..=cores.count() as usize);
    let online = stack.union(&CpuSet::one(CpuId(PROGRAM as u32)));
    let mut machine = Machine {
        cpus: online.iter().map(|number| cpu(cores, number)).collect(),
        online,
        managed: stack,
        ..Machine::default()
    };
    classify_as_live(&mut machine);
    machine
}

fn cpu(cores: &Cores, number: CpuId) -> Cpu {
    let core = number.0 as usize;
    let (is_managed, of_class) = (core != PROGRAM, cores.class_of(core));
    let class = &cores.classes()[of_class];
    let shared = match is_managed {
        false => CpuSet::one(number),
        true if class.is_cluster => cpus(cores.numbers(of_class)),
        true => cpus(1..=cores.count() as usize),
    };
    Cpu {
        cpu: number,
        online: true,
        managed: is_managed,
        package: Some(u32::from(!is_managed)),
        core: Some(number.0),
        siblings: CpuSet::one(number),
        last_level_cache: Some(Cache { level: 3, size_kib: None, shared }),
        capacity: class.capacity.map(|capacity| capacity as u32),
        core_type: core_type(class, of_class),
        frequency: Some(frequency(cores, core)),
        ..Cpu::default()
    }
}

/// Where the kernel gives no capacities it names a PMU for each class, as Intel's do.
fn core_type(class: &Class, of_class: usize) -> Option<String> {
    let has_types = class.capacity.is_none() && matches!(class.speeds, Speeds::Clocks(_));
    has_types.then(|| if of_class == 0 { "cpu_core" } else { "cpu_atom" }.into())
}

/// Clocks of a table are P-states; duty cycles are none.
fn frequency(cores: &Cores, core: usize) -> Frequency {
    let clock = |speed: u64| KiloHertz(cores.clock(core, speed).khz);
    let highest = Frequency { max: Some(clock(SPEEDS)), ..Frequency::default() };
    match cores.classes()[cores.class_of(core)].speeds {
        Speeds::Duty(_) => highest,
        Speeds::Clocks(_) => Frequency {
            min: Some(clock(1)),
            available: (1..=SPEEDS).map(clock).collect(),
            domain: if core == PROGRAM { cpus(core..=core) } else { cpus(cores.clocked_with(core)) },
            ..highest
        },
    }
}

/// By the rules of the live sensors.
fn classify_as_live(machine: &mut Machine) {
    let evidence = |cpu: &Cpu| Evidence {
        core_type: cpu.core_type.clone(),
        capacity: cpu.capacity,
        fastest: cpu.frequency.as_ref().and_then(|frequency| frequency.max),
    };
    let (classes, from) = classify(&machine.cpus.iter().map(evidence).collect::<Vec<_>>());
    for (cpu, class) in machine.cpus.iter_mut().zip(classes) {
        (cpu.class, cpu.class_from) = (class, from.clone());
    }
}

/// Speeds by duty cycles. `None`: by P-states.
pub fn duty_levels(cores: &Cores) -> Option<Vec<Share>> {
    let has_clocks = cores.classes().iter().any(|class| matches!(class.speeds, Speeds::Clocks(_)));
    let levels = || (1..DUTY_STEPS).map(|duty| Share(duty as f64 / DUTY_STEPS as f64)).collect();
    (!has_clocks).then(levels)
}

/// Power as the scheduler estimates it: each figure is off by up to half, by which its own analysis of sensitivity varies it.
pub fn power(cores: &Cores, seed: u64) -> PowerModel {
    let mut random = Random::new(seed);
    let mut off =
        |milliwatts: u64| Watts(milliwatts as f64 / 1000.0 * (0.5 + random.below(1001) as f64 / 1000.0));
    let core_full = off(cores.core_mw(1, cores.clock(1, SPEEDS), 1_000_000));
    let uncore = off(cores.static_mw());
    PowerModel { core_full, uncore, package_sleep: uncore, ..PowerModel::default() }
}

#[cfg(test)]
mod tests;
