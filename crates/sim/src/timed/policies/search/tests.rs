use super::*;
use crate::calibration::Calibration;

#[test]
fn what_tier_2_has_within_its_error_of_the_best_runs_on_tier_1_and_the_slowest_of_equals_first() {
    let cores = Calibration::e5520().unwrap().cores().unwrap();
    let slow = Placement { speed: [1; PLACED.len()], ..Placement::SPREAD };
    let of = |rates: [u64; 3]| {
        within_error(&cores, [Placement::SPREAD, slow, Placement::ALL_ON_ONE].into_iter().zip(rates))
    };
    assert_eq!(of([950, 1000, 949]), [slow, Placement::SPREAD]);
    assert_eq!(of([1000, 1000, 1001]), [Placement::ALL_ON_ONE, slow, Placement::SPREAD]);
    let many = within_error(&cores, placements(&cores).into_iter().map(|placement| (placement, 1000)));
    assert_eq!((placements(&cores).len(), many.len()), (712, TRIED_MAX));
}

#[test]
fn results_come_in_the_order_of_what_was_asked() {
    let all: Vec<u64> = (0..101).collect();
    assert_eq!(in_parallel(&all, |number| number * 2), (0..101).map(|n| n * 2).collect::<Vec<_>>());
}

#[test]
fn every_division_is_tried_on_cores_of_every_class_and_those_of_one_clock_at_one_speed() {
    let cores = Calibration::core_ultra_245k().unwrap().cores().unwrap();
    let of = |cores: &Cores| {
        let all = placements(cores);
        let distinct: std::collections::BTreeSet<_> = all.iter().map(|p| (p.core_of, p.speed)).collect();
        assert_eq!(distinct.len(), all.len());
        all
    };
    // 16 for one core, three times 16 * 16 for two, and 16 * 16 * 16 for three.
    assert_eq!(of(&cores).len(), 16 + 3 * 256 + 4096);
    let mixed = Placement { core_of: [1, 7, 8], speed: [SPEEDS, 3, 5] };
    assert!(of(&cores).contains(&mixed), "tcp on a big core, the others on little ones");

    // Two groups have one clock or two, three have one or two as well: never three.
    let cores = Calibration::exynos_5422().unwrap().cores().unwrap();
    assert_eq!(of(&cores).len(), 16 + 3 * (2 * 8 + 2 * 64) + (2 * 8 + 6 * 64));
    let one_clock = |placement: &Placement| placement.speed[1] == placement.speed[2];
    let on_little = |placement: &&Placement| placement.core_of == [1, 5, 6];
    assert!(of(&cores).iter().filter(on_little).all(one_clock));
}

#[test]
fn a_class_of_one_core_has_room_for_one_group() {
    let mut machine = Calibration::exynos_5422().unwrap();
    machine.set("big_cores", "cores", 1);
    let all = placements(&machine.cores().unwrap());
    let on_big = |placement: &Placement| {
        let big: std::collections::BTreeSet<_> =
            placement.core_of.iter().filter(|core| **core == 1).collect();
        big.len()
    };
    assert!(all.iter().all(|placement| on_big(placement) <= 1));
    assert!(all.iter().any(|placement| placement.core_of == [1, 2, 3]));
}

#[test]
fn the_second_tier_tells_classes_apart() {
    let machine = Calibration::exynos_5422().unwrap();
    let (cores, job) = (
        machine.cores().unwrap(),
        Job::new(&machine, &crate::timed::check::Load::Bulk.into(), false).unwrap(),
    );
    let kbps = |core_of| {
        let placement = Placement { core_of, ..Placement::SPREAD };
        job.in_batches(&placement, &cores, 1).1.total()
    };
    let (big, tcp_on_big, little) = (kbps([1, 2, 3]), kbps([1, 5, 6]), kbps([5, 6, 7]));
    assert!(big > tcp_on_big && tcp_on_big > little, "{big} {tcp_on_big} {little}");
    assert!(little * 2 < big, "{little} of {big}");
}
