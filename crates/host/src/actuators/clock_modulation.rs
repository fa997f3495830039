//! Duty-cycle throttling by IA32_CLOCK_MODULATION (Intel SDM volume 3, section 15.8.3): the clock stops for a part of
//! each period, in steps of an eighth. Hardware threads of one core share the slowest setting of both.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use eft_machine::CpuId;

use crate::error::{Error, error};
use crate::journal::{Change, Journal};
use crate::sensors::Tree;

pub const IA32_CLOCK_MODULATION: u64 = 0x19a;
const ENABLE: u64 = 1 << 4;
const DUTY_MASK: u64 = 0b1_1111;
/// Eighths of full speed; this many means off.
pub const FULL: u8 = 8;

/// The processor announces clock modulation by the `acpi` flag (`CPUID.01H:EDX[22]`). The msr driver is also needed.
pub fn is_available(tree: &Tree, cpu: CpuId) -> bool {
    let info = tree.text("proc/cpuinfo").unwrap_or_default();
    let has_flag = info
        .lines()
        .any(|line| line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "acpi"));
    has_flag && info.contains("GenuineIntel") && tree.exists(&format!("dev/cpu/{cpu}/msr"))
}

pub fn read(tree: &Tree, cpu: CpuId, register: u64) -> Result<u64, Error> {
    let path = tree.path(&format!("dev/cpu/{cpu}/msr"));
    let mut bytes = [0; 8];
    let read =
        OpenOptions::new().read(true).open(path).and_then(|file| file.read_exact_at(&mut bytes, register));
    read.map_err(|error| {
        error!(
            Denied,
            "MSR {register:#x} of CPU {cpu} cannot be read ({error}); this needs root and the msr driver"
        )
    })?;
    Ok(u64::from_le_bytes(bytes))
}

pub fn write(tree: &Tree, cpu: CpuId, register: u64, value: u64) -> Result<(), Error> {
    let path = tree.path(&format!("dev/cpu/{cpu}/msr"));
    let written = OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|file| file.write_all_at(&value.to_le_bytes(), register));
    written.map_err(|error| {
        error!(System, "MSR {register:#x} of CPU {cpu} cannot be written ({error}); locked down?")
    })
}

pub fn set(journal: &mut Journal, cpu: CpuId, eighths: u8) -> Result<(), Error> {
    let tree = journal.tree().clone();
    let now = read(&tree, cpu, IA32_CLOCK_MODULATION)?;
    let duty = if (1..FULL).contains(&eighths) { ENABLE | u64::from(eighths) << 1 } else { 0 };
    let new = now & !DUTY_MASK | duty;
    let earlier = journal.entries().iter().find_map(|entry| match entry.change {
        Change::Msr { cpu: known, old, .. } if known == cpu => Some((entry.id, old)),
        _ => None,
    });
    let old = earlier.map_or(now, |(_, first)| first);
    let id = journal.announce(Change::Msr { cpu, register: IA32_CLOCK_MODULATION, old, new })?;
    if let Err(reason) = write(&tree, cpu, IA32_CLOCK_MODULATION, new) {
        journal.done(id)?;
        return Err(reason);
    }
    match earlier {
        Some((earlier, _)) => journal.done(earlier),
        None => Ok(()),
    }
}
