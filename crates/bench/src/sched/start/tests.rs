use super::*;

#[test]
fn a_rise_is_timed() {
    // 1 a millisecond for 200 ms, then 10.
    let bytes = |ms: u64| if ms < 200 { ms } else { 200 + (ms - 200) * 10 };
    let series: Vec<(f64, u64)> = (0..1000).map(|ms| (ms as f64 / 1e3, bytes(ms))).collect();
    assert!((steady(&series) - 10_000.0).abs() < 1.0);
    let reached = time_to(&series, 9_000.0).unwrap();
    assert!((0.24..=0.25).contains(&reached), "{reached}");
    assert_eq!(time_to(&series, 11_000.0), None);
    assert_eq!((time_to(&[], 1.0), steady(&[])), (None, 0.0));
}
