//! Tests of the turns.

use super::*;
use crate::deal::{By, Claim, Rule, deal};
use crate::guest::VmId;
use crate::host::tests::host;
use crate::host::{Class, Group, GroupSet};
use proptest::prelude::*;

const TURN: Duration = Duration::from_millis(30);
const COST: Duration = Duration::from_millis(5);
const NO_TIME: Duration = Duration::ZERO;

fn entries(host: &Host, shares: &[[u64; 2]]) -> Vec<Entry> {
    let entry = |(i, shares): (usize, &[u64; 2])| Entry {
        shares: shares.iter().map(|share| Ppm(*share)).collect(),
        ..Entry::new(Vcpu::new(i as u64, 0), host)
    };
    shares.iter().enumerate().map(entry).collect()
}

/// It ran for so long where it was placed.
fn ran_on(host: &Host, entry: &Entry, time: Duration) -> Vec<Duration> {
    (0..host.classes.len())
        .map(|class| if entry.group.map(|g| host.class_of(g)) == Some(class) { time } else { NO_TIME })
        .collect()
}

/// Runs turns in which everybody always runs; returns each one's part of the turns on fast cores, in per mille.
fn fast_turns(host: &Host, entries: &mut [Entry], turns: u64) -> Vec<u64> {
    let mut fast = vec![0; entries.len()];
    for _ in 0..turns {
        take(host, entries, COST);
        for (i, entry) in entries.iter_mut().enumerate() {
            fast[i] += u64::from(host.class_of(entry.group.unwrap()) == 0);
            let ran = ran_on(host, entry, TURN);
            entry.settle(TURN, &ran, NO_TIME);
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
    host.groups.push(Group { class: 0, cores: 1, threads: 1, cache: 1, cluster: 0, node: 0 });
    host.groups.push(Group { class: 1, cores: 2, threads: 2, cache: 1, cluster: 0, node: 0 });
    let mut all = entries(&host, &[[333_333, 666_666]; 6]);
    take(&host, &mut all, COST);
    let mut crossed = 0;
    for _ in 0..300 {
        for entry in &mut all {
            let ran = ran_on(&host, entry, TURN);
            entry.settle(TURN, &ran, NO_TIME);
        }
        let before: Vec<usize> = all.iter().map(|entry| entry.group.unwrap()).collect();
        take(&host, &mut all, COST);
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
    all[0].sizes = vec![Ppm(300_000), Ppm(600_000)];
    take(&host, &mut all, COST);
    assert_eq!(
        [all[0].group, all[1].group],
        [Some(0), Some(0)],
        "70% of the fast core is worth more than the slow one"
    );
    all[0].sizes = vec![Ppm(600_000), Ppm::ALL];
    all[0].shares = vec![Ppm(600_000), Ppm::NONE];
    all[1].shares = vec![Ppm(400_000), Ppm(600_000)];
    all[1].owed = vec![TimeDelta::ZERO; 2];
    take(&host, &mut all, COST);
    assert_eq!([all[0].group, all[1].group], [Some(0), Some(1)]);
}

/// A guest that wants a third of a fast core, in bursts, shares it with one that wants all. While both want it a turn passes
/// without sleep; were it to count as wanting all, the other would go to the slow core and the fast one idle after the burst.
#[test]
fn a_turn_of_waiting_beside_another_does_not_make_a_guest_want_all() {
    let host = host(1, 1, 0.35);
    let mut all = entries(&host, &[[700_000, 300_000], [300_000, 0]]);
    all[1].sizes = vec![Ppm(333_333), Ppm::ALL];
    take(&host, &mut all, COST);
    assert_eq!([all[0].group, all[1].group], [Some(0); 2]);
    for _ in 0..20 {
        for (waited, turn) in [(TURN / 2, "a burst"), (NO_TIME, "its end")] {
            all[0].settle(TURN, &[TURN - waited, NO_TIME], waited);
            all[1].settle(TURN, &[waited, NO_TIME], waited);
            take(&host, &mut all, COST);
            assert_eq!([all[0].group, all[1].group], [Some(0); 2], "after {turn}");
        }
    }
    // It goes on after the burst.
    all[1].settle(TURN, &[TURN / 2, NO_TIME], TURN / 2);
    all[1].settle(TURN, &[TURN / 2, NO_TIME], TURN / 2);
    assert!(all[1].saturated);
    // Alone it need not be watched for so long.
    all[1].settle(TURN, &[NO_TIME; 2], NO_TIME);
    all[1].settle(TURN, &[TURN, NO_TIME], NO_TIME);
    assert!(all[1].saturated);
}

#[test]
fn sleepers_keep_their_place_and_take_no_seat() {
    let host = host(1, 1, 0.5);
    let mut all = entries(&host, &[[PPM, 0], [PPM, 0], [0, PPM]]);
    all[0].active = false;
    all[0].group = Some(0);
    all[2].active = false;
    take(&host, &mut all, COST);
    assert_eq!([all[0].group, all[1].group, all[2].group], [Some(0), Some(0), Some(1)]);
}

#[test]
fn pins_are_kept_and_nobody_is_left_without_a_place() {
    let host = host(1, 1, 0.5);
    let mut all = entries(&host, &[[0, PPM], [PPM, 0], [PPM, 0], [0, 0]]);
    all[0].vcpu.allowed = [0].into_iter().collect();
    all[1].vcpu.allowed = [1].into_iter().collect();
    all[3].vcpu.allowed = GroupSet::default();
    take(&host, &mut all, COST);
    assert_eq!([all[0].group, all[1].group], [Some(0), Some(1)]);
    assert!(all[2].group.is_some());
    assert_eq!(all[3].group, None, "it may run nowhere that we know of");
}

#[test]
fn what_was_missed_long_ago_is_forgotten() {
    let host = host(1, 1, 0.5);
    let mut entry = entries(&host, &[[PPM, 0]]).remove(0);
    (0..100).for_each(|_| entry.settle(TURN, &[NO_TIME; 2], TURN));
    assert_eq!(entry.owed[0], TimeDelta::from(8 * TURN));
    entry.settle(Duration::MAX, &[Duration::MAX, NO_TIME], NO_TIME);
    let before = entry.owed[0];
    entry.settle(TURN, &[NO_TIME; 2], NO_TIME);
    assert_eq!(entry.owed[0].min(before), entry.owed[0], "sleeping earns nothing");
}

#[test]
fn more_work_than_cores_stays_behind_its_cache() {
    let mut host = host(1, 2, 0.5);
    host.groups.push(Group { class: 1, cores: 2, threads: 2, cache: 1, cluster: 0, node: 0 });
    // Nine for four slow cores; what they would use alone differs, and so does who sleeps in a turn.
    let mut all = entries(&host, &[[0, 444_444]; 9]);
    let (mut crossed, mut state, mut last) = (0, 1u64, Vec::new());
    for _ in 0..400 {
        take(&host, &mut all, COST);
        let groups: Vec<usize> = all.iter().map(|entry| entry.group.unwrap()).collect();
        let behind = |group: usize| groups.iter().filter(|g| **g == group).count();
        assert!(behind(1) >= 3 && behind(2) >= 3, "{groups:?}");
        for entry in &mut all {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let noise = (state >> 40) % 60_000;
            entry.sizes = vec![Ppm::ALL, Ppm(620_000 + noise)];
            let ran = ran_on(&host, entry, TURN / 3);
            entry.settle(TURN, &ran, TURN / 3);
        }
        crossed += groups.iter().zip(&last).filter(|(now, then)| now != then).count();
        last = groups;
    }
    assert!(crossed < 40, "{crossed} moves to another cache in 400 turns");
}

#[test]
fn time_that_sleepers_leave_is_shared_as_evenly_as_the_rest() {
    let host = host(2, 6, 0.5);
    let mut all = entries(&host, &[[250_000, 750_000]; 8]);
    let (mut fast, mut state) = ([0u64; 8], 1u64);
    for _ in 0..4000 {
        take(&host, &mut all, COST);
        for (i, entry) in all.iter_mut().enumerate() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            // The last three sleep in most turns, and somebody else uses their seat then.
            let ran =
                if i >= 5 && (state >> 40) % 10 < 9 { vec![NO_TIME; 2] } else { ran_on(&host, entry, TURN) };
            fast[i] += u64::from(ran[0] == TURN);
            entry.settle(TURN, &ran, NO_TIME);
        }
        level(&host, &mut all);
    }
    let (least, most) = (fast[..5].iter().min().unwrap(), fast[..5].iter().max().unwrap());
    assert!((most - least) * 100 <= *most, "turns on the fast cores: {fast:?}");
}

/// Two P cores with two threads each, and two E cores.
fn host_with_threads() -> Host {
    let mut host = host(2, 2, 0.5);
    host.groups[0].threads = 4;
    let own = host.classes[0].clone();
    host.classes.push(Class { speed: Ppm(500_000), sibling_of: Some(0), ..own });
    host.groups.push(Group { class: 2, cores: 2, ..host.groups[0] });
    host.check().unwrap();
    host
}

#[test]
fn second_threads_are_used_after_all_cores() {
    let host = host_with_threads();
    let placed = |count: u64| {
        let claim = |i: u64| Claim {
            vm: VmId(i),
            weight: 256,
            cap: Ppm::MAX,
            allowed: GroupSet::ALL,
            demand: Ppm::ALL,
            score: 100 - i,
            speeds: vec![Ppm::ALL, Ppm(500_000), Ppm(500_000)],
        };
        let claims: Vec<Claim> = (0..count).map(claim).collect();
        let rule = Rule { even: Ppm::NONE, by: By::Vcpu, tie: Ppm::NONE };
        let entry =
            |(i, shares): (usize, Vec<Ppm>)| Entry { shares, ..Entry::new(Vcpu::new(i as u64, 0), &host) };
        let mut all: Vec<Entry> = deal(&host, &claims, rule).into_iter().enumerate().map(entry).collect();
        take(&host, &mut all, COST);
        all.iter().map(|entry| entry.group.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(placed(4), [0, 0, 1, 1], "a core of one's own comes first, also a slow one");
    assert_eq!(placed(6), [0, 0, 1, 1, 2, 2], "then the second threads of the fast ones");
}

#[test]
fn sleepers_rest_on_slow_cores_and_not_on_second_threads() {
    let host = host_with_threads();
    let mut all = vec![Entry { active: false, ..Entry::new(Vcpu::new(0, 0), &host) }];
    take(&host, &mut all, COST);
    assert_eq!(all[0].group, Some(1));
}

/// Of all wishes and groups the seat that is worth most, looked for anew each time.
fn seat_by_search(host: &Host, class: usize, entries: &[Entry], free: &mut [i64]) -> Vec<Option<usize>> {
    let slower = host.classes.get(class + 1).map_or(Ppm::ALL, |next| next.speed);
    let enough = Ppm::of(slower.0, host.classes[class].speed.0).0;
    let mut seats = vec![None; entries.len()];
    loop {
        let mut best: Option<(_, usize, usize, u64)> = None;
        for (index, entry) in entries.iter().enumerate().filter(|(index, _)| seats[*index].is_none()) {
            let Some(urgency) = entry.urgency(host, class) else { continue };
            for group in host.of_class(class).filter(|group| entry.vcpu.allowed.contains(*group)) {
                let (size, room) = (entry.size(class).0, free[group].max(0) as u64);
                if room == 0 || u128::from(room) * u128::from(PPM) < u128::from(size) * u128::from(enough) {
                    continue;
                }
                let cost = entry.group.map_or(NO_TIME, |from| host.move_cost(from, group, COST));
                let cost = TimeDelta::from(cost).0;
                let order = core::cmp::Reverse((index, group));
                let value = (urgency - cost, entry.group == Some(group), free[group], urgency, order);
                if best.is_none_or(|(old, ..)| value > old) {
                    best = Some((value, index, group, size));
                }
            }
        }
        let Some((_, index, group, size)) = best else { return seats };
        seats[index] = Some(group);
        free[group] -= size as i64;
    }
}

proptest! {
    #[test]
    fn seats_go_to_whoever_is_worth_most(
        all in proptest::collection::vec((0i64..6, 0u64..4, 1u64..5, 0usize..5, 0usize..8), 1..24),
    ) {
        let mut host = host(2, 3, 0.5);
        host.groups.push(Group { class: 0, cores: 2, threads: 2, cache: 1, cluster: 0, node: 0 });
        host.groups.push(Group { class: 1, cores: 3, threads: 3, cache: 1, cluster: 0, node: 0 });
        let entry = |(i, (owed, share, size, group, pin)): (usize, &(i64, u64, u64, usize, usize))| {
            let mut entry = Entry::new(Vcpu::new(i as u64, 0), &host);
            (entry.owed[0], entry.shares) = (TimeDelta(owed * 3_000_000), vec![Ppm(share * 250_000), Ppm(PPM - share * 250_000)]);
            (entry.sizes, entry.group) = (vec![Ppm(size * 250_000); 2], (*group < 4).then_some(*group));
            if *pin < 4 {
                entry.vcpu.allowed = [*pin].into_iter().collect();
            }
            entry
        };
        let entries: Vec<Entry> = all.iter().enumerate().map(entry).collect();
        let free = || host.groups.iter().map(|group| i64::from(group.cores) * PPM as i64).collect::<Vec<_>>();
        let mut taken = entries.clone();
        let mut open: Vec<usize> = (0..entries.len()).collect();
        seat(&host, 0, &mut taken, &mut open, &mut free(), COST);
        let expected = seat_by_search(&host, 0, &entries, &mut free());
        for (index, entry) in taken.iter().enumerate() {
            let got = entry.group.filter(|_| !open.contains(&index));
            prop_assert_eq!(got, expected[index], "entry {}", index);
        }
    }
}
