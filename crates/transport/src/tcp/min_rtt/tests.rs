use super::*;

fn at(seconds: u64) -> Instant {
    Instant(0) + Duration::from_secs(seconds)
}

#[test]
fn the_shortest_of_five_minutes_counts() {
    let mut shortest = MinRtt::default();
    assert_eq!(shortest.update(at(1), 500, 0), 500);
    assert_eq!(shortest.update(at(2), 900, 500), 500);
    assert_eq!(shortest.update(at(3), 300, 500), 300);
    for seconds in 4..=303 {
        assert_eq!(shortest.update(at(seconds), 700, 300), 300, "after {seconds} s");
    }
    // The path has become longer.
    assert_eq!(shortest.update(at(304), 700, 300), 700);
}

#[test]
fn after_the_shortest_the_next_best_counts() {
    let mut shortest = MinRtt::default();
    shortest.update(at(0), 100, 0);
    shortest.update(at(100), 200, 0);
    shortest.update(at(200), 300, 0);
    assert_eq!(shortest.update(at(301), 900, 0), 200);
    assert_eq!(shortest.update(at(401), 900, 0), 300);
}

#[test]
fn after_a_long_silence_only_the_new_one_counts() {
    let mut shortest = MinRtt::default();
    shortest.update(at(0), 100, 0);
    assert_eq!(shortest.update(at(1000), 5000, 0), 5000);
}

#[test]
fn a_successor_goes_on_from_the_last_value() {
    let mut shortest = MinRtt::default();
    assert_eq!(shortest.update(at(0), 500, 100), 100);
    assert_eq!(shortest.update(at(290), 500, 100), 100);
    assert_eq!(shortest.update(at(301), 500, 100), 500);
}
