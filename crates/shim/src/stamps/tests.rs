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
