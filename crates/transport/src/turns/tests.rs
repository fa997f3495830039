use super::*;

#[test]
fn a_flush_is_bounded_and_the_rest_follows_at_once() {
    let mut turns = Turns::new();
    (0..1000).for_each(|i| turns.push(i));
    let (timers, now) = (Timers::new(0), Instant::from_millis(7));
    let mut served = 0;
    for _ in 0..4 {
        let (waited, share) = (turns.len(), turns.share());
        assert!(share <= PER_TURN);
        (0..share)
            .for_each(|_| assert_eq!(turns.pop(), Some(served + 1).inspect(|n| served = *n).map(|n| n - 1)));
        turns.finish(now, waited, share);
        assert_eq!(turns.deadline(&timers), (served < 1000).then_some(now));
    }
    assert_eq!(served, 1000);
}

#[test]
fn without_room_for_any_socket_it_waits_instead_of_spinning() {
    let mut turns = Turns::new();
    (0..1000).for_each(|i| turns.push(i));
    let now = Instant::from_millis(7);
    turns.finish(now, 1000, 0);
    assert_eq!(turns.deadline(&Timers::new(0)), Some(now + RETRY));
}

#[test]
fn who_had_no_room_comes_before_those_that_had_their_turn() {
    let mut turns = Turns::new();
    (0..4).for_each(|i| turns.push(i));
    // There is room for one in each flush, and all have more to send.
    let mut order = Vec::new();
    for _ in 0..8 {
        let (waited, mut room) = (turns.len(), 1);
        for _ in 0..turns.share() {
            let Some(i) = turns.pop() else { break };
            if room > 0 {
                order.push(i);
                room -= 1;
                // Something else makes it wait, too.
                turns.push(i);
                turns.had_turn(i);
            } else {
                turns.push(i);
            }
        }
        turns.finish(Instant::from_millis(7), waited, 0);
        assert_eq!(turns.len(), 4, "each waits once");
    }
    assert_eq!(order, [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn who_waits_already_is_told_of_input_in_its_order() {
    let mut turns = Turns::new();
    [1, 2, 1, 3, 2].into_iter().for_each(|i| turns.push(i));
    [3, 7, 1, 3].into_iter().for_each(|i| turns.push_last(i));
    turns.push(1);
    assert_eq!(turns.len(), 4, "no socket waits twice");
    let order: Vec<_> = core::iter::from_fn(|| turns.pop()).collect();
    assert_eq!(order, [2, 3, 7, 1]);
    turns.push(3);
    assert_eq!((turns.len(), turns.pop(), turns.pop()), (1, Some(3), None), "it waits again");
}

#[test]
fn a_place_that_was_given_up_takes_no_share_of_a_flush() {
    let mut turns = Turns::new();
    let count = PER_TURN as u32;
    (0..count).for_each(|i| turns.push(i));
    (0..count).rev().for_each(|i| turns.push_last(i));
    (count..3 * count).for_each(|i| turns.push(i));
    let (waited, share) = (turns.len(), turns.share());
    assert_eq!((waited, share), (3 * PER_TURN, PER_TURN));
    let served: Vec<_> = (0..share).map_while(|_| turns.pop()).collect();
    assert!(served.into_iter().eq((0..count).rev()), "all whose input came");
}
