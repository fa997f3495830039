use super::*;

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

#[test]
fn time_is_counted_by_what_limits() {
    let mut s = Statistics::default();
    s.set_busy(at(1000), Busy::Sending);
    s.set_busy(at(1010), Busy::Window);
    s.set_busy(at(1030), Busy::Ring);
    s.set_busy(at(1070), Busy::Not);
    s.set_busy(at(9000), Busy::Sending);
    s.settle(at(9001));
    let c = s.counted;
    assert_eq!((c.busy_us, c.window_limited_us, c.ring_limited_us), (71_000, 20_000, 40_000));
}

#[test]
fn a_round_that_the_application_limits_never_lowers_the_rate() {
    let mut s = Statistics::default();
    s.begin_round(at(0), 10_000);
    s.on_delivered(10_000, 1000, false);
    s.end_round(at(100), 9_999, 20_000, 0);
    assert_eq!(s.counted.delivery_rate, 0, "the round goes on");
    s.end_round(at(100), 10_000, 11_000, 0);
    assert_eq!((s.counted.delivery_rate, s.counted.application_limited), (100_000, 0));
    s.on_delivered(1000, 1000, true);
    s.end_round(at(200), 11_000, 31_000, 0);
    assert_eq!((s.counted.delivery_rate, s.counted.application_limited), (100_000, 0));
    s.on_delivered(20_000, 1000, true);
    s.end_round(at(300), 31_000, 31_000, 0);
    assert_eq!((s.counted.delivery_rate, s.counted.application_limited), (200_000, 1));
    assert_eq!(s.counted.delivered, 31);
}

#[test]
fn a_recovery_under_way_is_counted_too() {
    let mut s = Statistics::default();
    s.on_timeout(at(100), true);
    s.on_timeout(at(300), false);
    s.settle(at(400));
    assert_eq!(s.counted.timeout_recovery_ms, 300);
    s.on_recovered(at(450));
    s.on_recovered(at(900));
    let c = s.counted;
    assert_eq!((c.timeouts_total, c.timeout_recoveries, c.timeout_recovery_ms), (2, 1, 350));
}
