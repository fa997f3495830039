use super::*;

#[test]
fn random_arrivals_agree_with_a_bitmap() {
    let mut random = eft_base::Random::new(11);
    for _ in 0..300 {
        let mut r = OutOfOrder::default();
        let mut bits = [false; 200];
        let mut next = 0usize;
        for _ in 0..60 {
            let start = next + random.below((200 - next) as u64) as usize;
            let end = (start + 1 + random.below(15) as usize).min(200);
            if start >= end || start == next {
                continue;
            }
            assert_eq!(r.holds(start as u64, end as u64), bits[start..end].iter().all(|b| *b));
            r.insert(start as u64, end as u64);
            bits[start..end].fill(true);
            // What is kept over a crash are the lowest ranges, whole and in order.
            let mut kept = Reassembly::new();
            kept.keep(r.ranges());
            assert!(kept.is_sane(next as u64, 200) && kept.keeps(r.ranges()));
            let restored = OutOfOrder::restored(&kept);
            assert_eq!(restored.ranges(), &r.ranges()[..restored.ranges().len()]);
            if random.below(6) == 0 {
                let to = (next + random.below(25) as usize).min(199);
                let mut expect = to;
                while expect < 200 && bits[expect] {
                    expect += 1;
                }
                next = r.advance(to as u64, &kept) as usize;
                assert_eq!(next, expect);
                bits[..next].fill(false);
            }
        }
    }
}

fn report(r: &mut OutOfOrder) -> Vec<(u64, u64)> {
    let mut to = [Range { start: 0, end: 0 }; 3];
    let n = r.report(&mut to);
    to[..n].iter().map(|range| (range.start, range.end)).collect()
}

/// RFC 2018 §4: the first block contains the segment that came last, the others repeat the most recent reports.
#[test]
fn the_latest_range_is_reported_first_then_unreported_ones() {
    let mut r = OutOfOrder::default();
    for i in 1..=6u64 {
        r.insert(i * 10, i * 10 + 5);
    }
    r.insert(35, 36);
    assert_eq!(report(&mut r), [(30, 36), (60, 65), (50, 55)]);
    assert!(r.has_unreported());
    assert_eq!(report(&mut r), [(30, 36), (40, 45), (20, 25)]);
    assert_eq!(report(&mut r), [(30, 36), (10, 15), (60, 65)]);
    assert!(!r.has_unreported());
    assert_eq!(report(&mut r), [(30, 36), (60, 65), (50, 55)]);
    // A duplicate counts as the latest, too (RFC 2883 §4).
    r.insert(20, 25);
    assert_eq!(report(&mut r)[0], (20, 25));
    let mut kept = Reassembly::new();
    kept.keep(r.ranges());
    assert_eq!(r.advance(30, &kept), 36);
    assert_eq!(report(&mut r), [(60, 65), (50, 55), (40, 45)]);
}

#[test]
fn a_range_too_many_is_refused_and_changes_nothing() {
    let mut r = OutOfOrder::default();
    for i in 1..=RANGES_MAX as u64 {
        assert!(r.has_room(i * 10, i * 10 + 5));
        r.insert(i * 10, i * 10 + 5);
    }
    let far = 10 * RANGES_MAX as u64 + 1000;
    assert!(!r.has_room(far, far + 1));
    r.insert(far, far + 1);
    assert!(!r.holds(far, far + 1));
    r.insert(15, 20);
    assert!(r.has_room(far, far + 1));
}

/// One changed bit would make 16 KiB that never came part of the stream.
#[test]
#[should_panic(expected = "changed by a stray write")]
fn a_changed_range_delivers_nothing() {
    let mut r = OutOfOrder::default();
    r.insert(1000, 2000);
    let mut kept = Reassembly::new();
    kept.keep(r.ranges());
    r.ranges[0][1] ^= 1 << 14;
    r.advance(1000, &kept);
}
