use super::*;

const CHIP: Chip = Chip { lowest: (1_000_000, 20_000), highest: (2_000_000, 55_000), cores: 4 };

#[test]
fn the_ends_are_what_the_table_says_and_a_duty_cycle_saves_no_voltage() {
    assert_eq!((CHIP.busy_mw(1_000_000), CHIP.busy_mw(2_000_000)), (20_000, 55_000));
    let (slowed, throttled) = (Clock::full(1_000_000), Clock::throttled(2_000_000, 4));
    assert_eq!(slowed.effective_khz(), throttled.effective_khz());
    assert!(CHIP.core_mw(slowed, 1_000_000) * 3 < CHIP.core_mw(throttled, 1_000_000));
    assert_eq!(CHIP.core_mw(slowed, 0), 0);
}
