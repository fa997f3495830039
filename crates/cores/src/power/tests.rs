use super::*;
use proptest::prelude::*;

fn core(frequency: f64, duty: f64) -> CoreState {
    CoreState {
        frequency: Share(frequency),
        duty: Share(duty),
        activity: Share(duty),
        ..CoreState::default()
    }
}

#[test]
fn half_the_frequency_saves_more_than_half_the_duty() {
    let model = PowerModel::default();
    let total = |state| model.estimate(&[state, core(1.0, 1.0)]).cores[0].total();
    let (full, half_clock, half_duty) = (total(core(1.0, 1.0)), total(core(0.5, 1.0)), total(core(1.0, 0.5)));
    assert!(half_clock < half_duty && half_duty < full, "{half_clock} {half_duty} {full}");
    let at = |duty| model.estimate(&[core(1.0, duty)]).cores[0];
    assert!(
        (at(0.5).dynamic.0 - at(1.0).dynamic.0 / 2.0).abs() < 1e-9,
        "a duty cycle leaves the voltage alone"
    );
    assert!((at(0.5).leaked.0 - at(1.0).leaked.0).abs() < 1e-9);
}

#[test]
fn the_package_sleeps_when_all_but_one_are_parked_and_that_one_idles() {
    let model = PowerModel::default();
    let parked = CoreState { parked: true, ..CoreState::default() };
    let idle = CoreState { frequency: Share::ALL, duty: Share::ALL, ..CoreState::default() };
    assert!(model.estimate(&[idle.clone(), parked.clone()]).package_asleep);
    assert!(!model.estimate(&[core(1.0, 1.0), parked]).package_asleep);
    assert!(!model.estimate(&[idle.clone(), idle]).package_asleep);
}

#[test]
fn deep_idleness_costs_less_than_light_and_polling_is_the_lightest() {
    let model = PowerModel::default();
    let idle = |told: &[(&str, u64)]| {
        let told: Vec<_> = told.iter().map(|(name, time)| (*name, Microseconds(*time))).collect();
        let residency = model.residency(&told);
        let state = CoreState { frequency: Share::ALL, duty: Share::ALL, residency, ..CoreState::default() };
        model.estimate(&[state]).cores[0].idle
    };
    assert!(idle(&[("POLL", 0), ("C1", 10), ("deep", 90)]) < idle(&[("POLL", 0), ("C1", 90), ("deep", 10)]));
    assert_eq!(model.residency(&[("POLL", Microseconds(0))]), Vec::new());
    let shares =
        model.residency(&[("POLL", Microseconds(30)), ("x", Microseconds(0)), ("deep", Microseconds(70))]);
    assert!((shares[0].0 - 0.3).abs() < 1e-9 && (shares.last().unwrap().0 - 0.7).abs() < 1e-9, "{shares:?}");
}

#[test]
fn the_burner_takes_the_dynamic_power_of_what_it_keeps() {
    let model = PowerModel::default();
    let full = (model.core_full * model.static_share.rest()).0;
    assert!((model.burner(&core(1.0, 0.25)).0 - 0.75 * full).abs() < 1e-9);
    assert_eq!(model.burner(&core(1.0, 1.0)), Watts::ZERO);
}

#[test]
fn sensitivity_names_both_shares() {
    let rows = PowerModel::default().sensitivity(&[core(0.5, 1.0), core(1.0, 0.5)]);
    assert_eq!(rows.len(), 2);
    assert!(rows[1].total_high - rows[1].total_low > Watts(7.9));
    assert!(rows[0].elasticity != 0.0);
}

#[test]
fn nonsense_models_are_refused() {
    let bad = |change: fn(&mut PowerModel)| {
        let mut model = PowerModel::default();
        change(&mut model);
        assert!(model.check().is_err());
    };
    bad(|model| model.core_full = Watts(f64::NAN));
    bad(|model| model.static_share = Share(1.5));
    bad(|model| model.package_sleep = Watts(1000.0));
    bad(|model| model.points.clear());
    bad(|model| model.points.reverse());
    bad(|model| model.idle.clear());
    assert!(PowerModel::default().check().is_ok());
}

proptest! {
    #[test]
    fn power_is_never_negative(frequency in 0.0f64..1.5, activity in 0.0f64..1.0, duty in 0.0f64..1.0, parked: bool) {
        let state = CoreState { frequency: Share(frequency), activity: Share(activity), duty: Share(duty), parked, ..CoreState::default() };
        let estimate = PowerModel::default().estimate(&[state]);
        prop_assert!(estimate.cores[0].total() >= Watts::ZERO && estimate.total.0.is_finite());
    }
}
