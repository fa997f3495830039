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
