use super::*;
use core::time::Duration;

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
fn a_sample_that_the_application_limits_never_lowers_the_rate() {
    let mut s = Statistics::default();
    let mut sample = |delivered, limited| {
        let interval = Duration::from_millis(100);
        s.on_sample(&Sample { delivered, interval, prior_delivered: 0, limited });
        (s.counted.delivery_rate, s.counted.application_limited)
    };
    assert_eq!(sample(10_000, false), (100_000, 0));
    assert_eq!(sample(1000, true), (100_000, 0));
    assert_eq!(sample(20_000, true), (200_000, 1));
    assert_eq!(sample(5000, false), (50_000, 0));
}

#[test]
fn what_is_delivered_is_counted_in_segments() {
    let mut s = Statistics::default();
    for bytes in [10_000, 1000, 20_000] {
        s.on_delivered(bytes, 1000);
    }
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
