use super::*;

#[test]
fn every_parameter_has_tag_source_and_range() {
    let calibration = Calibration::read().unwrap();
    assert!(calibration.parameters().count() > 60);
    assert!(calibration.program("hmmer").unwrap().ipc > 1000 && calibration.program("doom").is_err());
}

#[test]
fn draws_stay_within_their_ranges_and_repeat() {
    let calibration = Calibration::read().unwrap();
    let (one, two) = (calibration.draw(7), calibration.draw(7));
    assert_eq!(
        one.parameters().map(|(_, p)| p.value).collect::<Vec<_>>(),
        two.parameters().map(|(_, p)| p.value).collect::<Vec<_>>()
    );
    let mut moved = 0;
    for ((name, drawn), (_, nominal)) in one.parameters().zip(calibration.parameters()) {
        assert!(drawn.low.is_none_or(|low| (low..=drawn.high.unwrap()).contains(&drawn.value)), "{name}");
        moved += usize::from(drawn.value != nominal.value);
    }
    assert!(moved > 30);
}
