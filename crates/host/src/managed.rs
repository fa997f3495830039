//! The machine as policies see it.

use eft_machine::{CpuSet, Machine};

use crate::actuators::held;
use crate::actuators::session::state_dir;
use crate::error::Error;
use crate::sensors::{self, Tree};

/// This machine, with its managed and parked CPUs. An error says what could not be read.
pub fn machine(managed: &CpuSet) -> Result<Machine, Error> {
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
