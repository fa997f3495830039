use super::*;

fn acked(bytes: u32, ms: u64) -> Acked {
    Acked { bytes, mss: 1000, now: Instant::from_millis(ms), srtt_us: 100_000 }
}

#[test]
fn initial_window_of_rfc_6928() {
    assert_eq!(initial_window(1460), 14600);
    assert_eq!(initial_window(536), 5360);
    assert_eq!(initial_window(9000), 18000);
}

#[test]
fn slow_start_doubles_and_stops_at_the_threshold() {
    let mut c = Congestion::new(1000);
    c.algorithm = NEWRENO;
    c.ssthresh = 25_000;
    c.on_ack(acked(10_000, 0));
    assert_eq!(c.cwnd, 20_000);
    c.on_ack(acked(5_000, 0));
    assert_eq!(c.cwnd, 25_000);
    // One window of acknowledgements in avoidance: one segment more.
    c.on_ack(acked(25_000, 0));
    assert_eq!(c.cwnd, 26_000);
}

#[test]
fn timeout_falls_to_one_segment_and_repeats_keep_the_threshold() {
    let mut c = Congestion::new(1000);
    c.algorithm = NEWRENO;
    c.cwnd = 40_000;
    c.on_timeout(40_000, 1000, true);
    assert_eq!((c.cwnd, c.ssthresh), (1000, 20_000));
    c.on_timeout(1000, 1000, false);
    assert_eq!((c.cwnd, c.ssthresh), (1000, 20_000));
}

#[test]
fn a_silence_halves_the_window_for_each_timeout_but_the_first() {
    let rto = Duration::from_millis(200);
    for (ms, cwnd) in
        [(201, 80_000), (400, 80_000), (401, 40_000), (601, 20_000), (801, 10_000), (90_000, 10_000)]
    {
        let mut c = Congestion::new(1000);
        (c.cwnd, c.ssthresh) = (160_000, 100_000);
        c.on_idle(initial_window(1000), Duration::from_millis(ms), rto);
        assert_eq!((c.cwnd, c.ssthresh), (cwnd, 120_000), "{ms} ms");
    }
    // Less than the restart window stays, and a threshold that is none yet, too.
    let mut c = Congestion::new(1000);
    c.cwnd = 4000;
    c.on_idle(initial_window(1000), Duration::from_secs(9), rto);
    assert_eq!((c.cwnd, c.ssthresh), (4000, UNLIMITED));
}
