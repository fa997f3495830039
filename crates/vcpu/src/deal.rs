//! Dealing out the time of each core class (section 3.3 of the paper).
//!
//! All time is in parts per million of a core, all work in the time that it takes on the fastest class. The classes
//! are dealt from the fastest to the slowest; what a vCPU does not get of one it takes of the next.

use alloc::vec;
use alloc::vec::Vec;

use crate::PPM;
use crate::guest::VmId;
use crate::host::{GroupSet, Host};

/// What one active vCPU asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub vm: VmId,
    /// Of the VM.
    pub weight: u32,
    /// Of the VM.
    pub cap_ppm: u64,
    pub allowed: GroupSet,
    /// Work that it would do each second, at most [`PPM`].
    pub demand_ppm: u64,
    pub score: u64,
    /// How fast it is on each class; [`PPM`] on the fastest.
    pub speed_ppm: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Vm,
    Vcpu,
}

/// How the time of all but the slowest class is dealt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// This much evenly, the rest in the order of scores.
    pub even_ppm: u64,
    pub by: By,
    /// Scores that differ less are one.
    pub tie_ppm: u32,
}

/// Shares of `pool` in proportion to weights; nobody gets more than its limit, and what one leaves the others get.
pub fn evenly(pool: u64, claims: &[(u64, u64)]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..claims.len()).filter(|i| claims[*i].0 > 0).collect();
    // Whoever reaches its limit first comes first; so each takes its part of what is left, in one pass.
    order.sort_by(|a, b| {
        let ((wa, la), (wb, lb)) = (claims[*a], claims[*b]);
        (u128::from(la) * u128::from(wb)).cmp(&(u128::from(lb) * u128::from(wa))).then(a.cmp(b))
    });
    let mut weight: u128 = order.iter().map(|i| u128::from(claims[*i].0)).sum();
    let (mut left, mut shares) = (pool, vec![0; claims.len()]);
    for i in order {
        let (own, limit) = claims[i];
        let share = (u128::from(left) * u128::from(own) / weight) as u64;
        shares[i] = share.min(limit);
        left -= shares[i];
        weight -= u128::from(own);
    }
    shares
}

/// Shares of `pool` to the highest score first; within one score evenly.
fn in_order(pool: u64, order: &[Vec<usize>], weights: &[u64], limits: &[u64]) -> Vec<u64> {
    let (mut left, mut shares) = (pool, vec![0; limits.len()]);
    for equals in order {
        let claims: Vec<(u64, u64)> = equals.iter().map(|i| (weights[*i], limits[*i])).collect();
        for (i, share) in equals.iter().zip(evenly(left, &claims)) {
            shares[*i] = share;
        }
        left -= equals.iter().map(|i| shares[*i]).sum::<u64>();
    }
    shares
}

/// Claims by score, highest first; those of one score together.
fn ranks(claims: &[Claim], Rule { by, tie_ppm, .. }: Rule) -> Vec<Vec<usize>> {
    let mean = |vm: VmId| {
        let of = claims.iter().filter(|claim| claim.vm == vm);
        let (sum, count) = of.fold((0u128, 0u128), |(s, n), claim| (s + u128::from(claim.score), n + 1));
        (sum / count.max(1)) as u64
    };
    let scores: Vec<u64> = match by {
        By::Vm => claims.iter().map(|claim| mean(claim.vm)).collect(),
        By::Vcpu => claims.iter().map(|claim| claim.score).collect(),
    };
    let mut sorted: Vec<usize> = (0..claims.len()).collect();
    sorted.sort_by_key(|i| (core::cmp::Reverse(scores[*i]), *i));
    let mut ranks: Vec<Vec<usize>> = Vec::new();
    for i in sorted {
        let near = |lead: u64| {
            u128::from(lead - scores[i]) * u128::from(PPM) <= u128::from(lead) * u128::from(tie_ppm)
        };
        match ranks.last_mut() {
            Some(rank) if near(scores[rank[0]]) => rank.push(i),
            _ => ranks.push(vec![i]),
        }
    }
    ranks
}

