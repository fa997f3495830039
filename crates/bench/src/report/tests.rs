use super::*;

#[test]
fn a_missed_aim_is_an_error_that_names_it() {
    let figure = |median, aim| Figure::new("speed", "Gb/s", vec![median; 6]).aim(aim);
    let verdict = |figures: &[Figure]| verdict("bulk", figures).map_err(|error| format!("{error:#}"));
    let reached = [figure(1.0, Aim::AtLeast(1.0)), Figure::new("else", "", vec![])];
    assert_eq!(verdict(&reached), Ok(()));
    assert_eq!(verdict(&[]), Err("bulk measured nothing".into()));
    let error = verdict(&[figure(0.5, Aim::AtLeast(0.7)), figure(1.0, Aim::AtMost(1.0))]).unwrap_err();
    assert_eq!(error, "bulk missed 1 of its aims: speed (0.500, aim at least 0.7)");
}
