use super::*;

#[test]
fn a_factor_is_a_number_behind_the_last_colon() {
    let trace = |file: &str, factor_milli| Ok(Asked::Trace { file: file.into(), factor_milli });
    assert_eq!("trace:a.trace".parse(), trace("a.trace", 1000));
    assert_eq!("trace:a.trace:2.5".parse(), trace("a.trace", 2500));
    assert_eq!("trace:a:b".parse(), trace("a:b", 1000));
    for bad in ["trace:", "trace::2", "trace:a:0", "trace:a:-1", "trace:a:nan", "trace:a:inf", "trace:a:1e9"]
    {
        assert!(bad.parse::<Asked>().is_err(), "{bad}");
    }
}

#[test]
fn a_bad_trace_is_refused_with_its_file_and_line() {
    let load = |file: &str| format!("trace:{file}").parse::<Asked>().unwrap().offered(1);
    let folder = std::env::temp_dir().join(format!("eft-sim-trace-{}", std::process::id()));
    std::fs::write(&folder, "eft-trace 1\n0 0 open\nnever\n").unwrap();
    let error = format!("{:#}", load(folder.to_str().unwrap()).unwrap_err());
    std::fs::remove_file(&folder).unwrap();
    assert!(error.starts_with(folder.to_str().unwrap()), "{error}");
    assert!(error.contains(": line 3: a time is a number"), "{error}");
    assert!(format!("{:#}", load("/").unwrap_err()).contains("a trace is a file of at most"));
}

#[test]
fn a_mix_is_of_several_groups_within_their_bounds_and_a_seed_repeats_it() {
    assert_eq!("mix".parse(), Ok(Asked::Mix));
    let mut sizes = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let groups = mix(seed);
        assert_eq!(groups, mix(seed));
        assert!(GROUPS.contains(&(groups.len() as u64)), "seed {seed}: {groups:?}");
        assert!(
            groups.iter().map(|group| group.clients).sum::<usize>() <= CLIENTS_MAX,
            "seed {seed}: {groups:?}"
        );
        for group in &groups {
            assert!(
                group.clients >= 1 && ANSWER_BYTES.contains(&group.answer_bytes),
                "seed {seed}: {groups:?}"
            );
            assert!((1..=REQUESTS_MAX).contains(&group.requests), "seed {seed}: {groups:?}");
            sizes.insert(group.answer_bytes.ilog10());
        }
    }
    assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [2, 3, 4, 5, 6], "sizes of all orders");
}
