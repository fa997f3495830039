use super::*;
use crate::asymmetric::claims::claims;

#[test]
fn execution_times_are_averaged_and_throughputs_are() {
    let of = |performance, serves| Outcome {
        performance: vec![performance],
        serves: vec![serves],
        ..Outcome::default()
    };
    let both = |serves| performance(&[of(100, serves), of(300, serves)], 0);
    assert_eq!((both(false).round(), both(true)), (150.0, 200.0));
}

#[test]
fn what_claims_are_about_is_run_in_every_draw() {
    let calibration = Calibration::read().unwrap();
    let extent = Extent { placements: 1, seconds: 5, seed: 1, every_point: false, threads: 4 };
    let figures = figures(&calibration, extent).unwrap();
    let without: Vec<&str> = claims()
        .iter()
        .filter(|claim| !claim.id.starts_with("figure 4") && (claim.ours)(&figures).is_none())
        .map(|claim| claim.id)
        .collect();
    assert_eq!(without, Vec::<&str>::new());
}
