use super::*;

/// A window of ten segments of 1000 bytes, and this much in flight.
fn block(una: u64, nxt: u64) -> Block {
    let mut block = Block::free(0);
    (block.congestion.cwnd, block.snd_una, block.snd_nxt) = (10_000, una, nxt);
    block
}

#[test]
fn slow_start_reaches_twice_what_was_in_flight() {
    let mut usage = Usage { sent: true, ..Usage::default() };
    usage.update(&block(0, 9000), false);
    // The later acknowledgments of a round trip find less in flight, and nothing new was sent.
    let mut b = block(6000, 9000);
    usage.update(&b, false);
    b.congestion.cwnd = 17_999;
    assert!(usage.may_grow(&b));
    b.congestion.cwnd = 18_000;
    assert!(!usage.may_grow(&b));
}

#[test]
fn beyond_slow_start_only_a_full_window_grows() {
    let mut usage = Usage { sent: true, ..Usage::default() };
    let mut b = block(0, 9000);
    b.congestion.ssthresh = 10_000;
    usage.update(&b, false);
    assert!(!usage.may_grow(&b));
    usage.update(&b, true);
    assert!(usage.may_grow(&b));
}

#[test]
fn a_new_round_trip_is_judged_anew() {
    let mut usage = Usage { sent: true, ..Usage::default() };
    usage.update(&block(0, 10_000), true);
    usage.sent = true;
    usage.update(&block(9000, 10_500), false);
    assert!(usage.is_limited, "the window was full in this one");
    usage.sent = true;
    usage.update(&block(10_000, 10_500), false);
    assert!(!usage.is_limited);
}
