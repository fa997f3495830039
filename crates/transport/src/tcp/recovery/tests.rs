use super::*;

const MSS: u32 = 100;

#[test]
fn pipe_counts_what_is_neither_held_nor_lost() {
    let mut r = Recovery::default();
    assert_eq!(r.pipe(0, 1000, MSS), 1000);
    r.board.insert(Range { start: 300, end: 600 });
    assert!(r.on_sack(0, MSS));
    r.enter(0, 1000, MSS);
    // 300 held, 300 lost below it.
    assert_eq!(r.pipe(0, 1000, MSS), 400);
    assert_eq!(r.next_lost(0), Some(Range { start: 0, end: 300 }));
    r.on_retransmitted(Range { start: 0, end: 100 }, 0, 1000);
    assert_eq!(r.pipe(0, 1000, MSS), 500);
    assert_eq!(r.next_lost(0), Some(Range { start: 100, end: 300 }));
    r.on_retransmitted(Range { start: 100, end: 300 }, 0, 1000);
    assert_eq!(r.next_lost(0), None);
    assert!(r.advance(1000));
    assert_eq!(r.phase, Phase::Open);
}

#[test]
fn a_lost_retransmission_is_noticed_by_what_overtakes_it() {
    let mut r = Recovery::default();
    r.board.insert(Range { start: 100, end: 500 });
    assert!(r.on_sack(0, MSS));
    r.enter(0, 500, MSS);
    r.on_retransmitted(Range { start: 0, end: 100 }, 0, 500);
    r.board.insert(Range { start: 500, end: 700 });
    r.on_sack(0, MSS);
    assert_eq!(r.next_lost(0), None);
    r.board.insert(Range { start: 700, end: 800 });
    r.on_sack(0, MSS);
    assert_eq!(r.next_lost(0), Some(Range { start: 0, end: 100 }));
}

#[test]
fn without_sack_each_partial_acknowledgement_sends_one_more() {
    let mut r = Recovery { duplicates: 3, ..Recovery::default() };
    r.enter(0, 1000, MSS);
    assert_eq!(r.next_lost(0), Some(Range { start: 0, end: 100 }));
    r.on_retransmitted(Range { start: 0, end: 100 }, 0, 1000);
    assert_eq!(r.next_lost(0), None);
    assert!(!r.advance(400));
    r.on_partial(400, 1000, 400, MSS);
    assert_eq!(r.next_lost(400), Some(Range { start: 400, end: 500 }));
}
