use super::*;

/// One round of `acks` acknowledgments of 1000 bytes with this round trip; how much the window grew.
fn round(h: &mut HyStart, una: &mut u64, acks: u64, rtt_us: u32) -> Option<u32> {
    let nxt = *una + acks * 2000;
    let mut grown = 0;
    for _ in 0..acks {
        *una += 1000;
        let round = Round { una: *una, nxt, rtt_us: Some(rtt_us), min_rtt_us: 0, cwnd: 100 };
        match h.on_ack(SlowStart::HyStartPlusPlus, round, 1000) {
            Growth::By(bytes) => grown += bytes,
            Growth::Over => return None,
        }
    }
    *una = nxt;
    Some(grown)
}

#[test]
fn steady_round_trips_double_the_window() {
    let (mut h, mut una) = (HyStart::default(), 0);
    for acks in [10, 20, 40, 80] {
        assert_eq!(round(&mut h, &mut una, acks, 50_000), Some(acks as u32 * 1000));
    }
}

#[test]
fn longer_round_trips_slow_the_growth_and_end_it_after_five_rounds() {
    let (mut h, mut una) = (HyStart::default(), 0);
    round(&mut h, &mut una, 20, 50_000);
    // An eighth more after eight samples.
    let slowed = round(&mut h, &mut una, 40, 56_250).unwrap();
    assert_eq!(slowed, 7 * 1000 + 33 * 250);
    let mut rounds = 0;
    while round(&mut h, &mut una, 40, 60_000).is_some() {
        rounds += 1;
        assert!(rounds < 10);
    }
    assert_eq!(rounds, 5);
}

#[test]
fn a_passing_delay_is_forgotten() {
    let (mut h, mut una) = (HyStart::default(), 0);
    round(&mut h, &mut una, 20, 50_000);
    round(&mut h, &mut una, 40, 60_000);
    assert_eq!(round(&mut h, &mut una, 40, 50_000), Some(7 * 250 + 33 * 1000));
}

#[test]
fn few_samples_and_short_delays_decide_nothing() {
    let (mut h, mut una) = (HyStart::default(), 0);
    round(&mut h, &mut una, 20, 1_000);
    assert_eq!(round(&mut h, &mut una, 7, 90_000), Some(7_000));
    let (mut h, mut una) = (HyStart::default(), 0);
    round(&mut h, &mut una, 20, 1_000);
    // 4 ms more at least.
    assert_eq!(round(&mut h, &mut una, 40, 4_900), Some(40_000));
}

/// How many acknowledgments with this round trip end slow start as Linux does, in a window of this many segments.
fn ending(cwnd: u32, min_rtt_us: u32, rtt_us: u32) -> Option<usize> {
    let mut h = HyStart::default();
    (1..=100).find(|n| {
        let round = Round { una: 1000 * *n as u64, nxt: 200_000, rtt_us: Some(rtt_us), min_rtt_us, cwnd };
        h.on_ack(SlowStart::HyStart, round, 1000) == Growth::Over
    })
}

#[test]
fn as_linux_has_it_slow_start_ends_with_the_ninth_long_round_trip() {
    assert_eq!(ending(20, 200_000, 240_000), Some(9));
    assert_eq!(ending(20, 200_000, 216_000), None, "an eighth, and at most 16 ms");
    assert_eq!(ending(15, 200_000, 240_000), None, "the window is small");
    assert_eq!(ending(16, 1_000, 5_000), None, "4 ms more at least");
}

#[test]
fn as_linux_has_it_one_short_round_trip_lets_a_round_go_on() {
    let mut h = HyStart::default();
    for n in 1..=40u64 {
        let rtt_us = if n == 3 { 100_000 } else { 150_000 };
        let round =
            Round { una: 1000 * n, nxt: 100_000, rtt_us: Some(rtt_us), min_rtt_us: 100_000, cwnd: 40 };
        assert_eq!(h.on_ack(SlowStart::HyStart, round, 1000), Growth::By(1000));
    }
}

#[test]
fn the_kinds_of_slow_start_have_names() {
    for kind in [SlowStart::HyStartPlusPlus, SlowStart::HyStart] {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert!("classic".parse::<SlowStart>().is_err());
}
