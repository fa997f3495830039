use super::*;
use crate::indicators::Indicators;
use crate::profile::Outcome;
use eft_machine::{Machine, Share, Watts};

#[test]
fn after_enough_tries_the_best_of_them_stays() {
    let platform =
        Platform::new(Machine::of_equals(2), &["tcp".into(), "ip".into()], Some(&[Share(0.5)])).unwrap();
    let ladder = Ladder::build(&platform, &Aims::default());
    let plans: Vec<Plan> = ladder.rungs().iter().map(|rung| rung.plan.clone()).collect();
    let [slow, .., fast] = &plans[..] else { panic!("two rungs at least") };
    let mut profiles = Profiles::default();
    profiles.record("any", Mix::default(), Outcome { plan: slow.clone(), ..Outcome::default() });
    let settings = Settings { profiles, ..Settings::default() };
    let ends_at = |follows, throughput| {
        let mut policy = Profile::new(&platform, &settings).unwrap();
        let measured = |throughput| Measured {
            throughput: Throughput(throughput),
            power: Watts(1.0),
            ..Measured::default()
        };
        policy.seen = alloc::vec![(fast.clone(), measured(1000.0)), (slow.clone(), measured(throughput))];
        (policy.plan, policy.follows, policy.refined) = (slow.clone(), follows, REFINED_MAX);
        policy.measured_first(Instant::ZERO, measured(throughput));
        policy.plan
    };
    assert!(ends_at(Follows::Yes, 800.0).is_same(fast));
    assert!(ends_at(Follows::Yes, 990.0).is_same(slow), "as good is not worth a change");
    assert!(ends_at(Follows::No, 800.0).is_same(slow), "it asks for no more");
}

#[test]
fn a_load_that_takes_more_work_than_the_nearest_one_is_explored_until_another_comes() {
    let platform =
        Platform::new(Machine::of_equals(2), &["tcp".into(), "ip".into()], Some(&[Share(0.5)])).unwrap();
    let slow = Ladder::build(&platform, &Aims::default()).rung(0).plan.clone();
    let (mix, mut profiles) = (Mix { size: 0.7, ..Mix::default() }, Profiles::default());
    let recorded = Outcome { throughput: Throughput(1000.0), plan: slow, ..Outcome::default() };
    profiles.record("bulk", mix, recorded);
    let settings = Settings { profiles, ..Settings::default() };
    let after = |throughput, busy| {
        let mut policy = Profile::new(&platform, &settings).unwrap();
        let now = Measured { throughput: Throughput(throughput), busy, mix, ..Measured::default() };
        policy.resting = false;
        policy.measured_first(Instant::ZERO, now);
        policy
    };
    assert!(after(900.0, 0.9).explorer().is_none(), "nearly what the profile says");
    assert!(after(600.0, 0.5).explorer().is_none(), "it asks for no more");
    let mut policy = after(600.0, 0.9);
    assert!(policy.explorer().is_some());
    assert_eq!(policy.learnt(), 0, "nothing is learnt of a load that is interpolated from others");
    let sample = |size: f64| {
        let bytes = 600.0 * size / (1.0 - size);
        let indicators = Indicators { mean_segment_bytes: bytes, ..Indicators::default() };
        Observation { indicators, ..Observation::default() }
    };
    for _ in 0..MOVED_SAMPLES {
        assert!(policy.explore(Instant::ZERO, &sample(0.5)).is_some());
    }
    assert!(policy.explore(Instant::ZERO, &sample(0.7)).is_some(), "it was a passing one");
    for _ in 0..MOVED_SAMPLES {
        assert!(policy.explore(Instant::ZERO, &sample(0.5)).is_some());
    }
    assert!(policy.explore(Instant::ZERO, &sample(0.5)).is_none());
    assert!(policy.explorer().is_none() && policy.chosen_for.is_none());
}
