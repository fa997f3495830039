use super::*;

fn entry(reason: &str, plan: Option<Wanted>) -> Entry {
    let readings = Some(Readings { busiest_cpu: Some(CpuId(1)), ..Readings::default() });
    Entry {
        at: Instant::from_millis(1500),
        policy: PolicyName::Adaptive,
        reason: reason.into(),
        readings,
        plan,
    }
}

#[test]
fn it_is_bounded_and_counts_what_repeats() {
    let mut history = History::default();
    for _ in 0..1000 {
        history.add(entry("stale", None));
    }
    assert_eq!(history.entries().count(), 1);
    assert_eq!(history.entries().next().unwrap().repeated, 999);
    for number in 0..1000 {
        history.add(entry(&format!("{number}"), Some(Wanted::default())));
    }
    assert_eq!(history.entries().count(), ENTRIES_MAX);
    assert_eq!((history.changes(), history.taken()), (1000, 1001));
}

#[test]
fn an_entry_is_one_line() {
    let text = format!("{}", entry("climbed", Some(Wanted::default())));
    assert!(!text.contains('\n') && text.starts_with("1.500 s adaptive: climbed ["), "{text}");
}

#[test]
fn each_decision_has_one_outcome() {
    let mut history = History::default();
    let outcomes = |history: &History| history.entries().map(|e| e.outcome.clone()).collect::<Vec<_>>();
    history.add(entry("first", Some(Wanted::default())));
    history.add(entry("second", Some(Wanted::default())));
    history.conclude_where(|number| number < 2, &Outcome::Overtaken);
    history.add(entry("a note", None));
    history.conclude(Outcome::Applied);
    assert_eq!(outcomes(&history), [Outcome::Overtaken, Outcome::Applied, Outcome::PlanStays]);
    history.conclude(Outcome::Failed("nothing was under way".into()));
    assert_eq!(outcomes(&history), [Outcome::Overtaken, Outcome::Applied, Outcome::PlanStays]);
}
