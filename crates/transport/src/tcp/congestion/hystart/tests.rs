use super::*;

/// One round of `acks` acknowledgments of 1000 bytes with this round trip; how much the window grew.
fn round(h: &mut HyStart, una: &mut u64, acks: u64, rtt_us: u32) -> Option<u32> {
    let nxt = *una + acks * 2000;
    let mut grown = 0;
    for _ in 0..acks {
        *una += 1000;
        match h.on_ack(Round { una: *una, nxt, rtt_us: Some(rtt_us) }, 1000) {
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
