use super::super::reasons::reason;
use super::super::runs::{Machines, figures};
use super::*;

#[test]
fn names_are_unique_and_all_figures_are_there() {
    let figures = figures(&Machines::nominal().unwrap()).unwrap();
    let mut names: Vec<&str> = claims().iter().map(|claim| claim.id).collect();
    assert!(claims().iter().all(|claim| (claim.ours)(&figures).is_some_and(f64::is_finite)));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), claims().len());
}

#[test]
fn what_is_input_comes_out() {
    let figures = figures(&Machines::nominal().unwrap()).unwrap();
    for claim in claims().iter().filter(|claim| claim.fitted) {
        let ours = (claim.ours)(&figures).unwrap();
        assert!(claim.rule.deviation(ours).abs() < 0.1, "{}: {ours}", claim.id);
    }
}

#[test]
fn what_is_missed_has_a_reason() {
    let figures = figures(&Machines::nominal().unwrap()).unwrap();
    for claim in claims().iter().filter(|claim| !claim.holds(&figures)) {
        assert!(reason(claim.id).is_some(), "{}", claim.id);
    }
}
