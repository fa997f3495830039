use super::super::scoreboard::{Evidence, Range};
use super::*;

const MS: Duration = Duration::from_millis(1);

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn rtt() -> Rtt {
    let mut rtt = Rtt::new();
    (0..20).for_each(|_| rtt.sample(40_000));
    rtt
}

/// Segments of 100 bytes, one each millisecond from 1000 on.
fn board(count: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    (0..count).for_each(|n| board.send(n * 100, n * 100 + 100, at(1000 + n)));
    board
}

/// A block that says that segment `n` arrived.
fn arrive(rack: &mut Rack, board: &mut Scoreboard, n: u64, now: Instant) {
    let mut delivered = Delivered::default();
    let evidence = Evidence { is_older: |_| false, point: u64::MAX };
    board.arrive(Range { start: n * 100, end: n * 100 + 100 }, &evidence, &mut delivered);
    rack.on_delivered(now, &delivered);
}

#[test]
fn a_segment_may_come_a_quarter_of_a_round_trip_late() {
    let (mut rack, mut board) = (Rack::default(), board(10));
    arrive(&mut rack, &mut board, 1, at(1041));
    let found = rack.detect(&mut board, at(1041), &rtt(), false);
    // The first was due at 1040; 10 ms more are given.
    assert_eq!(found, Detected { lost: 0, again_at: None, check_again_at: Some(at(1050)) });
    assert_eq!(rack.detect(&mut board, at(1049), &rtt(), false).lost, 0);
    assert_eq!(
        rack.detect(&mut board, at(1050), &rtt(), false),
        Detected { lost: 100, again_at: None, check_again_at: None }
    );
}

/// The acknowledgment of a retransmission covers a segment that was sent with others before, and arrived only now: those may
/// still come, too.
#[test]
fn a_late_segment_below_the_acknowledgment_number_makes_patient() {
    let (mut rack, mut board) = (Rack::default(), board(10));
    board.send_again(Range { start: 0, end: 100 }, at(1040));
    let evidence = Evidence { is_older: |_| false, point: u64::MAX };
    let mut delivered = Delivered::default();
    board.advance(200, &evidence, &mut delivered);
    rack.on_delivered(at(1082), &delivered);
    // The second was sent at 1001, so a round trip may take 81 ms.
    assert_eq!(rack.detect(&mut board, at(1082), &rtt(), true).check_again_at, Some(at(1090)));
}

#[test]
fn three_segments_beyond_a_hole_prove_loss_unless_reordering_was_seen() {
    let (mut rack, mut board) = (Rack::default(), board(10));
    for n in 1..4 {
        arrive(&mut rack, &mut board, n, at(1040 + n));
    }
    assert_eq!(rack.detect(&mut board, at(1043), &rtt(), true).lost, 100);
    let (mut rack, mut board) = (Rack::default(), super::tests::board(10));
    arrive(&mut rack, &mut board, 2, at(1042));
    arrive(&mut rack, &mut board, 1, at(1043));
    let found = rack.detect(&mut board, at(1043), &rtt(), true);
    // 40 ms after it was sent, the round trip of the third; and a quarter more.
    assert_eq!(found, Detected { lost: 0, again_at: None, check_again_at: Some(at(1050)) });
}

#[test]
fn each_round_trip_with_a_duplicate_widens_the_window_for_sixteen_recoveries() {
    let mut rack = Rack { reordering_seen: true, ..Rack::default() };
    rack.on_duplicate(0, 1000);
    rack.on_duplicate(500, 1500);
    assert_eq!(rack.window(&rtt(), true), 20 * MS, "one in a round");
    rack.on_duplicate(1000, 2000);
    rack.on_duplicate(2000, 3000);
    assert_eq!(rack.window(&rtt(), true), 40 * MS);
    rack.on_duplicate(3000, 4000);
    assert_eq!(rack.window(&rtt(), true), 40 * MS, "never beyond SRTT");
    for _ in 0..15 {
        rack.on_recovered();
    }
    assert_eq!(rack.window(&rtt(), true), 40 * MS);
    rack.on_recovered();
    assert_eq!(rack.window(&rtt(), true), 10 * MS);
}

#[test]
fn a_retransmission_is_lost_when_one_sent_later_arrives() {
    let (mut rack, mut board) = (Rack::default(), board(4));
    for n in 1..4 {
        arrive(&mut rack, &mut board, n, at(1040 + n));
    }
    assert_eq!(rack.detect(&mut board, at(1043), &rtt(), true).lost, 100);
    board.send_again(Range { start: 0, end: 100 }, at(1043));
    board.send(400, 500, at(1044));
    assert_eq!(rack.detect(&mut board, at(1060), &rtt(), true).lost, 0);
    arrive(&mut rack, &mut board, 4, at(1084));
    assert_eq!(rack.detect(&mut board, at(1084), &rtt(), true).lost, 100);
}

#[test]
fn the_timer_takes_only_segments_that_are_overdue() {
    let (mut rack, mut board) = (Rack::default(), board(4));
    arrive(&mut rack, &mut board, 0, at(1040));
    board.send(400, 500, at(1230));
    rack.detect_all(&mut board, at(1240), &rtt());
    assert_eq!((board.lost(), board.in_network()), (300, 100));
}
