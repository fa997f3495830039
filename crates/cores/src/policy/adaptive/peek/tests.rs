use super::*;
use crate::estimate::Demand;
use crate::observation::CpuLoad;
use crate::platform::Platform;
use crate::policy::Settings;
use crate::throughput::Throughput;
use alloc::vec;
use alloc::vec::Vec;
use eft_machine::Machine;

const S: u64 = 1_000_000_000;
const THROUGHPUT: Throughput = Throughput(1000.0);

/// A policy whose stack is spread, with this much work, and what remains to be tried.
fn spread(work: &[(&str, f64)], peeks: Vec<Peek>) -> Adaptive {
    let names: Vec<String> = work.iter().map(|(name, _)| String::from(*name)).collect();
    let platform = Platform::new(Machine::of_equals(3), &names, Some(&[])).unwrap();
    let mut policy = Adaptive::new(&platform, &Settings::default());
    policy.work = Demand::from_iter(names.iter().zip(work).map(|(name, (_, work))| (name.clone(), *work)));
    for (name, cpu) in names.iter().zip(platform.managed().iter()) {
        policy.plan.seats.entry(name.clone()).and_modify(|seat| seat.cpu = cpu);
    }
    policy.costs.load_begins(Instant::ZERO);
    let work = policy.work.clone();
    policy.rebuild(&work, &Observation::default());
    policy.peeks = peeks;
    policy
}

/// Whether it begins a try at this time.
fn tries(policy: &Adaptive, at: u64) -> bool {
    policy.clone().peek(Instant(at), &Observation::default(), &now(), Pace::Thorough).is_some()
}

fn now() -> Measured {
    Measured { throughput: THROUGHPUT, busy: 0.6, ..Measured::default() }
}

/// It has seen all on one CPU, which was full with a third of the throughput.
fn see_together(policy: &mut Adaptive) {
    let together = policy.peeked(Peek::Consolidated, &Observation::default()).unwrap();
    let count = policy.work.len() as f64;
    let work = policy.work.keys().map(|name| (name.clone(), 1.0 / count)).collect();
    policy.sharing.note(&together, &work, THROUGHPUT / 3.0);
}

#[test]
fn one_cpu_is_tried_when_the_load_is_old_enough_for_what_that_may_cost() {
    let mut policy = spread(&[("tcp", 0.3), ("ip", 0.3)], vec![Peek::Consolidated]);
    assert!(tries(&policy, S), "one CPU would be busy for 0.6 of the time");
    see_together(&mut policy);
    // Two thirds of the throughput for 80 ms are 1% of 5.3 s.
    let Some(at) = policy.waits_for_peek(Instant(S), &Observation::default(), &now()) else {
        panic!("waits")
    };
    assert!(!tries(&policy, S) && !tries(&policy, at.0 - 1) && tries(&policy, at.0));
    assert!((5_300_000_000..5_400_000_000).contains(&at.0), "{at:?}");
    policy.peeks.clear();
    assert_eq!(policy.waits_for_peek(Instant(S), &Observation::default(), &now()), None);
}

#[test]
fn what_is_seen_while_programs_crowd_the_cpus_says_nothing_of_company() {
    let mut policy = spread(&[("tcp", 0.3), ("ip", 0.3)], vec![Peek::Consolidated]);
    let (work, calm) = (policy.work.clone(), Observation::default());
    let used = policy.plan.used();
    let cpus = used.iter().map(|cpu| CpuLoad { cpu, others: OTHERS_MIN, ..CpuLoad::default() }).collect();
    let crowded = Observation { cpus, ..Observation::default() };
    let together = policy.peeked(Peek::Consolidated, &calm).unwrap();
    let apart = core::mem::replace(&mut policy.plan, together);
    policy.note_sharing(&work, &crowded, THROUGHPUT);
    assert!(policy.beside_others(&calm, &now()).is_empty(), "not learnt");
    policy.note_sharing(&work, &calm, THROUGHPUT);
    assert_eq!(policy.beside_others(&calm, &now()), work);
    policy.plan = apart;
    assert!(policy.beside_others(&crowded, &now()).is_empty(), "not used");
}

#[test]
fn a_top_of_the_ladder_that_would_not_keep_up_is_no_faster_rung() {
    let mut policy = spread(&[("tcp", 0.59), ("ip", 0.21), ("nic0", 0.17)], vec![Peek::Spread]);
    let top = &policy.ladder.rung(policy.ladder.top()).plan;
    assert_eq!(top.used().len(), 2, "tcp's CPU is the busiest whether the others have one or two");
    assert!(tries(&policy, S));
    see_together(&mut policy);
    assert!(!tries(&policy, S) && !tries(&policy, 100 * S), "ip and nic0 together take twice what a CPU has");
    assert_eq!(policy.waits_for_peek(Instant(S), &Observation::default(), &now()), None);
}

#[test]
fn slower_clocks_are_tried_when_a_load_has_lasted_if_nobody_else_needs_the_cpus() {
    let names = ["tcp".into(), "ip".into()];
    let mut policy = spread(&[("tcp", 0.4), ("ip", 0.2)], vec![Peek::Awake]);
    policy.platform = Platform::new(Machine::of_equals(3), &names, Some(&[Share(0.25), Share(0.5)])).unwrap();
    assert!(!tries(&policy, 3 * S) && tries(&policy, 4 * S), "it may cost a hundredth of 3.6 s");
    let busy_elsewhere = Observation {
        cpus: vec![CpuLoad { cpu: CpuId(2), others: Share(0.5), ..CpuLoad::default() }],
        ..Observation::default()
    };
    assert!(policy.clone().peek(Instant(4 * S), &busy_elsewhere, &now(), Pace::Thorough).is_none());
    policy.refused.note(now().mix, Instant(4 * S));
    assert!(!tries(&policy, 5 * S), "it was no better");
}
