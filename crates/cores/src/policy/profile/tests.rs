use super::*;
use crate::estimate::Demand;
use crate::indicators::Indicators;
use crate::policy::Goal;
use crate::profile::Outcome;
use crate::sample::Traffic;
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

/// A policy for two components on two CPUs that has chosen the only plan with a profile: `pick`'s of the ladder, with 1000 recorded.
fn with_one_profile(pick: fn(&Ladder) -> usize) -> Profile {
    let platform =
        Platform::new(Machine::of_equals(2), &["tcp".into(), "ip".into()], Some(&[Share(0.5)])).unwrap();
    let ladder = Ladder::build(&platform, &Aims::default());
    let plan = ladder.rung(pick(&ladder)).plan.clone();
    let mut profiles = Profiles::default();
    let recorded = Outcome { throughput: Throughput(1000.0), plan: plan.clone(), ..Outcome::default() };
    profiles.record("bulk", Mix::default(), recorded);
    let mut policy = Profile::new(&platform, &Settings { profiles, ..Settings::default() }).unwrap();
    (policy.plan, policy.resting) = (plan, false);
    policy
}

fn saturated(throughput: f64) -> Measured {
    Measured { throughput: Throughput(throughput), power: Watts(1.0), busy: 0.9, ..Measured::default() }
}

#[test]
fn a_plan_that_carries_more_than_its_record_is_explored_where_its_work_has_room() {
    let explores = |pick, throughput| {
        let mut policy = with_one_profile(pick);
        policy.work.add(Demand::from([("tcp".into(), 0.5), ("ip".into(), 0.4)]));
        policy.measured_first(Instant::ZERO, saturated(throughput));
        policy.explorer().is_some()
    };
    let (slowest, fastest): (fn(&Ladder) -> usize, fn(&Ladder) -> usize) = (|_| 0, Ladder::top);
    assert!(explores(slowest, 1300.0), "another machine, and both share a slow CPU");
    assert!(!explores(slowest, 1100.0), "what is recorded of the other plans holds");
    assert!(!explores(fastest, 3700.0), "there is nothing better");
    assert!(explores(fastest, 800.0), "another load");
}

#[test]
fn a_load_that_fills_its_plan_later_is_measured_again() {
    let mut policy = with_one_profile(|_| 0);
    let calm = Measured { busy: 0.3, ..saturated(300.0) };
    policy.measured_first(Instant::ZERO, calm);
    assert!(policy.measured && policy.explorer().is_none());
    let full = Measured { overloaded: 1.0, ..saturated(700.0) };
    for again in [false, true] {
        policy.choose(Instant::ZERO, full, "computes", false);
        assert_eq!(policy.measured, again, "while it stays full once is enough");
        policy.measured = true;
    }
    policy.measured_first(Instant::ZERO, full);
    assert!(policy.explorer().is_some(), "the profiles promise more");
}

#[test]
fn an_exploration_that_finds_nothing_better_goes_back_and_is_not_repeated() {
    let mut policy = with_one_profile(|_| 0);
    let chosen = policy.plan.clone();
    policy.measured_first(Instant::ZERO, saturated(800.0));
    assert!(policy.explorer().is_some());
    let other = Ladder::build(&policy.platform, &Aims::default());
    policy.change(other.rung(other.top()).plan.clone());
    assert!(policy.fall_back(&saturated(700.0)).is_some());
    assert!(policy.explorer().is_none() && policy.plan.is_same(&chosen));
    policy.measured_first(Instant::ZERO, saturated(800.0));
    assert!(policy.explorer().is_none(), "it was explored");
}

#[test]
fn an_exploration_that_finds_as_much_goes_on() {
    let mut policy = with_one_profile(|_| 0);
    policy.measured_first(Instant::ZERO, saturated(800.0));
    assert!(policy.fall_back(&saturated(799.0)).is_none(), "as much");
    assert!(policy.fall_back(&saturated(100.0)).is_none(), "from there on adaptive judges");
    assert!(policy.explorer().is_some());
}

#[test]
fn less_power_is_looked_for_once_a_load_has_lasted_if_the_goal_is_about_it() {
    const S: u64 = 1_000_000_000;
    let looks = |goal, after_s: u64| {
        let mut policy = with_one_profile(|_| 0);
        (policy.settings.goal, policy.chosen, policy.promised) = (goal, Instant(S), 0.8);
        let found = policy.save_power(Instant((1 + after_s) * S), saturated(800.0));
        assert_eq!(found.is_some(), policy.explorer().is_some());
        found.is_some()
    };
    assert!(looks(Goal::least_power(Share(0.95)), 3) && looks(Goal::THROUGHPUT_PER_WATT, 3));
    assert!(!looks(Goal::least_power(Share(0.95)), 2), "it may be over soon");
    assert!(!looks(Goal::THROUGHPUT, 3));
}

#[test]
fn a_successor_looks_for_nothing_that_its_predecessor_has_looked_for() {
    let mut policy = with_one_profile(|_| 0);
    policy.settings.goal = Goal::THROUGHPUT_PER_WATT;
    policy.resume(policy.plan.clone(), Instant::ZERO);
    let traffic = Traffic { received_bytes: 1 << 20, received_segments: 1000, ..Traffic::default() };
    let seen = Observation { traffic, ..Observation::default() };
    for ms in (10..10_000).step_by(10) {
        policy.decide(Instant(ms * 1_000_000), &seen);
    }
    assert!(policy.chosen_for.is_some() && policy.explorer().is_none());
}
