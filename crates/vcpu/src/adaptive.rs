//! `adaptive-fair`: how much of the fast time to deal out evenly, chosen at run time.
//!
//! The paper leaves this as future work. Throughput falls as the even part grows and the largest slowdown against
//! `amp-fair` falls with it, so the least even part that keeps the bound is best. Both are predicted from the speed of
//! each vCPU on each class.

use alloc::vec::Vec;

use eft_machine::Ppm;

use crate::deal::{By, Claim, Rule, deal};
use crate::host::Host;

/// Steps of R: one percent each.
const STEPS: u8 = 100;

/// How much less work each does than under `amp-fair`; zero if it does more.
pub fn slowdowns(claims: &[Claim], shares: &[Vec<Ppm>], fair: &[Vec<Ppm>]) -> Vec<Ppm> {
    let loss = |claim: &Claim, share: &[Ppm], fair: &[Ppm]| {
        let (now, then) = (claim.work_of(share), claim.work_of(fair));
        Ppm::of(then.saturating_sub(now).0, then.0)
    };
    claims
        .iter()
        .zip(shares.iter().zip(fair))
        .map(|(claim, (share, fair))| loss(claim, share, fair))
        .collect()
}

/// The least even part whose largest slowdown stays within `bound`. Dealing all evenly always does.
pub fn even_part(host: &Host, claims: &[Claim], bound: Ppm, tie: Ppm) -> Ppm {
    let rule = |step: u8| Rule { even: Ppm::from_percent(step), by: By::Vm, tie };
    let fair = deal(host, claims, rule(STEPS));
    let keeps = |step: u8| {
        let worst = slowdowns(claims, &deal(host, claims, rule(step)), &fair).into_iter().max();
        worst.unwrap_or(Ppm::NONE) <= bound
    };
    if keeps(0) {
        return Ppm::NONE;
    }
    // `low` breaks the bound, `high` keeps it.
    let (mut low, mut high) = (0, STEPS);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if keeps(middle) { high = middle } else { low = middle }
    }
    Ppm::from_percent(high)
}

#[cfg(test)]
mod tests;
