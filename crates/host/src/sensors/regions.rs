//! What the code of ACPI tables may read of this machine.
//!
//! Promises: reads only, and only where reading changes nothing: memory that firmware keeps its variables and tables in
//! (by `/proc/iomem`; never a device's registers), PCI configuration as sysfs shows it, the clock's battery-backed memory.
//! Ports and the embedded controller are never touched.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use eft_acpi::aml::{Address, Hardware};

use super::Tree;

/// Names in `/proc/iomem` of memory that belongs to firmware.
const FIRMWARE_MEMORY: &[&str] = &["ACPI Non-volatile Storage", "ACPI Tables", "System ROM"];
/// The first bytes of the battery-backed memory are the clock's registers, which the nvram driver does not show.
const CMOS_FIRST: u64 = 14;
const CMOS_PATHS: &[&str] = &["sys/bus/nvmem/devices/cmos_nvram0/nvmem", "dev/nvram"];
/// Extended configuration space.
const CONFIGURATION_MAX: usize = 4096;

pub struct Regions {
    tree: Tree,
    memory: Option<File>,
    /// First and last address.
    readable: Vec<(u64, u64)>,
    configurations: BTreeMap<String, Vec<u8>>,
    cmos: Option<Vec<u8>>,
}

impl Regions {
    pub fn new(tree: &Tree) -> Self {
        let readable = tree.text("proc/iomem").map(|text| firmware_memory(&text)).unwrap_or_default();
        Self {
            memory: File::open(tree.path("dev/mem")).ok(),
            readable,
            configurations: BTreeMap::new(),
            cmos: None,
            tree: tree.clone(),
        }
    }
}

/// To a reader without privilege the kernel shows zeroes as addresses; these are left out.
fn firmware_memory(iomem: &str) -> Vec<(u64, u64)> {
    let range = |line: &str| {
        let (range, name) = line.trim().split_once(" : ")?;
        let (first, last) = range.split_once('-')?;
        let address = |text: &str| u64::from_str_radix(text, 16).ok();
        let (first, last) = (address(first)?, address(last)?);
        (FIRMWARE_MEMORY.contains(&name) && last > first).then_some((first, last))
    };
    iomem.lines().filter_map(range).collect()
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

impl Hardware for Regions {
    fn memory(&mut self, address: u64, bytes: usize) -> Option<u64> {
        let last = address.checked_add(bytes as u64 - 1)?;
        self.readable.iter().find(|(from, to)| *from <= address && last <= *to)?;
        let mut read = [0; 8];
        let read = read.get_mut(..bytes)?;
        self.memory.as_ref()?.read_exact_at(read, address).ok()?;
        Some(little_endian(read))
    }

    fn pci(&mut self, function: Address, offset: u64, bytes: usize) -> Option<u64> {
        let Address { segment, bus, device, function } = function;
        let name = format!("{segment:04x}:{bus:02x}:{device:02x}.{function:x}");
        let path = self.tree.path(&format!("sys/bus/pci/devices/{name}/config"));
        // Without privilege the file ends after its header, and the rest is not known.
        let space = self.configurations.entry(name).or_insert_with(|| {
            let mut space = fs::read(path).unwrap_or_default();
            space.truncate(CONFIGURATION_MAX);
            space
        });
        let start = usize::try_from(offset).ok()?;
        space.get(start..start.checked_add(bytes)?).map(little_endian)
    }

    fn cmos(&mut self, offset: u64) -> Option<u8> {
        let memory = self.cmos.get_or_insert_with(|| {
            CMOS_PATHS.iter().find_map(|path| fs::read(self.tree.path(path)).ok()).unwrap_or_default()
        });
        memory.get(usize::try_from(offset.checked_sub(CMOS_FIRST)?).ok()?).copied()
    }
}

#[cfg(test)]
mod tests;
