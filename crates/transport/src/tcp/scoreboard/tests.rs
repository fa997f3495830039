use super::*;
use core::time::Duration;

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

fn evidence() -> Evidence<impl Fn(Instant) -> bool> {
    Evidence { is_older: |_| false, point: u64::MAX }
}

/// Ten segments of 100 bytes, sent a millisecond apart from 1 ms on.
fn board() -> Scoreboard {
    let mut b = Scoreboard::default();
    for n in 0..10 {
        b.send(n * 100, (n + 1) * 100, ms(n + 1));
    }
    b
}

fn arrive(b: &mut Scoreboard, start: u64, end: u64) -> Delivered {
    let mut delivered = Delivered::default();
    b.arrive(Range { start, end }, &evidence(), &mut delivered);
    delivered
}

#[test]
fn each_delivered_byte_is_counted_once() {
    let mut b = board();
    assert_eq!(arrive(&mut b, 200, 400).bytes, 200);
    assert_eq!(arrive(&mut b, 200, 400).bytes, 0);
    assert_eq!(arrive(&mut b, 150, 450).bytes, 100);
    assert_eq!((b.sacked(), b.in_network()), (300, 700));
    let mut delivered = Delivered::default();
    b.advance(300, &evidence(), &mut delivered);
    assert_eq!((delivered.bytes, b.sacked(), b.in_network()), (150, 150, 550));
    b.advance(1000, &evidence(), &mut delivered);
    assert_eq!((b.sacked(), b.lost(), b.in_network()), (0, 0, 0));
}

#[test]
fn pieces_sent_no_later_than_an_arrived_one_may_be_lost() {
    let mut b = board();
    let latest = arrive(&mut b, 300, 500).latest.unwrap();
    assert_eq!(latest, (ms(5), 500));
    assert_eq!(b.lose(latest, |_| true), 300);
    assert_eq!(b.first_lost(), Some(Range { start: 0, end: 300 }));
    assert_eq!(b.in_network(), 500);
    b.send_again(Range { start: 0, end: 100 }, ms(20));
    assert_eq!(b.first_lost(), Some(Range { start: 100, end: 300 }));
    b.send_again(Range { start: 100, end: 300 }, ms(21));
    assert_eq!((b.first_lost(), b.in_network()), (None, 800));
    // A retransmitted piece is judged again when one sent later arrives: here, the second.
    let latest = arrive(&mut b, 100, 300).latest.unwrap();
    assert_eq!(latest, (ms(21), 300));
    assert_eq!(b.lose(latest, |piece| piece.at < ms(21)), 600);
    assert_eq!(b.first_lost(), Some(Range { start: 0, end: 100 }));
}

#[test]
fn an_acknowledgment_of_an_earlier_sending_does_not_count_for_the_later_one() {
    let mut b = board();
    b.lose_range(Range { start: 0, end: 100 });
    b.send_again(Range { start: 0, end: 100 }, ms(50));
    let older = Evidence { is_older: |at| at == ms(50), point: 1000 };
    let mut delivered = Delivered::default();
    b.advance(200, &older, &mut delivered);
    assert_eq!(delivered.latest, Some((ms(2), 200)));
    assert_eq!((delivered.bytes, delivered.originals, delivered.timed_at), (200, 100, Some(ms(2))));
}

#[test]
fn an_original_that_arrives_after_a_later_one_is_reordering() {
    let mut b = board();
    assert!(!arrive(&mut b, 300, 400).is_reordered());
    assert!(!arrive(&mut b, 400, 500).is_reordered());
    assert_eq!(arrive(&mut b, 100, 200).distance, 400);
    b.lose_range(Range { start: 0, end: 100 });
    b.send_again(Range { start: 0, end: 100 }, ms(50));
    let mut delivered = Delivered::default();
    b.advance(200, &evidence(), &mut delivered);
    assert!(!delivered.is_reordered(), "it was sent again");
}

#[test]
fn three_segments_are_three_blocks_or_more_than_two_full_ones() {
    let mut b = board();
    assert!(!b.has_three_beyond(100));
    arrive(&mut b, 200, 400);
    assert!(!b.has_three_beyond(100));
    arrive(&mut b, 400, 401);
    assert!(b.has_three_beyond(100));
    let mut b = board();
    for n in [1, 3, 5] {
        assert!(!b.has_three_beyond(1000));
        arrive(&mut b, n * 100, n * 100 + 1);
    }
    assert!(b.has_three_beyond(1000));
}

#[test]
fn the_last_missing_bytes_are_found_behind_and_between() {
    let mut b = board();
    assert_eq!(b.last_missing(100), Some(Range { start: 900, end: 1000 }));
    arrive(&mut b, 800, 1000);
    assert_eq!(b.last_missing(100), Some(Range { start: 700, end: 800 }));
    assert_eq!(b.last_missing(30), Some(Range { start: 770, end: 800 }));
    arrive(&mut b, 0, 800);
    assert_eq!(b.last_missing(30), None);
}

