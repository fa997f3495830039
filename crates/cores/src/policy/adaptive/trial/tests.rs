use super::*;
use crate::platform::Platform;
use crate::policy::Settings;
use core::time::Duration;
use eft_machine::Machine;

const S: u64 = 1_000_000_000;

#[test]
fn what_costs_more_than_a_young_load_may_give_back_is_waited_for() {
    let platform = Platform::new(Machine::of_equals(2), &["tcp".into(), "ip".into()], Some(&[])).unwrap();
    let mut policy = Adaptive::new(&platform, &Settings::default());
    // Taking ip off the one CPU gains 6%.
    let demand = Demand::from([("tcp".into(), 0.94), ("ip".into(), 0.06)]);
    let now = Measured {
        throughput: Throughput(1000.0),
        power: Watts(1.0),
        overloaded: 1.0,
        ..Measured::default()
    };
    let seen = Observation::default();
    policy.best = now.throughput;
    policy.costs.load_begins(Instant::ZERO);
    let promised =
        |policy: &mut Adaptive, time| policy.promising(time, &seen, &now, &demand).map(|next| next.plan);
    let spread = promised(&mut policy, Instant(S)).expect("it costs 5 ms there and 5 ms back");
    assert!(!spread.is_consolidated() && policy.patient_until == Instant::ZERO);
    // Moves turn out to cost 40 ms: 8% of a load that may last another second.
    for _ in 0..40 {
        let here = policy.plan.clone();
        policy.costs.begins(&here, &spread, Throughput(1000.0));
        policy.costs.learn(Duration::from_millis(40));
    }
    assert_eq!(promised(&mut policy, Instant(S)), None);
    assert_eq!(policy.patient_until, Instant(S + S / 2));
    assert_eq!(promised(&mut policy, Instant(2 * S)), Some(spread));
    // What promises nothing is not waited for.
    policy.patient_until = Instant::ZERO;
    let (even, idle) = (Demand::from([("tcp".into(), 0.99), ("ip".into(), 0.01)]), Instant(60 * S));
    assert!(policy.promising(idle, &seen, &now, &even).is_none() && policy.patient_until == Instant::ZERO);
}

#[test]
fn a_load_that_takes_no_more_is_offered_no_more() {
    let platform = Platform::new(Machine::of_equals(2), &["tcp".into(), "ip".into()], Some(&[])).unwrap();
    let mut policy = Adaptive::new(&platform, &Settings::default());
    let demand = Demand::from([("tcp".into(), 0.5), ("ip".into(), 0.5)]);
    let now = Measured {
        throughput: Throughput(1000.0),
        power: Watts(1.0),
        overloaded: 1.0,
        ..Measured::default()
    };
    policy.best = now.throughput;
    policy.costs.load_begins(Instant::ZERO);
    let promised = |policy: &mut Adaptive| {
        policy.promising(Instant(60 * S), &Observation::default(), &now, &demand).map(|next| next.plan)
    };
    let spread = promised(&mut policy).expect("twice as much");
    assert!(!spread.is_consolidated());
    let base = policy.plan.clone();
    policy.change(spread.clone());
    let trial =
        Trial { base: base.clone(), was: now, demand: demand.clone(), peek: None, pace: Pace::Thorough };
    policy.learn_ceiling(&trial, &now, false);
    policy.change(base);
    assert!(policy.is_sated(&now), "two CPUs had no more");
    assert_eq!(promised(&mut policy), None);
    let more = Measured { throughput: Throughput(1100.0), ..now };
    assert!(!policy.is_sated(&more));
}
