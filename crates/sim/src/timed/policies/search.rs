//! The best fixed configuration: tier 2 tries them all, and tier 1 runs those that may be the best.

use std::cmp::Reverse;

use super::job::{InBatches, Job};
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

/// Those that tier 2 may be wrong about when it does not call them the best: within its error of the best rate, at most
/// [`TRIED_MAX`], the best and then the slowest ones first.
pub fn may_be_best(job: &Job, cores: &Cores, seed: u64) -> Vec<Placement> {
    let tried = try_all(job, cores, seed);
    within_error(cores, tried.into_iter().map(|(placement, (_, rates, _))| (placement, rates.mean())))
}

fn within_error(cores: &Cores, tried: impl Iterator<Item = (Placement, u64)>) -> Vec<Placement> {
    let mut all: Vec<(Placement, u64)> = tried.collect();
    let pace = |(core, speed): (usize, u64)| {
        let clock = cores.clock(core, speed);
        clock.khz * clock.duty * clock.per_cycle
    };
    let fastness =
        |placement: &Placement| placement.core_of.into_iter().zip(placement.speed).map(pace).sum::<u64>();
    all.sort_by_cached_key(|(placement, kbps)| (Reverse(*kbps), fastness(placement)));
    let best = all.first().map_or(0, |(_, kbps)| *kbps);
    let near = all.into_iter().take_while(|(_, kbps)| kbps * 100 >= best * (100 - RATE_PERCENT));
    near.take(TRIED_MAX).map(|(placement, _)| placement).collect()
}

#[cfg(test)]
mod tests;