#[test]
fn a_receiver_that_reneges_gets_everything_again() {
    let mut b = board();
    arrive(&mut b, 300, 1000);
    b.distrust();
    b.lose_range(Range { start: 0, end: 1000 });
    assert_eq!((b.sacked(), b.lost()), (0, 1000));
    b.find_all();
    assert_eq!((b.lost(), b.in_network()), (0, 1000));
}

#[test]
fn a_peer_that_splits_everything_does_not_fill_the_memory() {
    let mut b = Scoreboard::default();
    b.send(0, 1 << 20, ms(1));
    for n in 0..100_000u64 {
        arrive(&mut b, n * 10 + 1, n * 10 + 2);
    }
    assert!(b.pieces.len() <= PIECES_MAX + 2);
    let mut delivered = Delivered::default();
    b.advance(1 << 20, &evidence(), &mut delivered);
    assert_eq!((delivered.bytes + PIECES_MAX as u64 / 2) >> 20, 1);
    assert!(b.pieces.capacity() < PIECES_MAX);
}

/// Against a bitmap of what is where.
#[test]
fn random_fates_agree_with_a_map_of_every_byte() {
    let mut random = eft_base::Random::new(7);
    for _ in 0..200 {
        let mut b = Scoreboard::default();
        let (mut una, mut now) = (0u64, ms(1));
        let mut bytes = alloc::vec![Fate::Sent; 256];
        b.send(0, 256, now);
        for _ in 0..60 {
            now += Duration::from_millis(1);
            let start = una + random.below(256 - una);
            let range = Range { start, end: (start + random.below(30)).min(256) };
            let each = &mut bytes[range.start as usize..range.end as usize];
            match random.below(4) {
                0 => {
                    let new = each.iter().filter(|fate| **fate != Fate::Arrived).count() as u64;
                    each.fill(Fate::Arrived);
                    assert_eq!(arrive(&mut b, range.start, range.end).bytes, new);
                }
                1 => {
                    each.iter_mut().filter(|f| **f == Fate::Sent).for_each(|f| *f = Fate::Lost);
                    b.lose_range(range);
                }
                2 => {
                    each.iter_mut().filter(|f| **f == Fate::Lost).for_each(|f| *f = Fate::Sent);
                    b.send_again(range, now);
                }
                _ => {
                    una = (una + random.below(8)).min(255);
                    b.advance(una, &evidence(), &mut Delivered::default());
                }
            }
            let count = |fate| bytes[una as usize..].iter().filter(|f| **f == fate).count() as u64;
            let counts = (b.sacked(), b.lost(), b.in_network());
            assert_eq!(counts, (count(Fate::Arrived), count(Fate::Lost), count(Fate::Sent)));
            let first = bytes[una as usize..].iter().position(|f| *f == Fate::Lost).map(|i| una + i as u64);
            assert_eq!(b.first_lost().map(|r| r.start), first);
        }
    }
}

/// Ten segments of 100 bytes that went to the device as one.
fn cut_board() -> Scoreboard {
    let mut b = Scoreboard { segment: 100, ..Scoreboard::default() };
    b.send(0, 1000, ms(1));
    b
}

#[test]
fn of_a_segment_that_is_reported_in_part_nothing_arrived() {
    let mut b = cut_board();
    assert_eq!(arrive(&mut b, 999, 1000).bytes, 0);
    assert_eq!(arrive(&mut b, 310, 390).bytes, 0);
    assert_eq!((arrive(&mut b, 150, 450).bytes, b.sacked()), (200, 200));
    assert_eq!(arrive(&mut b, 801, 1000).bytes, 100);
    assert_eq!(b.last_missing(1000), Some(Range { start: 400, end: 900 }));
}

#[test]
fn segments_of_other_sizes_are_reported_as_they_were_sent() {
    let mut b = cut_board();
    // Two writes, and a segment that did not fill up.
    b.segment = 30;
    b.send(1000, 1030, ms(1));
    b.send(1030, 1060, ms(1));
    b.segment = 20;
    b.send(1060, 1080, ms(1));
    assert_eq!(arrive(&mut b, 1030, 1060).bytes, 30);
    assert_eq!(arrive(&mut b, 1060, 1079).bytes, 0);
    assert_eq!(arrive(&mut b, 1060, 1080).bytes, 20);
    // Again, on a path that takes less: 400..600 in segments of 70.
    b.lose_range(Range { start: 0, end: 600 });
    b.segment = 70;
    b.send_again(Range { start: 400, end: 600 }, ms(9));
    assert_eq!(arrive(&mut b, 470, 540).bytes, 70);
    assert_eq!(arrive(&mut b, 400, 469).bytes, 0);
    assert_eq!(arrive(&mut b, 540, 600).bytes, 60);
}

#[test]
fn behind_an_acknowledgment_within_a_segment_each_byte_counts() {
    let mut b = cut_board();
    b.advance(150, &evidence(), &mut Delivered::default());
    assert_eq!(arrive(&mut b, 310, 390).bytes, 80);
}
