use super::*;

#[test]
fn a_clock_that_went_back_is_an_error_to_a_checked_difference_and_zero_to_a_saturating_one() {
    let (early, late) = (Instant::from_millis(1), Instant::from_millis(3));
    assert_eq!(late.checked_since(early), Some(Duration::from_millis(2)));
    assert_eq!(early.checked_since(late), None);
    assert_eq!(early - late, Duration::ZERO);
    assert_eq!(Instant(u64::MAX - 1) + Duration::from_secs(1), Instant(u64::MAX));
}

#[test]
fn a_duration_too_long_for_a_counter_becomes_the_longest_that_it_holds() {
    assert_eq!(nanos(Duration::from_micros(7)), 7_000);
    assert_eq!(nanos(Duration::MAX), u64::MAX);
    assert_eq!(TimeDelta::from(Duration::from_micros(7)), TimeDelta(7_000));
    assert_eq!(TimeDelta::from(Duration::MAX), TimeDelta(i64::MAX));
}
