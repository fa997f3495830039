//! The best fixed configuration: tier 2 tries them all, and tier 1 runs those that may be the best.

use std::cmp::Reverse;

use eft_cores::sample::Traffic;

use super::job::Job;
use super::placement::{PLACED, Placement};
use crate::batch::run::Outcome;
use crate::hardware::clock::DUTY_STEPS;
use crate::timed::check::RATE_PERCENT;

/// So many run on tier 1 at most. Where the wire is the limit, hundreds are as good.
const TRIED_MAX: usize = 24;

/// Ways to divide three servers among cores: servers with the same number share one.
const DIVISIONS: [[usize; PLACED.len()]; 5] = [[1, 1, 1], [1, 1, 2], [1, 2, 1], [1, 2, 2], [1, 2, 3]];

/// Every division of the servers at every clock of their cores. Cores are equal, so which one it is does not matter.
pub fn placements() -> impl Iterator<Item = Placement> {
    DIVISIONS.into_iter().flat_map(|core_of| {
        let cores = core_of.into_iter().max().unwrap_or(1) as u32;
        (0..DUTY_STEPS.pow(cores)).map(move |number| {
            let duty = |core: usize| number / DUTY_STEPS.pow(core as u32 - 1) % DUTY_STEPS + 1;
            Placement { core_of, duty: core_of.map(duty) }
        })
    })
}

/// What tier 2 says of a placement.
pub type Tried = (Placement, Outcome, Traffic);

/// All of them on tier 2.
pub fn try_all(job: &Job, full_khz: u64, seed: u64) -> Vec<Tried> {
    let all: Vec<Placement> = placements().collect();
    in_parallel(&all, |placement| {
        let (outcome, traffic) = job.in_batches(placement, full_khz, seed);
        (*placement, outcome, traffic)
    })
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
pub fn may_be_best(job: &Job, full_khz: u64, seed: u64) -> Vec<Placement> {
    within_error(
        try_all(job, full_khz, seed).into_iter().map(|(placement, outcome, _)| (placement, outcome.kbps)),
    )
}

fn within_error(tried: impl Iterator<Item = (Placement, u64)>) -> Vec<Placement> {
    let mut all: Vec<(Placement, u64)> = tried.collect();
    let slowness = |placement: &Placement| placement.duty.iter().sum::<u64>();
    all.sort_by_key(|(placement, kbps)| (Reverse(*kbps), slowness(placement)));
    let best = all.first().map_or(0, |(_, kbps)| *kbps);
    let near = all.into_iter().take_while(|(_, kbps)| kbps * 100 >= best * (100 - RATE_PERCENT));
    near.take(TRIED_MAX).map(|(placement, _)| placement).collect()
}

#[cfg(test)]
mod tests;
