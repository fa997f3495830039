use super::*;
use std::panic::catch_unwind;

#[test]
fn a_clock_that_went_wrong_ends_a_process_unless_it_is_unprotected() {
    let before = now();
    // As if the last reading had been one of a time ten seconds from now.
    let mut ahead = Watch::new();
    let future = read() + 10_000_000_000;
    ahead.compare(future, future, future).unwrap();
    WATCH.set(ahead);
    assert!(catch_unwind(now).is_err());
    // No other test of this program depends on it.
    protection::switch_off();
    let after = now();
    assert!(after > before && after.0 < future);
}
