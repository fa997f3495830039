use super::*;

const MSS: u64 = 1000;

/// The first example of RFC 9937: 20 segments in flight, the first is lost, the window goes to 14 (CUBIC's 0.7).
#[test]
fn sending_is_spread_over_the_recovery() {
    let mut prr = Prr::new(20 * MSS);
    let mut sent = 0;
    let mut pipe = 20 * MSS;
    for n in 1..=20u64 {
        pipe -= MSS;
        let window = prr.window(Evidence { delivered: MSS, pipe, is_good: false }, 14 * MSS, MSS);
        let now = (window - pipe) / MSS * MSS;
        prr.on_sent(now);
        (sent, pipe) = (sent + now, pipe + now);
        // Seven segments for ten that arrived, at every time.
        assert!(sent.abs_diff(n * 700) <= 2 * MSS, "{n}: {sent}");
    }
    assert_eq!(pipe, 14 * MSS);
}

#[test]
fn after_heavy_loss_the_window_grows_to_the_threshold_only_by_good_acknowledgments() {
    for (is_good, grown) in [(false, 1), (true, 2)] {
        let mut prr = Prr::new(20 * MSS);
        // Most is lost: the bytes in the network are below the threshold.
        let window = prr.window(Evidence { delivered: MSS, pipe: 4 * MSS, is_good }, 10 * MSS, MSS);
        assert_eq!(window, (4 + grown) * MSS);
    }
    let mut prr = Prr::new(20 * MSS);
    let window = prr.window(Evidence { delivered: 30 * MSS, pipe: 9 * MSS, is_good: true }, 10 * MSS, MSS);
    assert_eq!(window, 10 * MSS, "never beyond the threshold");
}

/// With more lost than the threshold allows in flight, each segment that arrives lets one go: the sum of what was sent
/// before does not hold it back (unlike RFC 6937).
#[test]
fn what_arrives_is_replaced_at_once() {
    let mut prr = Prr::new(10 * MSS);
    // The timer found seven of ten lost.
    assert_eq!(prr.window(Evidence { delivered: 0, pipe: 2 * MSS, is_good: false }, 7 * MSS, MSS), 3 * MSS);
    prr.on_sent(MSS);
    for _ in 0..3 {
        let window = prr.window(Evidence { delivered: MSS, pipe: 3 * MSS, is_good: false }, 7 * MSS, MSS);
        assert_eq!(window, 4 * MSS);
        prr.on_sent(MSS);
    }
}
