use super::*;

#[test]
fn the_table_fits_eighty_columns_with_the_longest_names_and_largest_numbers() {
    let vcpu = |guest: &str, role: &str| VcpuView {
        guest: guest.into(),
        role: role.into(),
        tid: 4_194_304,
        class: Some("fast with busy sibling".into()),
        is_active: true,
        ipc: Some(3.456),
        utilisation: Share::ALL,
        waiting: Share::ALL,
        score: 12.345,
        dealt: vec![1.0],
        fast_share: Share::ALL,
        ran_s: vec![1.0, 3.0],
        moves: 123_456_789,
        cache_moves: 99_999,
        slowdown: Share::ALL,
        ..VcpuView::default()
    };
    let mut vcpus: Vec<VcpuView> =
        (0..96).map(|i| vcpu("a-guest-with-a-very-long-name", &format!("CPU {i}/KVM"))).collect();
    vcpus.push(vcpu("b\x1b[2J", "a program of a long name"));
    let classes = vec![eft_host::guests::session::view::ClassView {
        name: "fast with busy sibling".into(),
        speed: Share::ALL,
        ..Default::default()
    }];
    vcpus[96].is_paused = true;
    let view = View { policy: "amp-vm".into(), vcpus, classes, ..View::default() };
    let table = table(&view, true);
    assert!(table.lines().all(|line| line.chars().count() <= 80 && !line.contains('\x1b')), "{table}");
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows.len(), 3 + 1 + 96 + 2, "{table}");
    assert!(rows[3].starts_with("a-guest-wit~ 96 vCPU") && rows[3].contains(" 25% "), "{table}");
    assert!(rows[4].starts_with("  CPU 0/KVM  4194304 fast ~"), "{table}");
    assert!(rows[100].starts_with("b?[2J        1 vCPU  paused"), "{table}");
    let short = fitted(&view, 24);
    assert!(
        short.contains("96 vCPU") && short.contains("1 vCPU") && short.ends_with("shows all\n"),
        "{short}"
    );
    for height in [0, 1, 4, 24, 102] {
        assert!(fitted(&view, height).lines().count() < height.max(2), "{height}");
    }
    assert_eq!(fitted(&view, 103), table);
}

#[test]
fn names_of_guests_do_no_harm_to_a_page() {
    let vcpu = VcpuView {
        guest: "a\"b\\\nc".into(),
        role: "CPU 0/KVM".into(),
        ran_s: vec![1.5],
        ..VcpuView::default()
    };
    let classes =
        vec![eft_host::guests::session::view::ClassView { name: "fast".into(), ..Default::default() }];
    let page = page(&View { vcpus: vec![vcpu], classes, ..View::default() });
    assert!(
        page.lines().all(|line| line.starts_with("# ") || line.contains("guest=\"a\\\"b\\\\\\nc\"")),
        "{page}"
    );
    assert!(page.contains("class=\"fast\"} 1.5"));
}
