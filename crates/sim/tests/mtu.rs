//! Links that take smaller packets than both ends believe, and swallow larger ones without a word.

use eft_component::DeviceInfo;
use eft_messages::ComponentId;
use eft_sim::simulation::Settings;
use eft_sim::{Conditions, Faults, Simulation};
use std::time::Duration;

fn settings(mtu: u16, mode: &'static str) -> Settings {
    Settings {
        conditions: Conditions { delay: Duration::from_millis(5), mtu, cut: true, ..Conditions::default() },
        transport: vec![("mtu-probing", mode)],
        ..Settings::default()
    }
}

/// A stream of two megabytes each way.
fn begin(seed: u64, settings: Settings) -> Simulation {
    let mut s = Simulation::new(seed, settings);
    s.serve(2_000_000, 2_000_000, 0);
    s.stream(2_000_000, 2_000_000, 0);
    s
}

fn transfer(seed: u64, settings: Settings) -> Simulation {
    let mut s = begin(seed, settings);
    s.run(Duration::from_secs(600), |s| s.applications.iter().all(|a| a.streams.len() == 1 && a.is_done()));
    s
}

#[test]
fn a_black_hole_is_found_and_the_stream_goes_on() {
    for seed in 0..6 {
        let s = transfer(seed, Settings { ipv6: seed % 2 == 1, ..settings(1400, "blackhole") });
        let total = |name| s.total(ComponentId::TCP, name);
        assert_eq!(total("mtu_black_holes"), 2, "seed {seed}: one for each end");
        let (tried, passed) = (total("mtu_probes"), total("mtu_probes_passed"));
        assert!(passed >= 4 && tried > passed, "seed {seed}: {passed} of {tried} passed");
        assert!(total("retransmit_timeouts") <= 8, "seed {seed}: a lost probe was found by a timeout");
    }
}

#[test]
fn a_search_from_the_beginning_needs_no_timeout() {
    for seed in 10..16 {
        for mtu in [1100, 1300, 1492] {
            let s = transfer(seed, settings(mtu, "always"));
            let total = |name| s.total(ComponentId::TCP, name);
            let counts = s.stacks[0]
                .counters(ComponentId::TCP, &["mtu_probes", "mtu_probes_passed", "fast_recoveries"]);
            assert_eq!(total("retransmit_timeouts"), 0, "seed {seed}, MTU {mtu}: {counts}");
            assert_eq!(
                total("fast_recoveries"),
                0,
                "seed {seed}, MTU {mtu}: a lost probe reduced the window: {counts}"
            );
            assert!(total("mtu_probes_passed") > 0 || mtu == 1100, "seed {seed}, MTU {mtu}: {counts}");
        }
    }
}

#[test]
fn a_good_path_is_used_in_full() {
    let s = transfer(20, settings(0, "always"));
    let total = |name| s.total(ComponentId::TCP, name);
    assert!(total("mtu_probes") >= 12, "six for each end");
    assert_eq!(total("mtu_probes"), total("mtu_probes_passed"));
    assert_eq!(total("retransmitted_segments"), 0);
}

#[test]
fn without_probing_nothing_passes() {
    let mut s = begin(30, settings(1400, "off"));
    let end = s.now + Duration::from_secs(60);
    s.run(Duration::from_secs(61), |s| s.now > end);
    assert!(!s.applications[0].is_done());
    assert_eq!(s.total(ComponentId::TCP, "mtu_black_holes"), 0);
}

#[test]
fn tcp_may_die_while_it_searches() {
    let mut deaths = 0;
    for seed in 40..48 {
        let faults = Faults {
            peers: vec![ComponentId::TCP],
            crash: 0.001,
            downtime: Duration::from_millis(2),
            one_at_a_time: true,
            ..Faults::default()
        };
        let device = DeviceInfo { segment_max: 0, ..Settings::default().device };
        let s = transfer(seed, Settings { device, faults, ..settings(1300, "blackhole") });
        deaths += s.stacks[0].crashes + s.stacks[1].crashes;
    }
    assert!(deaths > 8, "only {deaths} deaths");
}
