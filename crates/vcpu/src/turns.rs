//! Taking turns: which vCPU uses which group of cores until the next turn.
//!
//! Each vCPU has an account per class of the time that was dealt to it and that it has not used yet. At each turn the
//! fastest class goes to those that are owed most, then the next. So the vCPUs of a VM rotate through the fast cores,
//! and over some turns each gets what was dealt.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use eft_base::time::{TimeDelta, nanos};
use eft_machine::Ppm;

use crate::PPM;
use crate::guest::Vcpu;
use crate::host::Host;

/// Bounds an account to this many turns, either way: time missed long ago is not compensated.
const TURNS_MAX: i64 = 8;
/// Whose share of a class is this much of all that it gets does not leave the class.
const WHOLE: Ppm = Ppm::from_percent(95);
/// Above every account.
const FIRST: i64 = i64::MAX / 4;

/// One vCPU in the order of turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub vcpu: Vcpu,
    /// Sleeping vCPUs stay where they are and take no seat.
    pub active: bool,
    /// Ran or waited since the turn before. At a barrier a vCPU sleeps though its window shows it busy.
    pub awake: bool,
    /// Ran or waited through the whole last turn.
    pub sleepless: bool,
    /// Ran through the whole last turn, or was sleepless for two: until it sleeps it occupies what it may, whatever its mean.
    /// Beside another a burst takes longer, so that one turn of waiting says nothing.
    pub saturated: bool,
    /// Of a core: its part of all cores where these are overcommitted.
    pub limit: Ppm,
    /// Dealt, of a core, by class.
    pub shares: Vec<Ppm>,
    /// Of a core, by class: what it would use alone there.
    pub sizes: Vec<Ppm>,
    /// Dealt and not used yet, by class.
    pub owed: Vec<TimeDelta>,
    pub group: Option<usize>,
    /// Promoted from there until the next turn.
    pub from: Option<usize>,
}

impl Entry {
    pub fn new(vcpu: Vcpu, host: &Host) -> Self {
        let classes = host.classes.len();
        Self {
            vcpu,
            active: true,
            awake: true,
            sleepless: false,
            saturated: false,
            limit: Ppm::ALL,
            shares: vec![Ppm::NONE; classes],
            sizes: vec![Ppm::ALL; classes],
            owed: vec![TimeDelta::ZERO; classes],
            group: None,
            from: None,
        }
    }

    /// A turn of this length has passed, in which it ran for so long on each class.
    pub fn settle(&mut self, length: Duration, ran: &[Duration], waited: Duration) {
        self.account(length, ran, waited);
        self.earn(length);
    }

    /// In a time of this length it ran for so long on each class.
    pub fn account(&mut self, length: Duration, by_class: &[Duration], waited: Duration) {
        let ran = by_class.iter().fold(Duration::ZERO, |sum, ran| sum.saturating_add(*ran));
        let busy = ran.saturating_add(waited);
        let is_whole = |time| Ppm::of_time(time, length) >= WHOLE;
        self.awake = !busy.is_zero();
        let was_sleepless = core::mem::replace(&mut self.sleepless, is_whole(busy));
        self.saturated = is_whole(ran) || self.sleepless && was_sleepless;
        for (owed, ran) in self.owed.iter_mut().zip(by_class) {
            owed.0 = owed.0.saturating_sub(nanos(*ran).min(i64::MAX as u64 / 4) as i64);
        }
    }

    /// A turn of this length has passed.
    pub fn earn(&mut self, length: Duration) {
        let length_ns = nanos(length);
        let bound = TURNS_MAX * length_ns.min(i64::MAX as u64 / 64) as i64;
        for (owed, share) in self.owed.iter_mut().zip(&self.shares) {
            let dealt = if self.awake { share.part_of(length_ns) } else { 0 };
            owed.0 = owed.0.saturating_add(dealt.min(i64::MAX as u64 / 4) as i64).clamp(-bound, bound);
        }
    }

    /// Of a core of the class, for the next turn.
    fn size(&self, class: usize) -> Ppm {
        if self.saturated { self.limit } else { self.sizes[class].min(self.limit) }
    }

    fn may_use(&self, host: &Host, class: usize) -> bool {
        host.of_class(class).any(|group| self.vcpu.allowed.contains(group))
    }

    /// What decides who gets a seat of the class; `None` if it wants none.
    fn urgency(&self, host: &Host, class: usize) -> Option<i64> {
        let slowest = !(class + 1..host.classes.len()).any(|slower| self.may_use(host, slower));
        let all: Ppm = self.shares.iter().copied().sum();
        match self.shares[class] {
            _ if slowest => Some(FIRST),
            Ppm::NONE => None,
            share if Ppm::of(share.0, all.0) >= WHOLE => Some(FIRST / 2 + self.owed[class].0),
            _ => Some(self.owed[class].0),
        }
    }
}

/// Subtracts the mean of a class's accounts from each: time that sleepers left was used by others, but they do not owe
/// it. Otherwise all accounts drift to their bound, where they no longer say whose turn it is.
pub fn level(host: &Host, entries: &mut [Entry]) {
    for class in 0..host.classes.len() {
        let takes_part = |entry: &Entry| entry.active && entry.awake && entry.shares[class] > Ppm::NONE;
        let of = entries.iter().filter(|entry| takes_part(entry));
        let (sum, count) =
            of.fold((0i64, 0i64), |(sum, count), entry| (sum + entry.owed[class].0, count + 1));
        let mean = sum / count.max(1);
        entries.iter_mut().filter(|entry| takes_part(entry)).for_each(|entry| entry.owed[class].0 -= mean);
    }
}

