use super::*;

#[test]
fn a_burst_then_the_rate() {
    let mut l = Limiter::new();
    let taken = |l: &mut Limiter, ms| (0..1000).filter(|_| l.take(Instant::from_millis(ms))).count();
    assert_eq!(taken(&mut l, 10), 50);
    assert_eq!(taken(&mut l, 110), 20);
    assert_eq!(taken(&mut l, 110), 0);
    assert_eq!(taken(&mut l, 60_000), 50);
}
