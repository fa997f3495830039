use super::*;

#[test]
fn random_arrivals_agree_with_a_bitmap() {
    let mut random = eft_base::Random::new(11);
    for _ in 0..300 {
        let mut r = Reassembly::new();
        let mut bits = [false; 200];
        let mut next = 0usize;
        for _ in 0..60 {
            let start = next + random.below((200 - next) as u64) as usize;
            let end = (start + 1 + random.below(15) as usize).min(200);
            if start >= end || start == next {
                continue;
            }
            if r.insert(start as u64, end as u64) {
                bits[start..end].fill(true);
            }
            assert!(r.is_sane(next as u64, 200));
            if random.below(6) == 0 {
                let to = (next + random.below(25) as usize).min(199);
                let mut expect = to;
                while expect < 200 && bits[expect] {
                    expect += 1;
                }
                next = r.advance(to as u64) as usize;
                assert_eq!(next, expect);
                bits[..next].fill(false);
            }
        }
    }
}

#[test]
fn the_latest_range_is_reported_first_and_all_in_time() {
    let mut r = Reassembly::new();
    for i in 1..=6u64 {
        assert!(r.insert(i * 10, i * 10 + 5));
    }
    assert!(r.insert(32, 36));
    let mut seen = [false; 7];
    for _ in 0..6 {
        let mut report = [Range { start: 0, end: 0 }; 3];
        assert_eq!(r.report(&mut report), 3);
        assert_eq!(report[0], Range { start: 30, end: 36 });
        for x in report {
            seen[(x.start / 10) as usize] = true;
        }
    }
    assert!(seen[1..].iter().all(|s| *s));
}

#[test]
fn a_range_too_many_is_refused_and_changes_nothing() {
    let mut r = Reassembly::new();
    for i in 1..=RANGES_MAX as u64 {
        assert!(r.insert(i * 10, i * 10 + 5));
    }
    assert!(!r.insert(1000, 1001));
    assert!(r.insert(15, 20));
    assert!(r.insert(1000, 1001));
}
