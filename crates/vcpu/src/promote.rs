//! Between turns: no fast core idles while a vCPU wants to run on a slow one.

use alloc::vec::Vec;
use core::time::Duration;

use eft_base::time::nanos;

use crate::host::Host;
use crate::turns::Entry;

/// What an entry did since the last tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Since {
    pub ran: Duration,
    pub waited: Duration,
}

/// A core that was idle for nine tenths of a tick has a free seat.
fn seats(cores: u32, used: Duration, tick: Duration) -> u64 {
    let (used_ns, tick_ns) = (nanos(used), nanos(tick));
    let idle = (u64::from(cores).saturating_mul(tick_ns)).saturating_sub(used_ns);
    (idle + tick_ns / 10) / tick_ns.max(1)
}

/// Free seats by group, in every class but the slowest. `since` must hold the entries that are placed there.
pub fn free_seats(host: &Host, entries: &[Entry], since: &[Since], tick: Duration) -> Vec<u64> {
    let mut used = alloc::vec![Duration::ZERO; host.groups.len()];
    for (entry, since) in entries.iter().zip(since) {
        if let Some(group) = entry.group {
            used[group] = used[group].saturating_add(since.ran);
        }
    }
    let last = host.classes.len() - 1;
    let of = |group: usize| {
        let cores = host.groups[group].cores;
        if host.class_of(group) < last { seats(cores, used[group], tick) } else { 0 }
    };
    (0..host.groups.len()).map(of).collect()
}

/// Sends promoted entries back if an entry that belongs to their group now waits. Returns how many.
pub fn retreat(entries: &mut [Entry], since: &[Since], tick: Duration) -> usize {
    let waits = |i: usize, group: usize| {
        entries[i].group == Some(group) && entries[i].from.is_none() && since[i].waited > tick / 5
    };
    let crowded = |group: usize| (0..entries.len()).any(|i| waits(i, group));
    let back: Vec<usize> = (0..entries.len())
        .filter(|i| entries[*i].from.is_some() && entries[*i].group.is_some_and(crowded))
        .collect();
    for i in &back {
        entries[*i].group = entries[*i].from.take();
    }
    back.len()
}

/// Moves the entries that wait longest, then those that are owed most, to the free seats until the next turn.
pub fn promote(host: &Host, entries: &mut [Entry], since: &[Since], tick: Duration) -> usize {
    let mut seats = free_seats(host, entries, since, tick);
    let mut moved = 0;
    for class in 0..host.classes.len().saturating_sub(1) {
        let slower = |entry: &Entry| entry.group.is_some_and(|group| host.class_of(group) > class);
        let awake = |since: &Since| since.ran.saturating_add(since.waited) > tick / 2;
        let mut waiting: Vec<usize> =
            (0..entries.len()).filter(|i| slower(&entries[*i]) && awake(&since[*i])).collect();
        waiting.sort_by_key(|i| {
            let waits = since[*i].waited > tick / 2;
            (core::cmp::Reverse((waits, entries[*i].owed[class])), *i)
        });
        for i in waiting {
            let from = entries[i].group.unwrap_or(0);
            let usable = host
                .of_class(class)
                .filter(|group| seats[*group] > 0 && entries[i].vcpu.allowed.contains(*group));
            if let Some(group) = usable.min_by_key(|group| (host.distance(from, *group), *group)) {
                seats[group] -= 1;
                entries[i].from = Some(from);
                entries[i].group = Some(group);
                moved += 1;
            }
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::Vcpu;
    use crate::host::tests::host;
    use eft_base::time::TimeDelta;

    const TICK: Duration = Duration::from_millis(10);
    const NO_TIME: Duration = Duration::ZERO;

    fn on(host: &Host, groups: &[usize]) -> Vec<Entry> {
        let entry = |(i, group): (usize, &usize)| Entry {
            group: Some(*group),
            ..Entry::new(Vcpu::new(i as u64, 0), host)
        };
        groups.iter().enumerate().map(entry).collect()
    }

    fn since(ran: Duration, waited: Duration) -> Since {
        Since { ran, waited }
    }

    #[test]
    fn an_idle_fast_core_takes_whoever_waits() {
        let host = host(1, 1, 0.5);
        let mut all = on(&host, &[0, 1, 1]);
        let did = [since(NO_TIME, NO_TIME), since(TICK, NO_TIME), since(NO_TIME, TICK)];
        assert_eq!(promote(&host, &mut all, &did, TICK), 1);
        assert_eq!([all[1].group, all[2].group], [Some(1), Some(0)]);
    }

    #[test]
    fn a_busy_fast_core_takes_nobody_and_sleepers_are_left() {
        let host = host(1, 1, 0.5);
        let mut all = on(&host, &[0, 1]);
        assert_eq!(promote(&host, &mut all, &[since(TICK, NO_TIME), since(TICK, NO_TIME)], TICK), 0);
        assert_eq!(promote(&host, &mut all, &[since(NO_TIME, NO_TIME), since(TICK / 10, NO_TIME)], TICK), 0);
        all[1].vcpu.allowed = [1].into_iter().collect();
        assert_eq!(
            promote(&host, &mut all, &[since(NO_TIME, NO_TIME), since(TICK, NO_TIME)], TICK),
            0,
            "pinned"
        );
    }

    #[test]
    fn who_belongs_there_comes_first() {
        let host = host(1, 1, 0.5);
        let mut all = on(&host, &[0, 1]);
        assert_eq!(promote(&host, &mut all, &[since(NO_TIME, NO_TIME), since(TICK, NO_TIME)], TICK), 1);
        assert_eq!(
            retreat(&mut all, &[since(NO_TIME, NO_TIME), since(TICK, TICK)], TICK),
            0,
            "only the visitor waits"
        );
        assert_eq!(retreat(&mut all, &[since(TICK / 2, TICK / 2), since(TICK / 2, NO_TIME)], TICK), 1);
        assert_eq!([all[0].group, all[1].group], [Some(0), Some(1)]);
    }

    #[test]
    fn no_more_move_than_there_are_seats() {
        let host = host(2, 4, 0.5);
        let mut all = on(&host, &[0, 1, 1, 1, 1]);
        all[3].owed[0] = TimeDelta(1);
        let did = [
            since(TICK, NO_TIME),
            since(TICK, NO_TIME),
            since(TICK, NO_TIME),
            since(TICK, NO_TIME),
            since(TICK, NO_TIME),
        ];
        assert_eq!(promote(&host, &mut all, &did, TICK), 1);
        assert_eq!(all[3].group, Some(0), "the one that is owed fast time");
    }
}
