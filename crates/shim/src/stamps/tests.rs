use super::*;

#[test]
fn flags_of_no_effect_are_refused() {
    for good in
        [0, SENDS | SOFTWARE | OPT_ID, stamping::RX_SOFTWARE | SOFTWARE, OPT_ID | OPT_ID_TCP, HARDWARE]
    {
        assert!(check(good).is_ok(), "{good}");
    }
    // OPT_STATS, BIND_PHC, a number in TCP's way without numbers.
    for bad in [4096, 32768, OPT_ID_TCP, 1 << 31] {
        assert_eq!(check(bad), Err(Errno(libc::EINVAL)), "{bad}");
    }
}

#[test]
fn what_happened_later_is_told_as_the_later() {
    let begun = clock(libc::CLOCK_MONOTONIC);
    let told: Vec<Duration> = (0..10_000).map(|n| on_the_wall(begun + n)).collect();
    let steps: Vec<_> = told.windows(2).filter(|pair| pair[1] <= pair[0]).collect();
    // Once the clock may have been set meanwhile.
    assert!(steps.len() <= 1, "{steps:?}");
    let now = Duration::from_nanos(clock(libc::CLOCK_REALTIME));
    assert!(now.abs_diff(told[0]) < Duration::from_secs(60), "{:?} at {now:?}", told[0]);
}
