//! The energy that the packages have used, as one growing number: RAPL counters without their wraps.

use std::fs::File;
use std::os::unix::fs::FileExt;

use eft_machine::Microjoules;

use super::{Tree, power};

struct Counter {
    file: File,
    range: Microjoules,
    last: Microjoules,
    used: Microjoules,
}

/// Package counters kept open.
pub struct EnergySensor {
    packages: Vec<Counter>,
}

impl EnergySensor {
    /// Without RAPL, or without the right to read it, there is no meter.
    pub fn new(tree: &Tree) -> EnergySensor {
        let zones = power::read(tree).unwrap_or_default();
        // `package-N (intel-rapl:N)`: the others are parts of it, or of the platform.
        let packages = zones.iter().filter(|zone| zone.domain.starts_with("package"));
        let open = |zone: &power::Energy| {
            let name = zone.domain.split_once('(')?.1.trim_end_matches(')');
            let file = File::open(tree.path(&format!("sys/class/powercap/{name}/energy_uj"))).ok()?;
            Some(Counter { file, range: zone.range, last: zone.energy, used: Microjoules(0) })
        };
        EnergySensor { packages: packages.filter_map(open).collect() }
    }

    /// Since this sensor was made; `None` without a meter, or if it cannot be read now.
    pub fn read(&mut self) -> Option<Microjoules> {
        if self.packages.is_empty() {
            return None;
        }
        let mut sum = Microjoules(0);
        for counter in &mut self.packages {
            let mut bytes = [0; 32];
            let n = counter.file.read_at(&mut bytes, 0).ok()?;
            let now = Microjoules(std::str::from_utf8(&bytes[..n]).ok()?.trim().parse().ok()?);
            counter.used.0 += power::used(counter.last, now, counter.range)?.0;
            counter.last = now;
            sum.0 += counter.used.0;
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests;
