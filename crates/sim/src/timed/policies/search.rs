//! The best fixed configuration: tier 2 tries them all, and tier 1 runs those that may be the best.

use std::cmp::Reverse;

use super::job::{InBatches, Job};
use super::judge::{Judge, Reached};
use super::placement::{PLACED, Placement};
use crate::hardware::Cores;
use crate::hardware::cores::SPEEDS;
use crate::timed::check::RATE_PERCENT;

/// So many run on tier 1 at most. Where the wire is the limit, hundreds are as good.
const TRIED_MAX: usize = 24;

/// Ways to divide three servers among cores: servers with the same number share one.
const DIVISIONS: [[usize; PLACED.len()]; 5] = [[1, 1, 1], [1, 1, 2], [1, 2, 1], [1, 2, 2], [1, 2, 3]];

/// Digit number `at` of a number, counted from 1.
fn digit(number: u64, base: u64, at: usize) -> u64 {
    number / base.pow(at as u32 - 1) % base
}

/// Every division of the servers among cores of every class, at every speed of the cores. Cores of a class are equal, so which one
/// it is does not matter.
pub fn placements(cores: &Cores) -> Vec<Placement> {
    let count = |core_of: [usize; PLACED.len()]| core_of.into_iter().max().unwrap_or(1);
    let seated = DIVISIONS.into_iter().flat_map(|groups| {
        let kinds = cores.classes().len() as u64;
        (0..kinds.pow(count(groups) as u32)).filter_map(move |number| {
            let class = |group: usize| digit(number, kinds, group) as usize;
            Some((groups, seats(cores, count(groups), class)?))
        })
    });
    let at_all_speeds = seated.flat_map(|(groups, seats)| {
        (0..SPEEDS.pow(seats.len() as u32)).map(move |number| Placement {
            core_of: groups.map(|group| seats[group - 1]),
            speed: groups.map(|group| digit(number, SPEEDS, group) + 1),
        })
    });
    at_all_speeds.filter(|placement| placement.is_possible(cores)).collect()
}

/// A core for each group of servers, of the group's class. `None`: the class has too few.
fn seats(cores: &Cores, groups: usize, class: impl Fn(usize) -> usize) -> Option<Vec<usize>> {
    let mut seats = Vec::new();
    for group in 1..=groups {
        let free = cores.numbers(class(group)).find(|core| !seats.contains(core))?;
        seats.push(free);
    }
    Some(seats)
}

/// What tier 2 says of a placement.
pub type Tried = (Placement, InBatches);

/// All of them on tier 2.
pub fn try_all(job: &Job, cores: &Cores, seed: u64) -> Vec<Tried> {
    in_parallel(&placements(cores), |placement| (*placement, job.in_batches(placement, cores, seed)))
}

/// By all CPUs; the results are in the order of `all` whoever was first.
pub fn in_parallel<T: Sync, R: Send>(all: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let run = &run;
    let part = &|first: usize| all.iter().skip(first).step_by(threads).map(run).collect::<Vec<R>>();
    let mut parts: Vec<_> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        parts.into_iter().filter_map(|part| part.join().ok()).map(Vec::into_iter).collect()
    });
    (0..all.len()).filter_map(|number| parts.get_mut(number % threads)?.next()).collect()
}

/// What tier 2 says that a placement reaches.
pub type Rated = (Placement, Reached);

pub fn rate_all(job: &Job, cores: &Cores, seed: u64) -> Vec<Rated> {
    let rated = |(placement, (outcome, rates, _)): Tried| {
        let milliwatts = placement.milliwatts(cores, &outcome);
        (placement, Reached { kbps: rates.mean(), milliwatts })
    };
    try_all(job, cores, seed).into_iter().map(rated).collect()
}

/// Those that tier 2 may be wrong about when it does not call them the fastest: within its error of the best rate, at most
/// [`TRIED_MAX`], the best and then the slowest cores first.
pub fn may_be_fastest(cores: &Cores, all: &[Rated]) -> Vec<Placement> {
    let pace = |(core, speed): (usize, u64)| {
        let clock = cores.clock(core, speed);
        clock.khz * clock.duty * clock.per_cycle
    };
    let fastness =
        |placement: &Placement| placement.core_of.into_iter().zip(placement.speed).map(pace).sum::<u64>();
    let mut all = all.to_vec();
    all.sort_by_cached_key(|(placement, reached)| (Reverse(reached.kbps), fastness(placement)));
    let best = all.first().map_or(0, |(_, reached)| reached.kbps);
    let near = all.into_iter().take_while(|(_, reached)| is_within_error(reached.kbps, best));
    near.take(TRIED_MAX).map(|(placement, _)| placement).collect()
}

/// Whether tier 1 may have `least`, where tier 2 has this.
fn is_within_error(kbps: u64, least: u64) -> bool {
    kbps * 100 >= least * (100 - RATE_PERCENT)
}

/// Those that may be the best ones by a goal, the best one of tier 2 first, in parts of [`TRIED_MAX`]: if none of a part has the
/// rate that has to remain, the best may be in the next one.
pub fn may_be_best(judge: Judge, all: &[Rated]) -> Vec<Vec<Placement>> {
    let most = all.iter().map(|(_, reached)| reached.kbps).max().unwrap_or(0);
    let floor = judge.floor_kbps(most);
    let mut all: Vec<Rated> =
        all.iter().filter(|(_, reached)| is_within_error(reached.kbps, floor)).copied().collect();
    // What is within the error of the floor is taken for enough.
    let worth = |reached: Reached| judge.worth(Reached { kbps: reached.kbps.max(floor), ..reached }, most);
    all.sort_by_key(|(_, reached)| Reverse(worth(*reached)));
    all.chunks(TRIED_MAX).map(|part| part.iter().map(|(placement, _)| *placement).collect()).collect()
}

/// The same seats with the cores of one server a step faster or slower.
pub fn next_to(placement: &Placement, cores: &Cores) -> Vec<Placement> {
    let stepped = |server: usize, speed: u64| {
        let core = placement.core_of[server];
        let together = cores.clocked_with(core);
        let mut next = *placement;
        for (other, of) in next.core_of.into_iter().zip(&mut next.speed) {
            if other == core || together.contains(&other) {
                *of = speed;
            }
        }
        next
    };
    let both =
        |server: usize| [placement.speed[server] - 1, placement.speed[server] + 1].map(|to| (server, to));
    let steps = (0..PLACED.len()).flat_map(both).filter(|(_, speed)| (1..=SPEEDS).contains(speed));
    let mut all: Vec<Placement> = Vec::new();
    for next in steps.map(|(server, speed)| stepped(server, speed)) {
        if !all.contains(&next) {
            all.push(next);
        }
    }
    all
}

#[cfg(test)]
mod tests;
