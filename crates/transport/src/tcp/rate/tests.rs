use super::*;

const RTT: Duration = Duration::from_millis(100);

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Segments of 1000 bytes leave every 10 ms and come back 100 ms later: 100,000 bytes per second, whatever the number in flight.
#[test]
fn a_steady_flow_is_measured_exactly() {
    let mut rate = Rate::default();
    let mut sent = alloc::collections::VecDeque::new();
    let mut last = None;
    for tick in 0..100u64 {
        let now = ms(1000 + tick * 10);
        while sent.front().is_some_and(|(at, _)| *at + RTT <= now) {
            last = rate.on_ack(now, 1000, sent.pop_front(), RTT);
        }
        let stamp = rate.on_send(now, sent.is_empty());
        sent.push_back((now, stamp));
    }
    assert_eq!(last.expect("measured").bandwidth(), 100_000);
}

/// Acknowledgments that come in a burst show no more than the rate of sending.
#[test]
fn compressed_acknowledgments_do_not_exaggerate() {
    let mut rate = Rate::default();
    let sent: alloc::vec::Vec<_> =
        (0..10u64).map(|i| (ms(1000 + i * 10), rate.on_send(ms(1000 + i * 10), i == 0))).collect();
    let mut best = 0;
    for piece in sent {
        best = rate.on_ack(ms(1200), 1000, Some(piece), RTT).map_or(best, |s| s.bandwidth().max(best));
    }
    assert!(best > 0 && best <= 100_000, "{best}");
}

#[test]
fn what_the_application_limited_is_told() {
    let mut rate = Rate::default();
    let first = rate.on_send(ms(0), true);
    rate.on_limited(1000);
    let second = rate.on_send(ms(10), false);
    assert!(!rate.on_ack(ms(100), 1000, Some((ms(0), first)), RTT).unwrap().limited);
    assert!(rate.is_limited());
    assert!(rate.on_ack(ms(110), 1000, Some((ms(10), second)), RTT).unwrap().limited);
    assert!(!rate.is_limited());
}

#[test]
fn an_interval_that_no_round_trip_fits_into_says_nothing() {
    let mut rate = Rate::default();
    let stamp = rate.on_send(ms(0), true);
    assert_eq!(rate.on_ack(ms(50), 1000, Some((ms(0), stamp)), RTT), None);
    assert_eq!(rate.on_ack(ms(50), 0, None, RTT), None);
    assert_eq!(rate.delivered(), 1000);
}

/// What a predecessor sent has no stamp: its acknowledgment measures nothing, and does not reach into the intervals of what is sent
/// meanwhile.
#[test]
fn what_a_predecessor_sent_is_not_measured() {
    let mut rate = Rate::default();
    let again = rate.on_send(ms(1000), false);
    assert_eq!(rate.on_ack(ms(1050), 5000, Some((Instant::ZERO, Stamp::default())), RTT), None);
    let sample = rate.on_ack(ms(1100), 5000, Some((ms(1000), again)), RTT).expect("measured");
    assert_eq!((sample.delivered, sample.interval), (10_000, RTT));
}
