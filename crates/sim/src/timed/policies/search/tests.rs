use super::*;
use crate::calibration::Calibration;

fn reached(kbps: u64, milliwatts: u64) -> Reached {
    Reached { kbps, milliwatts }
}

#[test]
fn what_tier_2_has_within_its_error_of_the_best_runs_on_tier_1_and_the_slowest_of_equals_first() {
    let cores = Calibration::e5520().unwrap().cores().unwrap();
    let slow = Placement { speed: [1; PLACED.len()], ..Placement::SPREAD };
    let of = |rates: [u64; 3]| {
        let placements = [Placement::SPREAD, slow, Placement::ALL_ON_ONE];
        let all: Vec<Rated> = placements.into_iter().zip(rates.map(|kbps| reached(kbps, 1))).collect();
        may_be_fastest(&cores, &all)
    };
    assert_eq!(of([950, 1000, 949]), [slow, Placement::SPREAD]);
    assert_eq!(of([1000, 1000, 1001]), [Placement::ALL_ON_ONE, slow, Placement::SPREAD]);
    let equal: Vec<Rated> =
        placements(&cores).into_iter().map(|placement| (placement, reached(1000, 1))).collect();
    assert_eq!((equal.len(), may_be_fastest(&cores, &equal).len()), (712, TRIED_MAX));
}

#[test]
fn for_the_least_power_what_may_reach_the_floor_is_tried_in_the_order_of_its_power() {
    let judge = Judge::least_power(80);
    let cores = Calibration::e5520().unwrap().cores().unwrap();
    let all = placements(&cores);
    // The floor is 800; tier 2's error is 5%.
    let rates = [(1000, 60), (760, 10), (900, 20), (759, 1)];
    let rated: Vec<Rated> = all.iter().copied().zip(rates.map(|(kbps, mw)| reached(kbps, mw))).collect();
    assert_eq!(may_be_best(judge, &rated), [vec![all[1], all[2], all[0]]]);
    let equal: Vec<Rated> = all.iter().map(|placement| (*placement, reached(1000, 1))).collect();
    let parts = may_be_best(judge, &equal);
    assert_eq!((parts.concat().len(), parts[0].len()), (712, TRIED_MAX));
}

#[test]
fn for_a_rate_by_power_no_rate_is_too_small() {
    let all = [(Placement::SPREAD, reached(1000, 60)), (Placement::ALL_ON_ONE, reached(100, 5))];
    assert_eq!(may_be_best(Judge::THROUGHPUT_PER_WATT, &all), [[Placement::ALL_ON_ONE, Placement::SPREAD]]);
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

#[test]
fn next_to_a_configuration_each_core_has_another_speed_and_cores_of_one_clock_together() {
    let cores = Calibration::e5520().unwrap().cores().unwrap();
    let of = |core_of, speed| next_to(&Placement { core_of, speed }, &cores);
    let speeds = |all: Vec<Placement>| all.into_iter().map(|next| next.speed).collect::<Vec<_>>();
    assert_eq!(speeds(of([1, 2, 2], [8, 4, 4])), [[7, 4, 4], [8, 3, 3], [8, 5, 5]]);
    assert_eq!(speeds(of([1, 1, 1], [1, 1, 1])), [[2, 2, 2]]);
    assert_eq!(of([1, 2, 3], [4, 5, 6]).len(), 6);

    let cores = Calibration::exynos_5422().unwrap().cores().unwrap();
    let next = next_to(&Placement { core_of: [1, 5, 6], speed: [3, 4, 4] }, &cores);
    assert_eq!(speeds(next.clone()), [[2, 4, 4], [4, 4, 4], [3, 3, 3], [3, 5, 5]]);
    assert!(next.iter().all(|placement| placement.is_possible(&cores)));
}
