use super::*;

const SHORT: Duration = Duration::from_micros(499);

#[test]
fn who_was_away_for_long_does_not_yield_for_a_while() {
    let mut crowd = Crowd::default();
    let now = Instant::from_millis(100);
    crowd.yielded(now, now + SHORT, || 0);
    assert!(!crowd.is_there(now + SHORT), "others of the stack take some time, too");
    let back = now + Duration::from_millis(4);
    crowd.yielded(now, back, || 0);
    assert!(crowd.is_there(back));
    assert!(crowd.is_there(back + (PAUSE_MIN - Duration::from_nanos(1))));
    assert!(!crowd.is_there(back + PAUSE_MIN));
}

#[test]
fn tries_that_fail_become_rare() {
    let mut crowd = Crowd::default();
    let mut now = Instant::from_millis(100);
    let mut tries = 0;
    let end = now + Duration::from_secs(60);
    while now < end {
        if crowd.is_there(now) {
            now += Duration::from_millis(1);
            continue;
        }
        tries += 1;
        let back = now + Duration::from_millis(4);
        crowd.yielded(now, back, || 0);
        now = back;
    }
    assert!((60..=66).contains(&tries), "{tries} in a minute: a second between them, after the first few");
}

#[test]
fn after_a_time_without_others_it_begins_with_a_short_pause_again() {
    let mut crowd = Crowd::default();
    let mut now = Instant::from_millis(100);
    for _ in 0..10 {
        now = crowd.until.max(now) + Duration::from_millis(1);
        crowd.yielded(now, now + LONG, || 0);
    }
    assert_eq!(crowd.pause, PAUSE_MAX);
    now = crowd.until + PAUSE_MAX + Duration::from_millis(1);
    crowd.yielded(now, now + LONG, || 0);
    assert_eq!(crowd.pause, PAUSE_MIN);
}

#[test]
fn who_moves_bulk_data_goes_on_yielding() {
    let away = Instant::from_millis(1000);
    let back = away + LONG;
    let after = |bytes: u64| {
        let mut crowd = Crowd::default();
        (crowd.counted, crowd.moved) = (Instant::from_millis(900), 5);
        crowd.yielded(away, back, || 5 + bytes);
        crowd
    };
    // In 100.5 ms.
    let bulk = BULK / 10_000 * 1005;
    assert!(after(0).is_there(back) && after(bulk).is_there(back));
    let mut crowd = after(bulk + 1);
    assert!(!crowd.is_there(back));
    let again = back + LONG;
    crowd.yielded(back, again, || unreachable!("too early to count"));
    assert!(!crowd.is_there(again), "nothing is moved while it is away");
    let later = back + WINDOW;
    crowd.yielded(again, later, || 5 + bulk + 1);
    assert!(crowd.is_there(later), "nothing was moved for long");
}
