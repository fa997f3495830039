use super::*;
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
