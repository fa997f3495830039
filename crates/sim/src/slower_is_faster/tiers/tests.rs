use super::*;
use crate::batch::run::Span;
use crate::batch::servers::Server;
use crate::timed::check::{orders, point_of};
use crate::timed::run;

const SPAN: Span = Span { warm_up_ms: 50, measured_ms: 600 };

/// Nearer points they do not always order alike, and their rates differ: `eft sim tiers` says how much (docs/simulator.md).
#[test]
fn the_tiers_order_alike_what_lies_far_apart() {
    let calibration = Calibration::e5520().unwrap();
    let points: Vec<_> =
        (0..8).map(|seed| point_of(case(&calibration, "newtos", seed).unwrap(), seed, SPAN)).collect();
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

/// While others have the core, more frames come than ip's queue takes.
#[test]
fn a_driver_that_finds_no_room_waits_until_its_neighbour_says_something() {
    let calibration = Calibration::e5520().unwrap();
    let case = case(&calibration, "eft", 18).unwrap();
    assert!(case.setting.shares_cores());
    let outcome = run(&case.profile, &case.setting, 20, Span { warm_up_ms: 50, measured_ms: 300 });
    let per_ms = |bytes: u64| outcome.kbps / 8 / bytes;
    let useful = per_ms(outcome.bytes_per_segment) + 2 * per_ms(outcome.bytes_per_acknowledgement);
    let messages = outcome.messages_per_ms[Server::Driver as usize];
    assert!(messages * 10 < useful * 12, "{messages} of {useful}: {outcome:?}");
}
