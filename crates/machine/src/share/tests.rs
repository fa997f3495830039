use super::*;

#[test]
fn a_part_of_no_time_is_a_number() {
    assert_eq!(Share::of(Duration::from_millis(5), Duration::from_millis(20)), Share(0.25));
    assert_eq!(Share::of(Duration::ZERO, Duration::ZERO), Share::NONE);
}

#[test]
fn shares_add_up_and_are_printed_as_numbers() {
    let all: Share = [Share(0.25), Share(0.5)].into_iter().sum();
    assert_eq!((all, all.rest(), all * Share(0.5)), (Share(0.75), Share(0.25), Share(0.375)));
    assert_eq!((format!("{all:.1}"), all.percent()), ("0.8".into(), 75.0));
    assert!(all.is_valid() && !(all + all).is_valid() && !Share(f64::NAN).is_valid());
}
