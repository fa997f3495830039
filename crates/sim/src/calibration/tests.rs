use super::*;

#[test]
fn a_draw_repeats_and_moves_what_was_assumed_and_nothing_else() {
    let nominal = Calibration::e5520().unwrap();
    let (one, two) = (nominal.draw(3), nominal.draw(3));
    let mut moved = 0;
    for ((table, name, drawn), (_, _, before)) in one.parameters().zip(nominal.parameters()) {
        assert_eq!(drawn.value, two.get(table, name).unwrap());
        assert!(drawn.check().is_ok(), "{table}.{name}");
        assert!(drawn.tag == Tag::Assumed || drawn.value == before.value, "{table}.{name}");
        moved += usize::from(drawn.value != before.value);
    }
    assert!(moved > 40, "{moved}");
}

#[test]
fn a_file_that_hides_something_is_refused() {
    let of = |text: &str| Calibration::parse("x.toml", text).unwrap_err().to_string();
    assert_eq!(
        of("[a]\nb = { value = 1, tag = \"assumed\", source = \"s\" }"),
        "x.toml: a.b has no source or no range"
    );
    assert!(of("[a]\nb = { value = 1, tag = \"guessed\", source = \"s\" }").contains("guessed"));
    assert!(of("[a]\nb = { value = -1, tag = \"measured\", source = \"s\" }").starts_with("x.toml:"));
    let broken = of("[a]\nb = {");
    assert!(broken.starts_with("x.toml: line 2 (`b = {`): ") && !broken.contains('\n'), "{broken}");
}

#[test]
fn a_file_of_another_machine_replaces_what_it_has_and_nothing_else() {
    let nominal = Calibration::e5520().unwrap();
    let text = "[eft]\nwrite_cycles = { value = 777, tag = \"measured\", source = \"s\" }\n\
                [other]\na = { value = 3, tag = \"datasheet\", source = \"s\" }";
    let replaced = nominal.clone().replaced_by(&Calibration::parse("x.toml", text).unwrap());
    assert_eq!((replaced.get("eft", "write_cycles"), replaced.get("other", "a")), (Ok(777), Ok(3)));
    let same = nominal.parameters().filter(|(t, n, p)| replaced.get(t, n) == Ok(p.value)).count();
    assert_eq!(same, nominal.parameters().count() - 1);
}

#[test]
fn the_e5520s_eft_has_the_instructions_that_were_counted() {
    let (own, counted) = (Calibration::e5520().unwrap(), Calibration::epyc_vm().unwrap());
    for name in [
        "tcp_segment",
        "tcp_acknowledgement",
        "tcp_sent",
        "ip_segment",
        "ip_acknowledgement",
        "ip_sent",
        "write",
    ] {
        let name = format!("{name}_cycles");
        assert_eq!(own.parameter("eft", &name).unwrap().tag, Tag::Measured, "{name}");
        assert_eq!(own.get("eft", &name), counted.get("eft", &name));
    }
    // How fast they are executed, and its driver, are the machine's.
    for name in ["message_percent", "stall_percent", "driver_segment_cycles", "wake_cycles"] {
        assert_eq!(own.parameter("eft", name).unwrap().tag, Tag::Assumed, "{name}");
    }
}

#[test]
fn cores_of_classes_are_checked_and_without_tables_of_them_equal() {
    let classes = |file: &Calibration| {
        let cores = file.cores().unwrap();
        cores.classes().iter().map(|class| (class.name, class.cores)).collect::<Vec<_>>()
    };
    assert_eq!(classes(&Calibration::e5520().unwrap()), [("equal", 4)]);
    assert_eq!(classes(&Calibration::core_ultra_245k().unwrap()), [("big", 6), ("little", 8)]);
    assert_eq!(classes(&Calibration::xeon_6710e().unwrap()), [("little", 64)]);
    let arm = Calibration::exynos_5422().unwrap();
    assert_eq!(classes(&arm), [("big", 4), ("little", 4)]);
    let broken = |name: &str, value: u64| {
        let mut broken = arm.clone();
        broken.set("little_cores", name, value);
        broken.cores().unwrap_err().to_string()
    };
    assert_eq!(broken("khz_3", 400_000), "[little_cores] has clocks that do not rise");
    assert_eq!(broken("khz_1", 0), "[little_cores] has clocks that do not rise");
    assert_eq!(broken("work_of_largest_percent", 0), "[little_cores] has no cores, or cores that do nothing");
}

#[test]
fn nothing_of_a_machine_that_was_not_measured_is_called_so() {
    for (name, text) in [
        ("core-ultra-245k.toml", include_str!("../../calibration/core-ultra-245k.toml")),
        ("exynos-5422.toml", include_str!("../../calibration/exynos-5422.toml")),
        ("xeon-6710e.toml", include_str!("../../calibration/xeon-6710e.toml")),
    ] {
        let file = Calibration::parse(name, text).unwrap();
        assert!(file.parameters().all(|(.., parameter)| parameter.tag != Tag::Measured), "{name}");
    }
}

#[test]
fn no_draw_has_little_cores_that_outrun_the_big_ones() {
    for file in [Calibration::core_ultra_245k().unwrap(), Calibration::exynos_5422().unwrap()] {
        for seed in 0..200 {
            let cores = file.draw(seed).cores().unwrap();
            let [big, little] = cores.classes() else { panic!("two classes") };
            assert!(
                big.per_cycle >= little.per_cycle && little.per_cycle > 0,
                "seed {seed}: {big:?} {little:?}"
            );
        }
    }
}
