use super::*;

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

fn situation() -> Situation {
    Situation { present: set("0-3"), online: set("0-2"), managed: set("0-3"), ..Situation::default() }
}

#[test]
fn each_refusal_names_its_reason() {
    let reason = |cpus: &str| situation().check_leave(&set(cpus)).unwrap_err().to_string();
    assert!(reason("0").contains("base CPU"));
    assert!(reason("9").contains("does not exist"));
    assert!(reason("1,3").contains("not by eft"));
    assert!(reason("").contains("no CPU"));
    let unmanaged = Situation { managed: set("1"), ..situation() };
    assert!(unmanaged.check_leave(&set("2")).unwrap_err().to_string().contains("not managed"));
    let only = Situation { online: set("1-2"), parked: set("2"), ..situation() };
    assert!(only.check_leave(&set("1")).unwrap_err().to_string().contains("last one"));
    assert!(situation().check_leave(&set("1-2")).is_ok());
}

#[test]
fn critical_steps_come_first_and_lazy_ones_have_a_time() {
    let lazy_from = STEPS.iter().position(|(_, urgency)| *urgency == Urgency::Lazy).unwrap();
    assert!(STEPS[lazy_from..].iter().all(|(_, urgency)| *urgency == Urgency::Lazy));
    let delays = Delays { offline_after: Some(Duration::from_secs(1)), ..Delays::default() };
    assert_eq!(delays.due(Step::UpdateMasks), None);
    assert!(delays.due(Step::SweepNewcomers).unwrap() < Duration::from_millis(10));
    assert!(STEPS[lazy_from..].iter().all(|(step, _)| delays.due(*step).is_some()));
    assert_eq!(Delays::default().due(Step::Offline), None);
}
