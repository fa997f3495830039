//! The best fixed configuration: tier 2 tries them all, and tier 1 runs the best of them.

use std::cmp::Reverse;

use eft_cores::sample::Traffic;

use super::job::Job;
use super::placement::{PLACED, Placement};
use crate::batch::run::Outcome;
use crate::hardware::clock::DUTY_STEPS;

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

/// All of them on tier 2, by all CPUs; their order is that of [`placements`] whoever was first.
pub fn try_all(job: &Job, full_khz: u64, seed: u64) -> Vec<Tried> {
    let all: Vec<Placement> = placements().collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let run = |placement: &Placement| {
        let (outcome, traffic) = job.in_batches(placement, full_khz, seed);
        (*placement, outcome, traffic)
    };
    let part = &|first: usize| all.iter().skip(first).step_by(threads).map(run).collect::<Vec<Tried>>();
    let mut parts: Vec<_> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        parts.into_iter().filter_map(|part| part.join().ok()).map(Vec::into_iter).collect()
    });
    (0..all.len()).filter_map(|number| parts.get_mut(number % threads)?.next()).collect()
}

/// The best of them by tier 2's rate.
pub fn best(job: &Job, full_khz: u64, seed: u64, count: usize) -> Vec<Placement> {
    let mut all = try_all(job, full_khz, seed);
    let slowness = |placement: &Placement| placement.duty.iter().sum::<u64>();
    all.sort_by_key(|(placement, outcome, _)| (Reverse(outcome.kbps), slowness(placement)));
    all.into_iter().take(count).map(|(placement, ..)| placement).collect()
}
