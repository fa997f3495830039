use super::*;

#[test]
fn a_pause_is_to_be_seen() {
    let window: Vec<(f64, f64)> =
        (-50..250).map(|i| (i as f64 * 2.0, if (0..10).contains(&i) { 0.0 } else { 4.0 })).collect();
    let line = steps(&window, -100.0, 500.0);
    assert_eq!((line[19], line[20], line[23], line[24]), (4.0, 0.0, 0.0, 4.0));
    let picture = draw("ip", &[&window, &[]]);
    assert!(!picture.contains("NaN") && picture.contains("<polyline"));
    assert!(!draw("nothing", &[]).contains("NaN"));
}
