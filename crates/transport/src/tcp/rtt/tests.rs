use super::*;

#[test]
fn estimator_follows_rfc_6298() {
    let mut r = Rtt::new();
    assert_eq!(r.rto(), Duration::from_secs(1));
    r.sample(400_000);
    assert_eq!((r.srtt_us, r.rttvar_us), (400_000, 200_000));
    assert_eq!(r.rto(), Duration::from_millis(1200));
    r.sample(800_000);
    // rttvar = 3/4·200 + 1/4·400 = 250 ms, srtt = 7/8·400 + 1/8·800 = 450 ms.
    assert_eq!((r.srtt_us, r.rttvar_us), (450_000, 250_000));
    assert_eq!(r.rto(), Duration::from_millis(1450));
    assert_eq!(r.backed_off(2), Duration::from_millis(5800));
    assert_eq!(r.backed_off(31), Duration::from_secs(120));
}

/// However steady the path, an acknowledgement may be delayed at its end.
#[test]
fn a_steady_path_leaves_time_for_a_delayed_acknowledgement() {
    for us in [80, 200_000] {
        let mut r = Rtt::new();
        for _ in 0..50 {
            r.sample(us);
        }
        assert_eq!(r.rto(), Duration::from_micros(200_000 + us as u64));
    }
}
