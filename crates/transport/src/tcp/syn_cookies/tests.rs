use super::*;

#[test]
fn a_size_is_never_larger_than_the_peers_mss() {
    for mss in 64..=u16::MAX {
        let size = SIZES[size_index(mss) as usize];
        assert!(size <= mss, "{size} for {mss}");
    }
    assert_eq!([536, 1439, 1460, 9000].map(|mss| SIZES[size_index(mss) as usize]), [536, 1400, 1460, 8940]);
}

#[test]
fn a_stamp_says_what_was_agreed_on_and_is_not_in_the_future() {
    for ms in 0..200 {
        for agreed in 0..=STAMP_MASK {
            let stamp = stamp(Instant::from_millis(ms), agreed);
            let age = (ms as u32).wrapping_sub(stamp);
            assert!(stamp & STAMP_MASK == agreed && age <= STAMP_MASK, "{ms} {agreed}: {stamp}");
        }
    }
}

#[test]
fn offered_options_come_back() {
    for scale in [None, Some(0), Some(7), Some(SCALE_MAX)] {
        for sack_permitted in [false, true] {
            let syn = Options { scale, sack_permitted, timestamps: Some((5, 0)), ..Options::default() };
            let sent = |marks| stamp(Instant::from_millis(123_456), agreed(&syn, marks)).wrapping_add(77);
            assert_eq!([false, true].map(|marks| offered_marks(Some((6, sent(marks))), 77)), [false, true]);
            let came = offered(1400, Some((6, sent(sack_permitted))), 77);
            assert_eq!((came.scale, came.sack_permitted, came.mss), (scale, sack_permitted, Some(1400)));
        }
    }
    let without = offered(1400, None, 77);
    assert_eq!((without.scale, without.sack_permitted), (None, false));
}
