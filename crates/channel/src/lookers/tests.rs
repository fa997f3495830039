use super::*;

fn marks(looker: &Looker) -> Vec<usize> {
    let mut all = Vec::new();
    looker.take(|mark| all.push(mark));
    all
}

#[test]
fn who_is_awake_finds_marks_and_who_sleeps_is_rung_once() {
    let looker = Looker::new();
    assert_eq!(looker.tell(3), Told::Absent);
    assert!(looker.claim(7) && !looker.claim(8));
    assert_eq!([3, 64, 3].map(|slot| looker.tell(slot)), [Told::Marked; 3]);
    assert!(!looker.announce(), "beside marks");
    looker.awake();
    assert_eq!(marks(&looker), [3, 64]);
    assert!(looker.announce());
    let Told::Asleep(sleep) = looker.tell(5) else { panic!("it sleeps") };
    looker.rang(sleep);
    assert_eq!(looker.tell(6), Told::Marked, "one wake is enough");
    looker.awake();
    assert_eq!(looker.tell(7), Told::Marked);
    assert_eq!(marks(&looker), [5, 6, 7]);
}

#[test]
fn a_ring_for_an_earlier_sleep_does_not_count_for_the_next() {
    let looker = Looker::new();
    assert!(looker.claim(7) && looker.announce());
    let Told::Asleep(sleep) = looker.tell(1) else { panic!("it sleeps") };
    looker.awake();
    assert_eq!(marks(&looker), [1]);
    assert!(looker.announce());
    looker.rang(sleep);
    assert!(matches!(looker.tell(2), Told::Asleep(_)));
}

#[test]
fn slots_share_marks_modulo_their_number() {
    let looker = Looker::new();
    assert!(looker.claim(7));
    looker.tell(MARKS as u32 * 5 + 9);
    looker.tell(u32::MAX);
    assert_eq!(marks(&looker), [9, MARKS - 1]);
}

#[test]
fn a_ring_that_another_thread_took_leaves_a_sleeper_that_is_rung_again() {
    let looker = Looker::new();
    assert!(looker.claim(7) && looker.announce());
    assert!(!looker.took_ring(), "it was not rung");
    let Told::Asleep(sleep) = looker.tell(1) else { panic!("it sleeps") };
    looker.rang(sleep);
    assert!(looker.took_ring(), "its mark is there");
    assert_eq!(looker.marks().collect::<Vec<_>>(), [1]);
    assert!(matches!(looker.tell(2), Told::Asleep(_)));
}

#[test]
fn nobody_looks_after_it_left() {
    let looker = Looker::new();
    assert!(looker.claim(7) && looker.announce());
    looker.leave();
    assert!(looker.is_absent());
    assert_eq!(looker.tell(1), Told::Absent);
    looker.awake();
    assert!(looker.announce() && looker.is_absent(), "its state stays");
    assert!(!looker.claim(8));
    looker.give_back();
    assert!(looker.claim(8));
    assert_eq!(looker.tell(1), Told::Marked);
}

/// A program may write any state: no value panics, and none stays that [`Looker::claim`] does not undo.
#[test]
fn any_state_is_survived() {
    for state in (0..8).flat_map(|mode| [mode, !MODE | mode]) {
        let looker = Looker::new();
        looker.state.store(state, Ordering::SeqCst);
        if let Told::Asleep(sleep) = looker.tell(1) {
            looker.rang(sleep);
        }
        looker.awake();
        looker.took_ring();
        looker.announce();
        looker.leave();
        assert!(looker.claim(7) && looker.tell(1) == Told::Marked, "state {state}");
    }
}

#[test]
fn arrivals_are_numbered_until_their_marks_are_taken() {
    let looker = Looker::new();
    assert!(looker.claim(7));
    let arrive = |slot| {
        let arrival = looker.next_arrival(slot);
        looker.tell(slot);
        arrival
    };
    let (first, second) = (arrive(9).unwrap(), arrive(3).unwrap());
    assert!(looker.ages().of(first) > looker.ages().of(second));
    assert_eq!(arrive(9), None, "it has waited since the first");
    marks(&looker);
    let third = arrive(9).unwrap();
    assert!(looker.ages().of(second) > looker.ages().of(third));
    // The count goes round.
    looker.arrivals.store(u32::MAX, Ordering::Relaxed);
    let (last, next) = (arrive(1).unwrap(), arrive(2).unwrap());
    assert!(looker.ages().of(last) > looker.ages().of(next) && looker.ages().of(next) == 1);
    // More arrive while some are put in order.
    let ages = looker.ages();
    let (before, later, latest) = (ages.of(last), arrive(4).unwrap(), arrive(5).unwrap());
    assert_eq!(before, ages.of(last));
    assert!(ages.of(next) > ages.of(later) && ages.of(later) > ages.of(latest));
}
