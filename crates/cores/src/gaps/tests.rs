use super::*;

#[test]
fn every_microsecond_outside_of_steps_is_told() {
    let at = Instant::from_micros;
    let names = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let events = [
        SchedEvent::Switch { at: at(20), prev: 1, runnable: false, next: 9 },
        SchedEvent::Stack {
            at: at(21),
            tid: 1,
            functions: names(&["__schedule", "schedule", "synchronize_rcu_expedited", "rcu_sync_enter"]),
        },
        SchedEvent::Wake { at: at(30), tid: 2 },
        SchedEvent::Switch { at: at(45), prev: 9, runnable: true, next: 2 },
        SchedEvent::Switch { at: at(70), prev: 2, runnable: false, next: 1 },
    ];
    let gaps = attribute(&events, &[(at(50), at(60))], (at(10), at(90)), 1, &[2]);
    let told = |phase, what: &str| {
        gaps.iter()
            .find(|gap| gap.phase == phase && gap.what.contains(what))
            .map(|gap| gap.duration.as_micros())
    };
    assert_eq!(told(Phase::Before, "the caller runs"), Some(10));
    assert_eq!(told(Phase::Before, "synchronize_rcu_expedited (by rcu_sync_enter)"), Some(9));
    assert_eq!(told(Phase::Before, "worker of the kernel waits"), Some(15));
    assert_eq!(told(Phase::Before, "worker of the kernel runs"), Some(5));
    assert_eq!(told(Phase::After, "worker of the kernel runs"), Some(10));
    assert_eq!(told(Phase::After, "the caller runs"), Some(20));
    assert_eq!(gaps.iter().map(|gap| gap.duration).sum::<Duration>(), Duration::from_micros(80 - 10));
}
