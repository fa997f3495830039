use super::*;

#[test]
fn three_at_once_then_growing_then_at_a_steady_rate() {
    let mut r = Restarts::default();
    let now = Instant::from_millis(1000);
    r.started(now);
    assert_eq!([r.died(now, false), r.died(now, false), r.died(now, false)], [Decision::Now; 3]);
    let mut last = Duration::ZERO;
    for _ in 0..9 {
        let Decision::After(d) = r.died(now, false) else { panic!("it is hurried") };
        assert!(d > last || d == DELAY_MAX);
        last = d;
    }
    assert!(!r.is_hopeless());
    for _ in 0..1000 {
        assert_eq!(r.died(now, false), Decision::After(DELAY_MAX));
    }
    assert!(r.is_hopeless());
    assert_eq!((r.total(), r.in_a_row()), (1012, 1012));
}

#[test]
fn a_minute_of_life_forgives_and_kills_on_purpose_do_not_count() {
    let mut r = Restarts::default();
    for _ in 0..100 {
        assert_eq!(r.died(Instant::ZERO, true), Decision::Now);
    }
    for _ in 0..4 {
        r.died(Instant::ZERO, false);
    }
    assert_eq!(r.died(Instant::ZERO + PROBATION, false), Decision::Now);
}