/// Places every entry for the next turn. Entries keep their group where there is no reason to move.
pub fn take(host: &Host, entries: &mut [Entry], migration_cost: Duration) {
    // Below zero where more is placed than there is room for.
    let mut free: Vec<i64> = host.groups.iter().map(|group| i64::from(group.cores) * PPM as i64).collect();
    let mut open: Vec<usize> = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter_mut().enumerate() {
        entry.from = None;
        if entry.active && (entry.awake || entry.group.is_none()) {
            open.push(index);
        } else if entry.group.is_none_or(|group| !entry.vcpu.allowed.contains(group)) {
            entry.group = resting_place(host, entry);
        }
    }
    for class in 0..host.classes.len() {
        seat(host, class, entries, &mut open, &mut free, migration_cost);
    }
    // More work than cores: the rest queues where it is least crowded.
    for index in open {
        let entry = &mut entries[index];
        // What each thread of the group has left if this one is there. A move counts twice: it frees as much room as it
        // takes, and leaves caches behind.
        let crowd = |group: &usize| {
            let size = entry.size(host.class_of(*group)).0 as i64;
            let stays = entry.group == Some(*group);
            let from = entry.group.map_or(0, |from| host.distance(from, *group));
            let left = free[*group] - if stays { size } else { 2 * size };
            (left / i64::from(host.groups[*group].threads), stays, core::cmp::Reverse(from))
        };
        let classes = (0..host.classes.len()).rev();
        let usable =
            classes.flat_map(|class| host.of_class(class)).filter(|g| entry.vcpu.allowed.contains(*g));
        // Slower classes first, so that among equals no fast seat is taken.
        let best = usable.fold(None, |best: Option<usize>, group| match best {
            Some(best) if crowd(&best) >= crowd(&group) => Some(best),
            _ => Some(group),
        });
        if let Some(group) = best {
            free[group] -= entry.size(host.class_of(group)).0 as i64;
        }
        entry.group = best;
    }
}

/// A seat in one group, as one entry wants it. The greatest is the one that is worth most; of equals the most urgent, then the
/// first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wish {
    /// Its urgency less what the move costs.
    worth: i64,
    stays: bool,
    urgency: i64,
    index: core::cmp::Reverse<usize>,
    size: Ppm,
}

/// Gives the seats of one class, one by one, to the entries that are worth most there.
fn seat(
    host: &Host,
    class: usize,
    entries: &mut [Entry],
    open: &mut Vec<usize>,
    free: &mut [i64],
    cost: Duration,
) {
    // What a crowded seat must still leave to be worth more than a seat of its own on the next class.
    let slower = host.classes.get(class + 1);
    let enough = slower.map_or(Ppm::ALL, |next| Ppm::of(next.speed.0, host.classes[class].speed.0));
    let mut queues = queues(host, class, entries, open, cost);
    let mut taken = vec![false; entries.len()];
    while let Some((group, wish)) = best_seat(&mut queues, &taken, free, enough) {
        let index = wish.index.0;
        free[group] -= wish.size.0 as i64;
        entries[index].group = Some(group);
        taken[index] = true;
    }
    open.retain(|index| !taken[*index]);
}

/// For each group of the class the entries that want a seat there, the greatest wish last.
fn queues(
    host: &Host,
    class: usize,
    entries: &[Entry],
    open: &[usize],
    cost: Duration,
) -> Vec<(usize, Vec<Wish>)> {
    let mut queues: Vec<(usize, Vec<Wish>)> =
        host.of_class(class).map(|group| (group, Vec::with_capacity(open.len()))).collect();
    for index in open {
        let entry = &entries[*index];
        let Some(urgency) = entry.urgency(host, class) else { continue };
        let size = entry.size(class);
        for (group, queue) in queues.iter_mut().filter(|(group, _)| entry.vcpu.allowed.contains(*group)) {
            let move_cost = entry.group.map_or(Duration::ZERO, |from| host.move_cost(from, *group, cost));
            let worth = urgency.saturating_sub(TimeDelta::from(move_cost).0);
            let stays = entry.group == Some(*group);
            queue.push(Wish { worth, stays, urgency, index: core::cmp::Reverse(*index), size });
        }
    }
    queues.iter_mut().for_each(|(_, queue)| queue.sort_unstable());
    queues
}

/// The greatest wish for which there is room; of equals the one for the group with the most room. Wishes that cannot be
/// granted any more are dropped: room only shrinks.
fn best_seat(
    queues: &mut [(usize, Vec<Wish>)],
    taken: &[bool],
    free: &[i64],
    enough: Ppm,
) -> Option<(usize, Wish)> {
    let head = |(group, queue): &mut (usize, Vec<Wish>)| {
        let room = free[*group].max(0) as u128;
        let fits = |wish: &Wish| {
            let least = u128::from(wish.size.0) * u128::from(enough.0);
            room > 0 && room * u128::from(PPM) >= least && !taken[wish.index.0]
        };
        while queue.last().is_some_and(|wish| !fits(wish)) {
            queue.pop();
        }
        Some((*group, *queue.last()?))
    };
    let rank =
        |(group, wish): &(usize, Wish)| (wish.worth, wish.stays, free[*group], wish.urgency, wish.index);
    // Backwards, so that of equals the first counts.
    queues.iter_mut().rev().filter_map(head).max_by_key(rank)
}

/// Where a vCPU that sleeps is kept: on the slowest cores that it may use.
fn resting_place(host: &Host, entry: &Entry) -> Option<usize> {
    (0..=host.slowest_cores())
        .rev()
        .flat_map(|class| host.of_class(class))
        .find(|group| entry.vcpu.allowed.contains(*group))
}

#[cfg(test)]
mod tests;
