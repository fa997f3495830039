#[test]
fn the_scheduler_finds_all_its_indicators() {
    assert_eq!(eft_linux::stack_sensor::missing_counters(super::counters_of), []);
}
