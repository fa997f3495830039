use super::*;

const ALL: Throughput = Throughput(1000.0);

fn known(one: f64, other: f64, ratio: f64) -> Ceiling {
    let mut ceiling = Ceiling::default();
    ceiling.note(Throughput(one), Throughput(other), ratio);
    ceiling
}

/// Whether what has this promise is known to be of no use.
fn holds(ceiling: &Ceiling, now: Throughput, promised: Throughput) -> bool {
    ceiling.is_reached(now) && ceiling.most(now, promised) <= now
}

#[test]
fn a_plan_that_should_have_carried_more_shows_what_a_load_takes() {
    for ceiling in [known(1000.0, 998.0, 2.5), known(1000.0, 1001.0, 0.4)] {
        assert!(holds(&ceiling, ALL, ALL * 2.6), "as much again was of no use");
        assert!(!holds(&ceiling, ALL, ALL * 3.0), "nobody tried");
        assert!(!holds(&ceiling, ALL * 0.9, ALL), "it had more");
        assert!(!holds(&ceiling, ALL * 1.1, ALL * 1.1), "it takes more now");
    }
    assert!(!holds(&known(1000.0, 1100.0, 2.5), ALL * 1.1, ALL), "it took more");
    assert!(!holds(&known(1000.0, 1000.0, 1.1), ALL, ALL), "predictions are not that exact");
    assert!(!holds(&known(1000.0, 1000.0, 0.0), ALL, ALL * 1e9), "no prediction");
}

#[test]
fn a_load_that_takes_more_has_no_known_end() {
    let mut ceiling = known(1000.0, 1000.0, 2.0);
    ceiling.rise(Throughput(1010.0));
    assert!(holds(&ceiling, ALL, ALL));
    ceiling.rise(Throughput(1100.0));
    assert!(!holds(&ceiling, ALL, ALL));
}

#[test]
fn under_a_slower_plan_that_stays_what_was_tried_is_as_much_more() {
    let mut ceiling = known(1000.0, 1000.0, 2.0);
    ceiling.moved(0.5, 1.0);
    assert!(holds(&ceiling, ALL, ALL * 4.0) && !holds(&ceiling, ALL, ALL * 5.0));
    ceiling.moved(3.0, 1.0);
    assert!(holds(&ceiling, ALL, ALL * 4.0), "under a faster one it is less, which is not counted on");
    ceiling.moved(0.0, 1.0);
    assert!(!holds(&ceiling, ALL, ALL * 5.0), "no prediction");
}

#[test]
fn a_load_with_less_than_it_takes_has_no_more_than_that_from_what_promises_as_much_as_was_tried() {
    let mut ceiling = known(1000.0, 1000.0, 2.0);
    // A plan at half of the clocks carries 0.8 of it.
    ceiling.moved(0.5, 0.8);
    let now = ALL * 0.8;
    assert_eq!(ceiling.most(now, ALL * 3.2), ALL);
    assert_eq!(ceiling.most(now, ALL * 0.9), ALL * 0.9, "it promises less");
    assert_eq!(ceiling.most(now, ALL * 4.0), ALL * 4.0, "nobody tried");
    assert!(!ceiling.is_reached(now));
}
