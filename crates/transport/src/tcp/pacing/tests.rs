use super::*;

const MS: Duration = Duration::from_millis(1);

/// When each of `count` segments of 1000 bytes leaves, in microseconds, if the timer is `late` each time.
fn departures(beat: Beat, count: usize, late: Duration) -> Vec<u64> {
    let (mut pace, mut now) = (Pace::default(), Instant::from_millis(1000));
    let mut times = Vec::new();
    for _ in 0..count {
        if let Some(at) = pace.wait(now, beat) {
            now = at + late;
        }
        pace.on_sent(now, beat, 1000);
        times.push(now.as_nanos() / 1000 - 1_000_000);
    }
    times
}

#[test]
fn segments_leave_at_the_rate() {
    // A segment in 10 ms. The time before the first counts for half of one.
    let times = departures(Beat { rate: 100_000, burst: 0 }, 5, Duration::ZERO);
    assert_eq!(times, [0, 5_000, 15_000, 25_000, 35_000]);
}

#[test]
fn a_late_timer_does_not_lower_the_rate() {
    let times = departures(Beat { rate: 100_000, burst: 0 }, 6, 2 * MS);
    assert_eq!(times, [0, 7_000, 17_000, 27_000, 37_000, 47_000]);
    // Segments that take 10 us each, and a timer that is late by 40 of them.
    let times = departures(Beat { rate: 100_000_000, burst: 0 }, 1001, 400 * MS / 1000);
    assert!(times[1000] < 10_500, "{} us for 10 ms of segments", times[1000]);
}

/// As a server is whose CPU others have for a tick of the kernel each time: segments of 2 ms each, and a timer 4 ms late.
#[test]
fn a_timer_that_is_later_than_a_segment_takes_does_not_lower_the_rate() {
    let times = departures(Beat { rate: 500_000, burst: 0 }, 1001, 4 * MS);
    assert!(times[1000] < 2_010_000, "{} us for 2 s of segments", times[1000]);
}

/// Only what waited for the pace makes up for lost time: what waited for acknowledgements or data is no burst then.
#[test]
fn time_in_which_nothing_was_to_be_sent_is_not_made_up_for() {
    let beat = Beat { rate: 1_000_000, burst: 0 };
    let mut pace = Pace::default();
    let mut leaves_at_once = |now: Instant| {
        let mut count = 0;
        while pace.wait(now, beat).is_none() {
            pace.on_sent(now, beat, 1000);
            count += 1;
        }
        count
    };
    assert_eq!(leaves_at_once(Instant::from_millis(1000)), 1);
    assert_eq!(leaves_at_once(Instant::from_millis(1004)), 4, "the timer was late");
    assert_eq!(leaves_at_once(Instant::from_millis(2000)), 6, "by no more than 5 ms");
    pace.on_rest();
    assert_eq!(pace.wait(Instant::from_millis(3000), beat), None);
    pace.on_sent(Instant::from_millis(3000), beat, 1000);
    assert_eq!(pace.wait(Instant::from_millis(3000), beat), Some(Instant(3_000_500_000)));
}

#[test]
fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
    let times = departures(Beat { rate: 1_000_000, burst: 10_000 }, 14, Duration::ZERO);
    assert_eq!(times[..11], [0; 11]);
    assert_eq!(times[11..], [1_000, 2_000, 3_000]);
}

#[test]
fn the_rate_is_that_of_the_window() {
    let window = |cwnd, ssthresh| Congestion { cwnd, ssthresh, ..Congestion::new(1000) };
    assert_eq!(window_rate(&window(10_000, u32::MAX), 0), None);
    assert_eq!(window_rate(&window(10_000, u32::MAX), 100_000), Some(200_000));
    assert_eq!(window_rate(&window(10_000, 10_000), 100_000), Some(120_000));
    assert_eq!(window_rate(&window(10_000, 15_000), 100_000), Some(120_000));
}

#[test]
fn no_rate_and_no_length_overflow() {
    let now = Instant::from_millis(1);
    for (rate, waits) in [(1, true), (u64::MAX - 1, false)] {
        let mut pace = Pace::default();
        pace.on_sent(now, Beat { rate, burst: 0 }, u32::MAX as u64);
        assert_eq!(pace.wait(now, Beat { rate, burst: 0 }).is_some(), waits);
        assert_eq!(pace.wait(now, Beat { rate, burst: u64::MAX }), None);
    }
}
