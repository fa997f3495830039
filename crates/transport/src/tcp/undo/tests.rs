use super::super::congestion::Congestion;
use super::*;

const NOTHING: Evidence =
    Evidence { advanced: false, originals: false, repeated: false, can_send_new: true, duplicate: 0 };

fn segment(echo: u32) -> Segment {
    let mut segment = Segment::nothing();
    segment.options.timestamps = (echo != 0).then_some((1, echo));
    segment
}

fn undo(clock: Option<u32>, after_timeout: bool) -> Undo {
    let mut undo = Undo::new(Congestion::new(1000), clock, after_timeout);
    undo.on_sent_again(2000);
    undo
}

#[test]
fn the_first_acknowledgment_decides_by_its_timestamp() {
    let advanced = Evidence { advanced: true, ..NOTHING };
    assert!(undo(Some(50), false).judge(&segment(49), &advanced));
    let mut after = undo(Some(50), false);
    assert!(!after.judge(&segment(50), &advanced));
    assert!(!after.judge(&segment(49), &advanced), "too late");
    assert!(!undo(Some(50), false).judge(&segment(0), &advanced));
    assert!(!undo(None, false).judge(&segment(49), &advanced));
}

#[test]
fn a_reduction_is_undone_when_all_retransmitted_data_came_twice() {
    let twice = |duplicate| Evidence { duplicate, ..NOTHING };
    let mut all = undo(None, false);
    assert!(!all.judge(&segment(0), &twice(1000)));
    assert!(all.judge(&segment(0), &twice(1000)));
    let mut some = undo(None, false);
    assert!(!some.judge(&segment(0), &twice(1000)));
    some.on_sent_again(1000);
    assert!(!some.judge(&segment(0), &twice(1000)));
}

/// RFC 5682 §3.1
#[test]
fn without_timestamps_new_data_is_tried_after_a_timeout() {
    let advanced = Evidence { advanced: true, ..NOTHING };
    let mut late = undo(None, true);
    assert!(!late.judge(&segment(0), &advanced));
    assert!(late.tries_new_data());
    assert!(late.judge(&segment(0), &Evidence { originals: true, ..advanced }));
    let mut right = undo(None, true);
    assert!(!right.judge(&segment(0), &advanced));
    assert!(!right.judge(&segment(0), &Evidence { repeated: true, ..NOTHING }));
    assert!(!right.tries_new_data(), "the rest is lost, too");
    assert!(!right.judge(&segment(0), &Evidence { originals: true, ..advanced }));
    let mut nothing_new = undo(None, true);
    assert!(!nothing_new.judge(&segment(0), &Evidence { can_send_new: false, ..advanced }));
    assert!(!nothing_new.tries_new_data());
    let mut again = undo(None, true);
    again.on_timeout_again();
    assert!(!again.judge(&segment(0), &Evidence { originals: true, ..advanced }));
}

#[test]
fn reports_count_for_a_round_trip_after_the_recovery() {
    let mut over = undo(None, false);
    over.on_recovered(5000);
    assert!(!over.is_over(5000));
    assert!(over.is_over(5001));
}
