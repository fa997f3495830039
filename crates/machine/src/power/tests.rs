use super::*;

#[test]
fn a_meter_that_went_back_tells_no_power() {
    let (before, after) = (Microjoules(1_000_000), Microjoules(1_500_000));
    let used = after.checked_since(before).unwrap();
    assert_eq!(used.over(Duration::from_millis(50)), Watts(10.0));
    assert_eq!(before.checked_since(after), None);
}

#[test]
fn power_is_printed_with_its_unit_and_adds_up() {
    let all: Watts = [Watts(1.25), Watts(0.5)].into_iter().sum();
    assert_eq!((format!("{all:.1}"), all / Watts(0.875)), ("1.8 W".into(), 2.0));
}
