//! Tests of the turns.

use super::*;
use crate::host::tests::host;
use crate::host::{Group, GroupSet};

const TURN_NS: u64 = 30_000_000;
const COST_NS: u64 = 5_000_000;

fn entries(host: &Host, shares: &[[u64; 2]]) -> Vec<Entry> {
    let entry = |(i, shares): (usize, &[u64; 2])| Entry {
        shares: shares.to_vec(),
        ..Entry::new(Vcpu::new(i as u64, 0), host)
    };
    shares.iter().enumerate().map(entry).collect()
}

/// Runs turns in which everybody always runs; returns each one's part of the turns on fast cores, in per mille.
fn fast_turns(host: &Host, entries: &mut [Entry], turns: u64) -> Vec<u64> {
    let mut fast = vec![0; entries.len()];
    for _ in 0..turns {
        take(host, entries, COST_NS);
        for (i, entry) in entries.iter_mut().enumerate() {
            fast[i] += u64::from(host.class_of(entry.group.unwrap()) == 0);
            entry.settle(host, TURN_NS, TURN_NS, 0);
        }
    }
    fast.iter().map(|turns_fast| turns_fast * 1000 / turns).collect()
}

#[test]
fn turns_deliver_what_was_dealt() {
    let host = host(1, 3, 0.5);
    let quarter = [250_000, 750_000];
    assert_eq!(fast_turns(&host, &mut entries(&host, &[quarter; 4]), 1000), [250; 4]);
    let uneven = [[600_000, 400_000], [300_000, 700_000], [100_000, 900_000], [0, PPM]];
    let got = fast_turns(&host, &mut entries(&host, &uneven), 1000);
    for (got, dealt) in got.iter().zip([600, 300, 100, 0u64]) {
        assert!(got.abs_diff(dealt) <= 5, "{got} of {dealt}");
    }
}

#[test]
fn whoever_has_a_fast_core_to_itself_keeps_it() {
    let host = host(2, 3, 0.5);
    let mut all = entries(
        &host,
        &[[PPM, 0], [250_000, 750_000], [250_000, 750_000], [250_000, 750_000], [250_000, 750_000]],
    );
    assert_eq!(fast_turns(&host, &mut all, 400), [1000, 250, 250, 250, 250]);
}

#[test]
fn turns_stay_behind_their_cache() {
    let mut host = host(1, 2, 0.5);
    host.groups.push(Group { class: 0, cores: 1, threads: 1, cache: 1, node: 0 });
    host.groups.push(Group { class: 1, cores: 2, threads: 2, cache: 1, node: 0 });
    let mut all = entries(&host, &[[333_333, 666_666]; 6]);
    take(&host, &mut all, COST_NS);
    let mut crossed = 0;
    for _ in 0..300 {
        all.iter_mut().for_each(|entry| entry.settle(&host, TURN_NS, TURN_NS, 0));
        let before: Vec<usize> = all.iter().map(|entry| entry.group.unwrap()).collect();
        take(&host, &mut all, COST_NS);
        crossed += all
            .iter()
            .zip(before)
            .filter(|(entry, from)| host.crosses_cache(*from, entry.group.unwrap()))
            .count();
    }
    assert_eq!(crossed, 0);
}

#[test]
fn a_crowded_fast_core_is_shared_only_while_that_is_worth_it() {
    let host = host(1, 1, 0.5);
    let mut all = entries(&host, &[[300_000, 0], [700_000, 300_000]]);
    all[0].sizes = vec![300_000, 600_000];
    take(&host, &mut all, COST_NS);
    assert_eq!(
        [all[0].group, all[1].group],
        [Some(0), Some(0)],
        "70% of the fast core is worth more than the slow one"
    );
    all[0].sizes = vec![600_000, PPM];
    all[0].shares = vec![600_000, 0];
    all[1].shares = vec![400_000, 600_000];
    all[1].owed_ns = vec![0, 0];
    take(&host, &mut all, COST_NS);
    assert_eq!([all[0].group, all[1].group], [Some(0), Some(1)]);
}

#[test]
fn sleepers_keep_their_place_and_take_no_seat() {
    let host = host(1, 1, 0.5);
    let mut all = entries(&host, &[[PPM, 0], [PPM, 0], [0, PPM]]);
    all[0].active = false;
    all[0].group = Some(0);
    all[2].active = false;
    take(&host, &mut all, COST_NS);
    assert_eq!([all[0].group, all[1].group, all[2].group], [Some(0), Some(0), Some(1)]);
}

#[test]
fn pins_are_kept_and_nobody_is_left_without_a_place() {
    let host = host(1, 1, 0.5);
    let mut all = entries(&host, &[[0, PPM], [PPM, 0], [PPM, 0], [0, 0]]);
    all[0].vcpu.allowed = [0].into_iter().collect();
    all[1].vcpu.allowed = [1].into_iter().collect();
    all[3].vcpu.allowed = GroupSet::default();
    take(&host, &mut all, COST_NS);
    assert_eq!([all[0].group, all[1].group], [Some(0), Some(1)]);
    assert!(all[2].group.is_some());
    assert_eq!(all[3].group, None, "it may run nowhere that we know of");
}

#[test]
fn what_was_missed_long_ago_is_forgotten() {
    let host = host(1, 1, 0.5);
    let mut entry = entries(&host, &[[PPM, 0]]).remove(0);
    (0..100).for_each(|_| entry.settle(&host, TURN_NS, 0, TURN_NS));
    assert_eq!(entry.owed_ns[0], 8 * TURN_NS as i64);
    entry.settle(&host, u64::MAX, u64::MAX, 0);
    let before = entry.owed_ns[0];
    entry.settle(&host, TURN_NS, 0, 0);
    assert_eq!(entry.owed_ns[0].min(before), entry.owed_ns[0], "sleeping earns nothing");
}

#[test]
fn more_work_than_cores_stays_behind_its_cache() {
    let mut host = host(1, 2, 0.5);
    host.groups.push(Group { class: 1, cores: 2, threads: 2, cache: 1, node: 0 });
    // Nine for four slow cores; what they would use alone differs, and so does who sleeps in a turn.
    let mut all = entries(&host, &[[0, 444_444]; 9]);
    let (mut crossed, mut state, mut last) = (0, 1u64, Vec::new());
    for _ in 0..400 {
        take(&host, &mut all, COST_NS);
        let groups: Vec<usize> = all.iter().map(|entry| entry.group.unwrap()).collect();
        let behind = |group: usize| groups.iter().filter(|g| **g == group).count();
        assert!(behind(1) >= 3 && behind(2) >= 3, "{groups:?}");
        for entry in &mut all {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let noise = (state >> 40) % 60_000;
            entry.sizes = vec![PPM, 620_000 + noise];
            entry.settle(&host, TURN_NS, TURN_NS / 3, TURN_NS / 3);
        }
        crossed += groups.iter().zip(&last).filter(|(now, then)| now != then).count();
        last = groups;
    }
    assert!(crossed < 40, "{crossed} moves to another cache in 400 turns");
}
