use super::*;
use crate::goal::Goal;
use crate::platform::Platform;
use crate::policy::Settings;
use crate::throughput::Throughput;
use alloc::string::String;
use eft_machine::{CpuId, Machine, Share};

fn policy(goal: Goal) -> Adaptive {
    let names = ["tcp", "ip"].map(String::from);
    let levels = [Share(0.25), Share(0.5), Share(0.75)];
    let platform = Platform::new(Machine::of_equals(3), &names, Some(&levels)).unwrap();
    Adaptive::new(&platform, &Settings { goal, ..Settings::default() })
}

/// All on one CPU at this speed, or the second component elsewhere.
fn seated(policy: &Adaptive, speed: f64, apart: bool) -> Plan {
    let mut plan = policy.plan.clone();
    let cpus: alloc::vec::Vec<CpuId> = policy.platform.managed().iter().collect();
    for (i, seat) in plan.seats.values_mut().enumerate() {
        seat.cpu = cpus[if apart { i } else { 0 }];
    }
    plan.speeds = plan.used().iter().map(|cpu| (cpu, Share(speed))).collect();
    plan
}

fn measured(throughput: f64) -> Measured {
    Measured { throughput: Throughput(throughput), ..Measured::default() }
}

#[test]
fn one_cpu_that_fell_far_short_is_not_tried_with_a_slower_clock() {
    let mut policy = policy(Goal::THROUGHPUT);
    let one = |policy: &Adaptive, speed| seated(policy, speed, false);
    policy.plan = one(&policy, 0.75);
    policy.note_short(&measured(1000.0), &measured(900.0));
    assert!(!policy.falls_short(&one(&policy, 0.5)), "a tenth less shows nothing");
    policy.note_short(&measured(1000.0), &measured(500.0));
    policy.plan = one(&policy, 0.5);
    policy.note_short(&measured(1000.0), &measured(400.0));
    assert!(policy.falls_short(&one(&policy, 0.75)) && policy.falls_short(&one(&policy, 0.25)));
    assert!(!policy.falls_short(&one(&policy, 1.0)), "a faster one may do");
    assert!(!policy.falls_short(&seated(&policy, 0.25, true)), "several CPUs");
}

#[test]
fn several_cpus_show_nothing_and_a_goal_that_allows_less_is_no_shortfall() {
    let mut several = policy(Goal::THROUGHPUT);
    several.plan = seated(&several, 0.5, true);
    several.note_short(&measured(1000.0), &measured(100.0));
    assert!(!several.falls_short(&seated(&several, 0.25, false)));
    for goal in [Goal::least_power(Share(0.5)), Goal::THROUGHPUT_PER_WATT] {
        let mut policy = policy(goal);
        policy.plan = seated(&policy, 0.5, false);
        policy.note_short(&measured(1000.0), &measured(500.0));
        assert!(!policy.falls_short(&seated(&policy, 0.25, false)), "{goal}");
    }
}
