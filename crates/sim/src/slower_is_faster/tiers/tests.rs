use super::*;
use crate::timed::check::{orders, point};

/// Nearer points they do not always order alike, and their rates differ: `eft sim tiers` says how much (docs/simulator.md).
#[test]
fn the_tiers_order_alike_what_lies_far_apart() {
    let calibration = Calibration::e5520().unwrap();
    let points: Vec<_> =
        (0..8).map(|seed| point(case(&calibration, "newtos", seed).unwrap(), seed)).collect();
    let (apart, differ) = orders(&points, 30);
    assert!(apart > 10 && differ == 0, "{points:?}");
    assert!(points.iter().all(|point| point.rate_off().abs() < 30.0), "{points:?}");
}

#[test]
fn points_are_of_all_ways_to_share_cores() {
    let calibration = Calibration::e5520().unwrap();
    let places = |seed| {
        let seats = case(&calibration, "newtos", seed).unwrap().setting.seats;
        let [tcp, ip, driver] = [1, 2, 3].map(|server| (seats[server].core, seats[server].thread));
        (tcp == ip && ip == driver, ip.0 == driver.0 && ip.1 != driver.1)
    };
    let all: Vec<_> = (0..40).map(places).collect();
    let count = |of| all.iter().filter(|place| **place == of).count();
    let (one_core, threads, cores) = (count((true, false)), count((false, true)), count((false, false)));
    assert_eq!(one_core + threads + cores, 40);
    assert!(one_core > 4 && threads > 4 && cores > 12, "{one_core} {threads} {cores}");
}
