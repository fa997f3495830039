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
