use super::*;

#[test]
fn a_ratio_is_rounded_down_and_does_not_overflow() {
    assert_eq!((Ppm::of(1, 3), Ppm::of(7, 0)), (Ppm(333_333), Ppm::NONE));
    assert_eq!((Ppm::of(u64::MAX, u64::MAX), Ppm::of(u64::MAX, 1)), (Ppm::ALL, Ppm::MAX));
    assert_eq!(Ppm::of(u64::MAX / 2, u64::MAX - 1), Ppm(500_000));
    assert_eq!(Ppm::of_time(Duration::from_millis(5), Duration::from_millis(20)), Ppm(250_000));
}

#[test]
fn a_part_of_a_quantity_is_never_more_than_all_of_it() {
    assert_eq!((Ppm(250_000).part_of(10), Ppm::ALL.part_of(u64::MAX)), (2, u64::MAX));
    assert_eq!((Ppm::MAX.part_of(u64::MAX), Ppm::NONE.part_of(u64::MAX)), (u64::MAX, 0));
    assert_eq!(Ppm(500_000) * Ppm(500_000), Ppm(250_000));
    assert_eq!(Ppm(50_000).part_of_time(Duration::from_millis(20)), Duration::from_millis(1));
}

#[test]
fn percents_and_shares_are_the_same_ratio() {
    assert_eq!((Ppm::from_percent(30), Ppm::from(Share(0.3))), (Ppm(300_000), Ppm(300_000)));
    assert_eq!((Ppm(250_000).share(), Ppm::from(Share(-1.0))), (Share(0.25), Ppm::NONE));
}
