use super::*;

/// Milliseconds and bytes.
fn longest(samples: &[(u64, u64)], limit: u64) -> u64 {
    let samples = samples.iter().map(|(at, bytes)| (Duration::from_millis(*at), *bytes));
    longest_pause(samples, Duration::from_millis(limit)).as_millis() as u64
}

#[test]
fn pauses_are_found_also_at_the_end() {
    assert_eq!(longest(&[(0, 1), (2, 2), (4, 2), (8, 2), (9, 3), (10, 4)], 500), 7);
    assert_eq!(longest(&[(0, 1), (2, 2), (22, 2)], 500), 20);
    assert_eq!(longest(&[], 500), 0);
}

#[test]
fn a_pause_lasts_until_bytes_come_and_one_that_begins_later_is_not_of_the_fault() {
    // A time-out of TCP ends long after the component works again.
    assert_eq!(longest(&[(0, 1), (2, 2), (400, 2), (602, 3), (604, 4)], 500), 600);
    assert_eq!(longest(&[(0, 1), (2, 2), (499, 3), (501, 4), (901, 4)], 500), 497);
    assert_eq!(longest(&[(0, 1), (499, 2), (901, 2)], 500), 499);
}
