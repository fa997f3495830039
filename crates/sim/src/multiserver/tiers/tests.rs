use std::collections::BTreeSet;

use super::*;
use crate::batch::run::Span;
use crate::timed::check::{Point, web_point_of};

#[test]
fn points_are_of_all_sizes_numbers_of_clients_and_clocks() {
    let calibration = Calibration::e5520().unwrap();
    let all: Vec<WebCase> = (0..100).map(|seed| case(&calibration, "newtos", seed).unwrap()).collect();
    let different = |of: &dyn Fn(&WebCase) -> u64| all.iter().map(of).collect::<BTreeSet<u64>>().len();
    assert_eq!(different(&|case| case.file_bytes), SIZES.len());
    assert_eq!(different(&|case| case.web.stack.streams as u64), CONNECTIONS.len());
    for server in [1, 2, 3] {
        let clocks = different(&|case| case.setting.seats[server].clock.effective_khz());
        assert_eq!(clocks, SPEEDS.len());
    }
    assert!(all.iter().all(|case| case.setting.seats[1].clock == case.setting.seats[2].clock));
}

#[test]
fn the_tiers_agree_in_both_columns() {
    let calibration = Calibration::e5520().unwrap();
    let span = Span { warm_up_ms: 20, measured_ms: 100 };
    // Files of 1 MB and 10 B, for few clients and many.
    for (system, seeds) in [("newtos", [1, 2, 15]), ("eft", [1, 2, 15])] {
        let point = |seed| web_point_of(&case(&calibration, system, seed).unwrap(), seed, span);
        let all: Vec<Point> = seeds.map(point).into();
        assert!(all.iter().all(Point::agrees), "{all:?}");
    }
}
