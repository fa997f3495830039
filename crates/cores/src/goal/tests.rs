use super::*;

#[test]
fn the_score_follows_the_objective() {
    let least = Goal::least_power(Share(0.95));
    assert!(least.score(0.96, Watts(10.0)) > least.score(1.0, Watts(11.0)));
    assert!(least.score(0.96, Watts(20.0)) > least.score(0.9, Watts(5.0)));
    assert!(Goal::THROUGHPUT.score(1.0, Watts(30.0)) > Goal::THROUGHPUT.score(0.9, Watts(10.0)));
    assert!(
        Goal::THROUGHPUT_PER_WATT.score(0.5, Watts(4.0)) > Goal::THROUGHPUT_PER_WATT.score(1.0, Watts(10.0))
    );
}

#[test]
fn a_goal_is_printed_with_its_floor() {
    let printed = [Goal::THROUGHPUT, Goal::least_power(Share(0.5))]
        .map(|goal| alloc::string::ToString::to_string(&goal));
    assert_eq!(printed, ["throughput", "least-power:50%"]);
}
