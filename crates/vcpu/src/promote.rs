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
mod tests;
