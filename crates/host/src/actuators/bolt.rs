//! The kernel's own Bolt (`kernel/` of this repository): CPUs go and come in one operation, all or none.
//!
//! Promises: it is used where the kernel has it *and* its operator has switched it on (`kernel.cpu_bolt`); eft does not
//! turn the switch.

use eft_machine::CpuSet;

use crate::error::{Error, error};
use crate::sensors::Tree;

/// 0 off, 1 on, 2 with processors started ahead.
pub const SWITCH: &str = "proc/sys/kernel/cpu_bolt";
const DIR: &str = "sys/devices/system/cpu/bolt";

/// Whether the kernel has Bolt, switched on or off.
pub fn is_there(tree: &Tree) -> bool {
    tree.exists(SWITCH) && tree.exists(&file(false)) && tree.exists(&file(true))
}

pub fn is_on(tree: &Tree) -> bool {
    is_there(tree) && tree.number::<u32>(SWITCH).is_some_and(|switch| switch != 0)
}

fn file(online: bool) -> String {
    format!("{DIR}/{}", if online { "online" } else { "offline" })
}

/// Switches all of them or none. A CPU that is already in the wanted state does no harm.
pub fn set_online(tree: &Tree, cpus: &CpuSet, online: bool) -> Result<(), Error> {
    if cpus.is_empty() {
        return Ok(());
    }
    let verb = if online { "online" } else { "offline" };
    tree.write(&file(online), &cpus.to_string())
        .map_err(|reason| error!(Refused, "CPU {cpus} does not go {verb} by the kernel's Bolt: {reason}"))
}
