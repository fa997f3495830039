use super::*;

#[test]
fn pauses_are_found_also_at_the_end() {
    let at = |ms, bytes| (Duration::from_millis(ms), bytes);
    assert_eq!(longest_pause(&[at(0, 1), at(2, 2), at(4, 2), at(8, 2), at(9, 3), at(10, 4)]), 7.0);
    assert_eq!(longest_pause(&[at(0, 1), at(2, 2), at(22, 2)]), 20.0);
    assert_eq!(longest_pause(&[]), 0.0);
}
