use super::*;

fn board(ranges: &[(u64, u64)]) -> Scoreboard {
    let mut b = Scoreboard::default();
    for &(start, end) in ranges {
        b.insert(Range { start, end });
    }
    b
}

#[test]
fn ranges_merge_and_news_are_counted_once() {
    let mut b = board(&[(10, 20), (30, 40)]);
    assert_eq!(b.insert(Range { start: 10, end: 20 }), 0);
    assert_eq!(b.insert(Range { start: 15, end: 35 }), 10);
    assert_eq!(b.sacked(), 30);
    assert_eq!(b.hole(0), Range { start: 0, end: 10 });
    assert_eq!(b.hole(12).start, 40);
    b.advance(25);
    assert_eq!(b.sacked(), 15);
    b.advance(40);
    assert_eq!(b.sacked(), 0);
}

#[test]
fn loss_needs_three_ranges_or_more_than_two_segments() {
    let mss = 100;
    assert_eq!(board(&[(200, 400)]).lost_edge(mss), 0);
    assert_eq!(board(&[(200, 401)]).lost_edge(mss), 200);
    assert_eq!(board(&[(10, 11), (20, 21)]).lost_edge(mss), 0);
    assert_eq!(board(&[(10, 11), (20, 21), (30, 31)]).lost_edge(mss), 10);
    assert_eq!(board(&[(100, 200), (300, 501)]).lost_edge(mss), 300);
}

#[test]
fn the_last_hole_is_behind_or_between_the_ranges() {
    let b = board(&[(10, 20), (30, 40)]);
    assert_eq!(b.last_hole(0, 50), Some(Range { start: 40, end: 50 }));
    assert_eq!(b.last_hole(0, 40), Some(Range { start: 20, end: 30 }));
    assert_eq!(board(&[(0, 40)]).last_hole(0, 40), None);
    assert_eq!(board(&[]).last_hole(5, 40), Some(Range { start: 5, end: 40 }));
}

#[test]
fn missing_bytes_exclude_what_is_held() {
    let b = board(&[(10, 20), (30, 40)]);
    assert_eq!(b.missing(0, 50), 30);
    assert_eq!(b.missing(15, 35), 10);
    assert_eq!(b.missing(35, 15), 0);
}

#[test]
fn random_ranges_agree_with_a_bitmap() {
    let mut random = eft_base::Random::new(7);
    for _ in 0..200 {
        let mut b = Scoreboard::default();
        let mut bits = [false; 256];
        let mut una = 0u64;
        for _ in 0..40 {
            let start = una + random.below(256 - una);
            let end = (start + random.below(30)).min(256);
            let mut news = 0;
            for bit in &mut bits[start as usize..end as usize] {
                news += !*bit as u64;
                *bit = true;
            }
            assert_eq!(b.insert(Range { start, end }), news);
            if random.below(8) == 0 {
                una = (una + random.below(20)).min(255);
                bits[..una as usize].fill(false);
                b.advance(una);
            }
            assert_eq!(b.sacked(), bits.iter().filter(|x| **x).count() as u64);
            assert_eq!(b.missing(una, 256), bits[una as usize..].iter().filter(|x| !**x).count() as u64);
        }
    }
}
