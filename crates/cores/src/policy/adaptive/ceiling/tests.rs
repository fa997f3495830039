use super::*;

const ALL: Throughput = Throughput(1000.0);

fn known(one: f64, other: f64, ratio: f64) -> Ceiling {
    let mut ceiling = Ceiling::default();
    ceiling.note(Throughput(one), Throughput(other), ratio);
    ceiling
}

#[test]
fn a_plan_that_should_have_carried_more_shows_what_a_load_takes() {
    for ceiling in [known(1000.0, 998.0, 2.5), known(1000.0, 1001.0, 0.4)] {
        assert!(ceiling.holds(ALL, ALL * 2.6), "as much again was of no use");
        assert!(!ceiling.holds(ALL, ALL * 3.0), "nobody tried");
        assert!(!ceiling.holds(ALL * 0.9, ALL), "it had more");
        assert!(!ceiling.holds(ALL * 1.1, ALL * 1.1), "it takes more now");
    }
    assert!(!known(1000.0, 1100.0, 2.5).holds(ALL * 1.1, ALL), "it took more");
    assert!(!known(1000.0, 1000.0, 1.1).holds(ALL, ALL), "predictions are not that exact");
    assert!(!known(1000.0, 1000.0, 0.0).holds(ALL, ALL * 1e9), "no prediction");
}

#[test]
fn a_load_that_takes_more_has_no_known_end() {
    let mut ceiling = known(1000.0, 1000.0, 2.0);
    ceiling.rise(Throughput(1010.0));
    assert!(ceiling.holds(ALL, ALL));
    ceiling.rise(Throughput(1100.0));
    assert!(!ceiling.holds(ALL, ALL));
}
