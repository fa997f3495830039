use super::*;

#[test]
fn trivial_configurations_are_always_run_and_each_once() {
    let found = Placement { speed: [1, 2, 3], ..Placement::SPREAD };
    assert_eq!(candidates(vec![found]), [found, Placement::SPREAD, Placement::ALL_ON_ONE]);
    assert_eq!(candidates(vec![Placement::ALL_ON_ONE]), [Placement::ALL_ON_ONE, Placement::SPREAD]);
}