/// Core time that each vCPU may use in all: weights over VMs, split over their vCPUs, within caps.
pub fn time_limits(host: &Host, claims: &[Claim]) -> Vec<u64> {
    let all: u64 = (0..host.classes.len()).map(|class| host.pool_ppm(class)).sum();
    let slowest = host.classes.len() - 1;
    let mut wants: Vec<u64> = claims.iter().map(|claim| claim.time_on(slowest, claim.demand_ppm)).collect();
    let mut weights = vec![0; claims.len()];
    let mut seen: Vec<VmId> = Vec::new();
    for claim in claims {
        if seen.contains(&claim.vm) {
            continue;
        }
        seen.push(claim.vm);
        let of: Vec<usize> = (0..claims.len()).filter(|i| claims[*i].vm == claim.vm).collect();
        let capped = evenly(claim.cap_ppm, &of.iter().map(|i| (1, wants[*i])).collect::<Vec<_>>());
        for (i, want) in of.iter().zip(capped) {
            wants[*i] = want;
            weights[*i] = (u64::from(claim.weight.max(1)) * PPM / of.len() as u64).max(1);
        }
    }
    evenly(all, &weights.into_iter().zip(wants).collect::<Vec<_>>())
}

impl Claim {
    /// Time that `work` takes on a class, a whole core's at most.
    pub fn time_on(&self, class: usize, work: u64) -> u64 {
        (u128::from(work) * u128::from(PPM) / u128::from(self.speed_ppm[class].max(1))).min(u128::from(PPM))
            as u64
    }

    fn may_use(&self, host: &Host, class: usize) -> bool {
        host.of_class(class).any(|group| self.allowed.contains(group))
    }

    /// What a share of each class gets done.
    pub fn work_of(&self, shares: &[u64]) -> u64 {
        let of = |(share, speed): (&u64, &u64)| u128::from(*share) * u128::from(*speed) / u128::from(PPM);
        (shares.iter().zip(&self.speed_ppm).map(of).sum::<u128>() as u64).min(self.demand_ppm)
    }
}

/// For each claim its share of each class's time.
pub fn deal(host: &Host, claims: &[Claim], rule: Rule) -> Vec<Vec<u64>> {
    let classes = host.classes.len();
    let mut shares: Vec<Vec<u64>> = vec![Vec::with_capacity(classes); claims.len()];
    let mut time: Vec<u64> = time_limits(host, claims);
    let mut work: Vec<u64> = claims.iter().map(|claim| claim.demand_ppm).collect();
    let weights: Vec<u64> = claims.iter().map(|claim| u64::from(claim.weight.max(1))).collect();
    let ranks = ranks(claims, rule);
    for class in 0..classes {
        let limits: Vec<u64> = (0..claims.len())
            .map(|i| {
                if claims[i].may_use(host, class) {
                    claims[i].time_on(class, work[i]).min(time[i])
                } else {
                    0
                }
            })
            .collect();
        let pool = host.pool_ppm(class);
        // Whoever may not use anything slower runs here in any case.
        let bound = |i: usize| !(class + 1..classes).any(|slower| claims[i].may_use(host, slower));
        let own: Vec<(u64, u64)> =
            (0..claims.len()).map(|i| (weights[i], if bound(i) { limits[i] } else { 0 })).collect();
        let mut granted = evenly(pool, &own);
        let left = pool - granted.iter().sum::<u64>();
        let free = |granted: &[u64]| -> Vec<u64> {
            (0..claims.len()).map(|i| if bound(i) { 0 } else { limits[i] - granted[i] }).collect()
        };
        let even_pool = (u128::from(left) * u128::from(rule.even_ppm.min(PPM)) / u128::from(PPM)) as u64;
        let even = evenly(even_pool, &weights.iter().copied().zip(free(&granted)).collect::<Vec<_>>());
        granted.iter_mut().zip(even).for_each(|(sum, share)| *sum += share);
        let rest = in_order(pool - granted.iter().sum::<u64>(), &ranks, &weights, &free(&granted));
        granted.iter_mut().zip(rest).for_each(|(sum, share)| *sum += share);
        for (i, claim) in claims.iter().enumerate() {
            shares[i].push(granted[i]);
            time[i] -= granted[i];
            let done = u128::from(granted[i]) * u128::from(claim.speed_ppm[class]) / u128::from(PPM);
            work[i] = work[i].saturating_sub(done as u64);
        }
    }
    shares
}

#[cfg(test)]
mod tests;
