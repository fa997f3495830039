//! The machine as the policy sees it.

use std::path::Path;

use eft_machine::{CpuId, CpuSet, Machine, Ppm, SpeedSet};
use eft_vcpu::host::Host;
use eft_vcpu::survey::survey;

use crate::actuators::held::{self, HeldSpeed};
use crate::error::Error;
use crate::sensors::{self, Tree, topology};

/// Classes and groups, with the speeds that `eft cpu` set, and the CPUs of each group.
pub fn host(
    tree: &Tree,
    cpu_state_dir: &Path,
    cpus: Option<&CpuSet>,
) -> Result<(Host, Vec<CpuSet>, Machine), Error> {
    let mut machine = sensors::observe(tree)?;
    let held = held::load(cpu_state_dir);
    let parked = held.parked();
    for cpu in &mut machine.cpus {
        cpu.parked = parked.contains(cpu.cpu);
        cpu.speed_set = held.speeds.get(&cpu.cpu).map(|speed| SpeedSet {
            share: speed.share,
            back_end: speed.back_end.to_string(),
            phase: speed.phase.clone(),
        });
    }
    let usable = cpus.cloned().unwrap_or_else(|| machine.online.clone());
    let (host, sets) = survey(&machine.cpus, &usable).map_err(|e| Error::Invalid(e.to_string()))?;
    Ok((host, sets, machine))
}

/// What may change in the machine while guests run: CPUs come and go, and `eft cpu` parks them or sets their speed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changing {
    online: CpuSet,
    parked: CpuSet,
    speeds: Vec<(CpuId, Ppm)>,
}

/// Reads only two files, so that it can be called often.
pub fn changing(tree: &Tree, cpu_state_dir: &Path) -> Changing {
    let held = held::load(cpu_state_dir);
    let speed = |(cpu, speed): (&CpuId, &HeldSpeed)| (*cpu, Ppm::from(speed.share));
    Changing {
        online: topology::online(tree).unwrap_or_default(),
        parked: held.parked(),
        speeds: held.speeds.iter().map(speed).collect(),
    }
}

/// How an emulated speed of a group's CPUs stretches time on them.
pub fn stretch(machine: &Machine, cpus: &CpuSet) -> Ppm {
    let of = |cpu: &&eft_machine::Cpu| cpus.contains(cpu.cpu);
    let set = machine.cpus.iter().find(of).and_then(|cpu| cpu.speed_set.as_ref());
    set.filter(|set| set.back_end == "emulated")
        .map_or(Ppm::ALL, |set| Ppm((Ppm::ALL.0 as f64 / set.share.0.max(0.01)) as u64))
}
