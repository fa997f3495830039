use super::super::scoreboard::{Delivered, Evidence};
use super::*;

const MSS: u32 = 100;

fn recovery() -> Recovery {
    let mut r = Recovery::default();
    r.on_sent(Range { start: 0, end: 1000 }, Instant::from_millis(1));
    r
}

fn advance(r: &mut Recovery, una: u64) {
    let evidence = Evidence { is_older: |_| false, point: r.point };
    r.board.advance(una, &evidence, &mut Delivered::default());
}

#[test]
fn without_sack_each_partial_acknowledgement_sends_one_more() {
    let mut r = recovery();
    r.duplicates = 3;
    r.lose_first(0, 1000, MSS);
    r.enter(1000, 1000, Instant::ZERO);
    assert_eq!(r.next_lost(), Some(Range { start: 0, end: 100 }));
    // Three segments have left, and one is lost.
    assert_eq!(r.pipe(MSS), 600);
    r.on_sent_again(Range { start: 0, end: 100 }, Instant::from_millis(9));
    assert_eq!((r.next_lost(), r.pipe(MSS)), (None, 700));
    advance(&mut r, 400);
    assert!(!r.ends_at(400, 1000));
    r.on_partial(400, 1000, 400, MSS);
    assert_eq!(r.next_lost(), Some(Range { start: 400, end: 500 }));
    advance(&mut r, 1000);
    assert!(r.ends_at(1000, 1000));
    assert_eq!(r.phase, Phase::Open);
}

#[test]
fn before_recovery_duplicates_allow_two_segments() {
    let mut r = recovery();
    for (duplicates, pipe) in [(0, 1000), (1, 900), (2, 800), (3, 800)] {
        r.duplicates = duplicates;
        assert_eq!(r.pipe(MSS), pipe);
    }
}

#[test]
fn after_a_rebirth_everything_in_flight_counts_as_lost() {
    let mut r = Recovery::default();
    r.lose_all(5000, 9000);
    assert_eq!(r.next_lost(), Some(Range { start: 5000, end: 9000 }));
    assert_eq!((r.phase, r.pipe(MSS)), (Phase::Loss, 0));
}
