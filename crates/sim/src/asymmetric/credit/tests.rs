//! Tests of the credit scheduler.

use super::*;

/// Runs always-busy domains; returns each vCPU's milliseconds, and how often a vCPU changed its core.
fn run(cores: usize, domains: &[(i64, Vec<usize>)], ms: u64) -> (Vec<u64>, u64) {
    let mut credit = Credit::new(cores);
    domains.iter().for_each(|(weight, placement)| credit.add_domain(*weight, placement));
    (0..credit.vcpus.len()).for_each(|vcpu| credit.wake(vcpu));
    let (mut ran, mut moves) = (vec![0; credit.vcpus.len()], 0);
    for now in 1..=ms {
        for core in 0..cores {
            if let Some(vcpu) = credit.cores[core].current {
                ran[vcpu] += 1;
                moves += u64::from(credit.vcpus[vcpu].last_core != core);
                credit.vcpus[vcpu].last_core = core;
            }
        }
        credit.pass();
        if now % TICK == 0 {
            (0..cores).for_each(|core| credit.tick(core));
        }
        if now % ACCOUNTING == 0 {
            credit.account();
        }
        let running = credit.cores.iter().filter_map(|core| core.current).count();
        let queued: usize = credit.cores.iter().map(|core| core.queue.len()).sum();
        assert_eq!(running + queued, credit.vcpus.len(), "a vCPU is lost at {now} ms");
        assert_eq!(running, cores.min(credit.vcpus.len()), "a core idles at {now} ms");
    }
    (ran, moves)
}

#[test]
fn as_many_vcpus_as_cores_stay_where_they_are() {
    let (ran, moves) = run(4, &[(256, vec![2, 0]), (256, vec![1, 3])], 3000);
    assert_eq!((ran, moves), (vec![3000; 4], 0));
}

#[test]
fn weights_are_of_domains_not_of_vcpus() {
    let (ran, _) = run(2, &[(256, vec![0]), (256, vec![0, 1, 0])], 30_000);
    let others: u64 = ran[1..].iter().sum();
    assert!(ran[0].abs_diff(others) < 1500, "{ran:?}");
    let (ran, _) = run(1, &[(512, vec![0]), (256, vec![0])], 30_000);
    assert!(ran[0].abs_diff(20_000) < 1500, "{ran:?}");
}

#[test]
fn a_waking_vcpu_preempts_and_loses_the_boost_at_the_tick() {
    let mut credit = Credit::new(1);
    credit.add_domain(256, &[0]);
    credit.add_domain(256, &[0]);
    credit.wake(0);
    (0..3).for_each(|_| credit.tick(0));
    credit.wake(1);
    assert_eq!(credit.cores[0].current, Some(1));
    assert_eq!(credit.vcpus[1].priority, Priority::Boost);
    credit.tick(0);
    assert_eq!(credit.vcpus[1].priority, Priority::Under);
}

#[test]
fn a_settled_vcpu_moves_at_once_and_idle_cores_take_visitors() {
    let mut credit = Credit::new(2);
    credit.add_domain(256, &[0, 1]);
    (0..2).for_each(|vcpu| credit.wake(vcpu));
    credit.settle(&[0b10, 0b10]);
    credit.pass();
    assert!(credit.has_visitor(0) && credit.cores[1].current.is_some(), "no core idles while somebody waits");
    // A vCPU at home there comes first.
    credit.add_domain(256, &[0]);
    credit.vcpus[2].home = 0b01;
    credit.wake(2);
    assert_eq!(credit.cores[0].current, Some(2));
    // Pinned vCPUs never visit.
    credit.vcpus.iter_mut().for_each(|vcpu| vcpu.allowed = vcpu.home);
    credit.block(2);
    credit.pass();
    assert!(credit.cores[0].current.is_none() && credit.cores[1].queue.len() == 1);
}
