use super::*;
use alloc::string::String;
use alloc::vec;

use crate::observation::Observation;
use crate::platform::Platform;
use crate::policy::adaptive::peek::{Pace, Peek};
use crate::policy::{Goal, Settings};
use eft_machine::Machine;

/// tcp, ip and nic0, each on a CPU of its own with clocks of 1/8, 2/8 and so on.
fn spread(goal: Goal) -> Adaptive {
    let work = [("tcp", 0.9), ("ip", 0.2), ("nic0", 0.3)];
    let names: Vec<String> = work.iter().map(|(name, _)| String::from(*name)).collect();
    let levels: Vec<Share> = (1..=8).map(|eighths| Share(f64::from(eighths) / 8.0)).collect();
    let platform = Platform::new(Machine::of_equals(3), &names, Some(&levels)).unwrap();
    let mut policy = Adaptive::new(&platform, &Settings { goal, ..Settings::default() });
    for ((name, work), cpu) in work.into_iter().zip(platform.managed().iter()) {
        policy.work.insert(name.into(), work);
        policy.plan.seats.entry(name.into()).and_modify(|seat| seat.cpu = cpu);
    }
    policy.plan.speeds.clear();
    policy
}

fn full() -> Measured {
    Measured { throughput: Throughput(1000.0), busy: 1.0, overloaded: 1.0, ..Measured::default() }
}

fn speeds(policy: &Adaptive, plan: &Plan) -> Vec<f64> {
    policy.platform.managed().iter().map(|cpu| plan.speed(cpu).0).collect()
}

#[test]
fn all_clocks_are_halved_until_there_is_none_below() {
    let mut policy = spread(Goal::least_power(Share(0.95)));
    for expected in [0.5, 0.25, 0.125, 0.125] {
        policy.plan = policy.slowed();
        assert_eq!(speeds(&policy, &policy.plan), vec![expected; 3]);
    }
    policy.plan.speeds.insert(policy.plan.seats["tcp"].cpu, Share(0.625));
    assert_eq!(speeds(&policy, &policy.slowed()), vec![0.25, 0.125, 0.125], "the next level below half");
}

#[test]
fn the_two_that_do_least_come_together_first() {
    let mut policy = spread(Goal::THROUGHPUT_PER_WATT);
    let cpu = |plan: &Plan, name: &str| plan.seats[name].cpu;
    let nic = cpu(&policy.plan, "nic0");
    let plan = policy.fewer().unwrap();
    assert_eq!((cpu(&plan, "ip"), cpu(&plan, "nic0")), (nic, nic));
    assert_eq!(cpu(&plan, "tcp"), cpu(&policy.plan, "tcp"));
    policy.plan = plan;
    policy.plan = policy.fewer().unwrap();
    assert!(policy.plan.is_consolidated());
    assert!(policy.fewer().is_none(), "no CPU is left");
}

#[test]
fn a_try_waits_until_what_it_may_cost_is_as_little_as_the_goal_allows() {
    let waits = |goal| {
        let policy = spread(goal);
        policy.thrifty_from(&policy.slowed(), &full())
    };
    // tcp, which was busy for 0.9 of the time, carries 1/1.8 at half of its clock: 44% for 80 ms are 5% of 0.7 s.
    let [least, floor_of_99] = [0.95, 0.99].map(|floor| waits(Goal::least_power(Share(floor))));
    assert!((700..720).contains(&least.as_millis()), "{least:?}");
    assert!((3_500..3_600).contains(&floor_of_99.as_millis()), "{floor_of_99:?}");
    assert_eq!(waits(Goal::least_power(Share(0.5))), least, "5% at most");
    assert_eq!(waits(Goal::THROUGHPUT_PER_WATT), least);
}

#[test]
fn a_load_that_takes_no_more_or_fills_no_cpu_has_nothing_to_lose() {
    let mut policy = spread(Goal::least_power(Share(0.95)));
    let calm = Measured { overloaded: 0.0, ..full() };
    assert_eq!(policy.thrifty_from(&policy.slowed(), &calm), Duration::ZERO);
    policy.ceiling.note(full().throughput, full().throughput, 2.0);
    assert_eq!(policy.thrifty_from(&policy.slowed(), &full()), Duration::ZERO);
}

#[test]
fn only_a_goal_about_power_asks_for_less_of_it() {
    let tries = |goal| {
        let mut policy = spread(goal);
        policy.peeks = vec![Peek::Slow];
        policy.costs.load_begins(Instant::ZERO);
        let seen = Observation::default();
        policy.peek(Instant(2_000_000_000), &seen, &full(), Pace::Last).is_some()
    };
    assert!(tries(Goal::least_power(Share(0.95))) && tries(Goal::THROUGHPUT_PER_WATT));
    assert!(!tries(Goal::THROUGHPUT));
}
