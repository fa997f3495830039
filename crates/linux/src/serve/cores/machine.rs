//! The machine as policies know it.

use eft_machine::{CpuSet, Machine};

use eft_host::actuators::held;
use eft_host::actuators::session::state_dir;
use eft_host::sensors::{self, Tree};

/// This machine, with what of it is managed and parked. An error says what could not be read.
pub fn machine(managed: &CpuSet) -> Result<Machine, String> {
    let tree = Tree::live();
    let mut machine = sensors::observe(&tree)?;
    let parked = held::load(&state_dir(&tree)).parked();
    for cpu in &mut machine.cpus {
        cpu.managed = managed.contains(cpu.cpu);
        cpu.parked = parked.contains(cpu.cpu);
    }
    machine.managed = managed.clone();
    machine.parked = parked;
    Ok(machine)
}

/// Whether every managed CPU has P-states of its own, so that no duty cycle is needed.
pub fn has_frequencies(machine: &Machine) -> bool {
    machine.cpus.iter().filter(|cpu| machine.managed.contains(cpu.cpu)).all(|cpu| cpu.frequency.is_some())
}
