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
mod tests {
    use super::*;

    #[test]
    fn a_wrap_goes_on_growing_and_parts_are_not_counted_twice() {
        let dir = tempfile::tempdir().unwrap();
        let zone = |name: &str| {
            let path = dir.path().join("sys/class/powercap").join(name);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let (package, core) = (zone("intel-rapl:0"), zone("intel-rapl:0:0"));
        for (path, name, energy) in [(&package, "package-0", 900), (&core, "core", 500)] {
            std::fs::write(path.join("name"), name).unwrap();
            std::fs::write(path.join("energy_uj"), format!("{energy}\n")).unwrap();
            std::fs::write(path.join("max_energy_range_uj"), "1000\n").unwrap();
        }
        let mut sensor = EnergySensor::new(&Tree::at(dir.path()));
        assert_eq!(sensor.read(), Some(Microjoules(0)));
        for (counter, used) in [(950, 50), (20, 120), (30, 130)] {
            std::fs::write(package.join("energy_uj"), format!("{counter}\n")).unwrap();
            assert_eq!(sensor.read(), Some(Microjoules(used)));
        }
        std::fs::remove_dir_all(dir.path().join("sys")).unwrap();
        assert_eq!(EnergySensor::new(&Tree::at(dir.path())).read(), None);
    }
}
