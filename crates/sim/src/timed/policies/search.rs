//! The best fixed configuration: tier 2 tries them all, and tier 1 runs the best of them.

use std::cmp::Reverse;

use super::placement::{PLACED, Placement};
use crate::batch::Profile;
use crate::batch::run::{Outcome, Span, run_for};
use crate::hardware::clock::DUTY_STEPS;

/// Ways to divide three servers among cores: servers with the same number share one.
const DIVISIONS: [[usize; PLACED.len()]; 5] = [[1, 1, 1], [1, 1, 2], [1, 2, 1], [1, 2, 2], [1, 2, 3]];

const SPAN: Span = Span { warm_up_ms: 10, measured_ms: 20 };
/// Servers of a core have it for some 30 ms each.
const SPAN_OF_QUANTA: Span = Span { warm_up_ms: 20, measured_ms: 90 };

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

/// A placement's result in tier 2.
pub fn in_batches(profile: &Profile, placement: &Placement, full_khz: u64, seed: u64) -> Outcome {
    let setting = placement.setting(full_khz);
    let span = if setting.shares_cores() { SPAN_OF_QUANTA } else { SPAN };
    run_for(profile, &setting, seed, span)
}

/// The best of them by tier 2's rate.
pub fn best(profile: &Profile, full_khz: u64, seed: u64, count: usize) -> Vec<Placement> {
    let rated = |placement: Placement| (in_batches(profile, &placement, full_khz, seed).kbps, placement);
    let mut all: Vec<(u64, Placement)> = placements().map(rated).collect();
    all.sort_by_key(|(kbps, placement)| (Reverse(*kbps), placement.duty.iter().sum::<u64>()));
    all.into_iter().take(count).map(|(_, placement)| placement).collect()
}
