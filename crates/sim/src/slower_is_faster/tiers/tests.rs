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
