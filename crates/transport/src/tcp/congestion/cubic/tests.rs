use super::*;

const MSS: u32 = 1000;

/// One round trip of acknowledgements for a full window.
fn round(c: &mut Congestion, now: Instant, rtt_ms: u64) {
    let mut left = c.cwnd;
    while left > 0 {
        let bytes = left.min(2 * MSS);
        left -= bytes;
        on_ack(c, Acked { bytes, mss: MSS, now, srtt_us: rtt_ms as u32 * 1000 });
    }
}

#[test]
fn the_window_returns_to_its_maximum_after_k_seconds() {
    let mut c = Congestion::new(MSS);
    c.cwnd = 1000 * MSS;
    c.on_loss(c.cwnd, MSS);
    assert_eq!(c.cwnd, 700 * MSS);
    // K = cbrt(W_max (1 - β) / C) = cbrt(1000 × 0.3 / 0.4) = 9.086 s.
    let (mut now, mut reached) = (1_000u64, None);
    let start = now;
    while reached.is_none() && now < 60_000 {
        round(&mut c, Instant::from_millis(now), 100);
        now += 100;
        if c.cwnd >= 995 * MSS {
            reached = Some(now - start);
        }
    }
    let ms = reached.expect("CUBIC never came back to its maximum");
    assert!((6_500..=9_500).contains(&ms), "{ms} ms");
}

#[test]
fn growth_is_concave_then_convex() {
    let mut c = Congestion::new(MSS);
    c.cwnd = 1000 * MSS;
    c.on_loss(c.cwnd, MSS);
    let mut growth = alloc::vec::Vec::new();
    for i in 0..200u64 {
        let before = c.cwnd;
        round(&mut c, Instant::from_millis(1_000 + i * 100), 100);
        growth.push(c.cwnd - before);
    }
    assert!(growth[5] > growth[85], "{growth:?}");
    assert!(growth[170] > growth[85], "{growth:?}");
}

#[test]
fn fast_convergence_gives_way() {
    let mut cubic = Cubic::new();
    cubic.reduced(1000 * MSS, MSS);
    assert_eq!(cubic.w_max, 1000.0);
    cubic.reduced(800 * MSS, MSS);
    assert_eq!(cubic.w_max, 800.0 * 0.85);
}

#[test]
fn a_small_window_grows_at_least_as_aimd() {
    // §4.3: in the region where CUBIC is slow, W_est governs.
    let mut c = Congestion::new(MSS);
    c.cwnd = 10 * MSS;
    c.on_loss(c.cwnd, MSS);
    let start = c.cwnd;
    for i in 0..20u64 {
        round(&mut c, Instant::from_millis(1_000 + i), 1);
    }
    // 20 round trips at 0.53 segments (1 beyond the old window).
    assert!(c.cwnd >= start + 8 * MSS, "{}", c.cwnd);
}

#[test]
fn time_without_use_does_not_count() {
    let windows = [0, 30_000].map(|pause_ms| {
        let mut c = Congestion::new(MSS);
        c.cwnd = 1000 * MSS;
        c.on_loss(c.cwnd, MSS);
        for i in 0..20u64 {
            round(&mut c, Instant::from_millis(1_000 + i * 100), 100);
        }
        c.on_limited(Duration::from_millis(pause_ms));
        round(&mut c, Instant::from_millis(3_000 + pause_ms), 100);
        c.cwnd
    });
    assert_eq!(windows[0], windows[1]);
}

#[test]
fn a_window_that_never_saw_a_loss_grows_by_a_twentieth() {
    let mut c = Congestion::new(MSS);
    c.cwnd = 100 * MSS;
    c.end_slow_start();
    round(&mut c, Instant::from_millis(1_000), 100);
    assert_eq!(c.cwnd, 105 * MSS);
    // After a loss the equations of the RFC hold alone: K = cbrt(105 × 0.3 / 0.4) = 4.3 s away from the old window.
    c.on_loss(c.cwnd, MSS);
    for _ in 0..60 {
        round(&mut c, Instant::from_millis(5_300), 1);
    }
    assert!(c.cwnd <= 110 * MSS, "{}", c.cwnd);
}
