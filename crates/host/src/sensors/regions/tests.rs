use super::*;

fn tree(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let tree = Tree::at(dir.path());
    (dir, tree)
}

#[test]
fn only_firmwares_memory_is_read() {
    let iomem = "00000000-0000001f : System RAM\n00000020-0000002f : ACPI Non-volatile Storage\n  \
                     00000030-0000003f : ACPI Tables\n00000040-0000004f : Reserved\n";
    let bytes: Vec<u8> = (0..0x50).collect();
    let (_dir, tree) = tree(&[("proc/iomem", iomem.as_bytes()), ("dev/mem", &bytes)]);
    let mut regions = Regions::new(&tree);
    assert_eq!(regions.memory(0x20, 4), Some(0x2322_2120));
    assert_eq!(regions.memory(0x38, 8), Some(0x3f3e_3d3c_3b3a_3938));
    for outside in [0x1f, 0x10, 0x2f, 0x3e, 0x40, u64::MAX] {
        assert_eq!(regions.memory(outside, 4), None, "{outside:#x}");
    }
    let hidden = "00000000-00000000 : ACPI Non-volatile Storage\n";
    assert!(firmware_memory(hidden).is_empty());
}

#[test]
fn pci_configuration_is_read_as_far_as_it_is_shown() {
    let header: Vec<u8> = (0..64).collect();
    let (_dir, tree) = tree(&[("sys/bus/pci/devices/0000:00:1f.3/config", &header)]);
    let mut regions = Regions::new(&tree);
    let function = Address { segment: 0, bus: 0, device: 0x1f, function: 3 };
    assert_eq!(regions.pci(function, 2, 2), Some(0x0302));
    assert_eq!(regions.pci(function, 62, 4), None);
    assert_eq!(regions.pci(function, u64::MAX, 4), None);
    assert_eq!(regions.pci(Address { device: 1, ..function }, 0, 4), None);
}

#[test]
fn the_clocks_own_registers_are_left_alone() {
    let (_dir, tree) = tree(&[("dev/nvram", &[7, 8, 9])]);
    let mut regions = Regions::new(&tree);
    assert_eq!((regions.cmos(14), regions.cmos(16)), (Some(7), Some(9)));
    assert_eq!((regions.cmos(13), regions.cmos(17), regions.cmos(u64::MAX)), (None, None, None));
}
