use super::*;
use crate::ladder::Aims;
use alloc::string::String;
use eft_machine::Machine;

#[test]
fn what_is_promised_is_told_in_the_watts_of_the_meter() {
    let names: Vec<String> = ["tcp", "ip"].map(String::from).into();
    let platform = Platform::new(Machine::of_equals(2), &names, Some(&[Share(0.5)])).unwrap();
    let ladder = Ladder::build(&platform, &Aims::default());
    let demand = names.iter().map(|name| (name.clone(), 0.2)).collect();
    let promised = |metered: Option<Watts>| {
        let here = Position {
            platform: &platform,
            model: &PowerModel::default(),
            spare: Spare::default(),
            plan: &ladder.rung(ladder.top()).plan,
            metered,
            demand: &demand,
            waits: &Waits::new(),
            beside_others: &Demand::new(),
            others: &Activity::new(),
            saturated: false,
            wanted: Some(1.0),
            loose: false,
            elasticity: 0.0,
        };
        candidates(&here, &ladder).iter().map(|next| next.power).collect::<Vec<Watts>>()
    };
    let modelled = promised(None);
    let here_takes = Watts(20.0);
    let (metered, twice) = (promised(Some(here_takes)), promised(Some(here_takes * 2.0)));
    for ((modelled, metered), twice) in modelled.iter().zip(&metered).zip(&twice) {
        assert!((*twice / *metered - 2.0).abs() < 1e-9 && *modelled > Watts::ZERO);
    }
    assert!(metered.iter().any(|watts| *watts < here_takes), "less speed takes less: {metered:?}");
}
