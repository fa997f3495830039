//! What the scheduler is told of the machine: its cores as they are, and figures that are off.

use eft_base::random::Random;
use eft_cores::power::PowerModel;
use eft_machine::{Cache, Cpu, CpuId, CpuSet, Frequency, KiloHertz, Machine, Share, Watts};

use super::placement::PROGRAM;
use crate::hardware::clock::DUTY_STEPS;
use crate::hardware::power::Chip;

/// The stack's chip, whose cores are managed, and another one for the program.
pub fn machine(chip: &Chip) -> Machine {
    let stack: CpuSet = (1..=chip.cores as u32).map(CpuId).collect();
    let program = CpuSet::one(CpuId(PROGRAM as u32));
    let cpu = |number: CpuId| {
        let is_managed = stack.contains(number);
        let shared = if is_managed { stack.clone() } else { program.clone() };
        Cpu {
            cpu: number,
            online: true,
            managed: is_managed,
            package: Some(u32::from(!is_managed)),
            core: Some(number.0),
            siblings: CpuSet::one(number),
            last_level_cache: Some(Cache { level: 3, size_kib: None, shared }),
            frequency: Some(Frequency { max: Some(KiloHertz(chip.highest.0)), ..Frequency::default() }),
            ..Cpu::default()
        }
    };
    let online = program.union(&stack);
    Machine { cpus: online.iter().map(cpu).collect(), online, managed: stack, ..Machine::default() }
}

/// Cores are slowed by duty cycles.
pub fn levels() -> Vec<Share> {
    (1..DUTY_STEPS).map(|duty| Share(duty as f64 / DUTY_STEPS as f64)).collect()
}

/// Power as the scheduler estimates it: each figure is off by up to half, by which its own analysis of sensitivity varies it.
pub fn power(chip: &Chip, seed: u64) -> PowerModel {
    let mut random = Random::new(seed);
    let mut off =
        |milliwatts: u64| Watts(milliwatts as f64 / 1000.0 * (0.5 + random.below(1001) as f64 / 1000.0));
    let core_full = off(chip.core_mw(crate::hardware::Clock::full(chip.highest.0), 1_000_000));
    let uncore = off(chip.static_mw());
    PowerModel { core_full, uncore, package_sleep: uncore, ..PowerModel::default() }
}
