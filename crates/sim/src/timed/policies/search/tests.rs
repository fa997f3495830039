use super::*;

#[test]
fn what_tier_2_has_within_its_error_of_the_best_runs_on_tier_1_and_the_slowest_of_equals_first() {
    let slow = Placement { duty: [1; PLACED.len()], ..Placement::SPREAD };
    let of = |rates: [u64; 3]| {
        within_error([Placement::SPREAD, slow, Placement::ALL_ON_ONE].into_iter().zip(rates))
    };
    assert_eq!(of([950, 1000, 949]), [slow, Placement::SPREAD]);
    assert_eq!(of([1000, 1000, 1001]), [Placement::ALL_ON_ONE, slow, Placement::SPREAD]);
    let many = within_error(placements().map(|placement| (placement, 1000)));
    assert_eq!((placements().count(), many.len()), (712, TRIED_MAX));
}

#[test]
fn results_come_in_the_order_of_what_was_asked() {
    let all: Vec<u64> = (0..101).collect();
    assert_eq!(in_parallel(&all, |number| number * 2), (0..101).map(|n| n * 2).collect::<Vec<_>>());
}
