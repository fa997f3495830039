//! Dealing out the time of each core class (section 3.3 of the paper).
//!
//! Time is core time; work is the time that it takes on the fastest class. The classes are dealt
//! from the fastest to the slowest; what a vCPU does not get of one class it takes of the next.

use alloc::vec;
use alloc::vec::Vec;

use eft_machine::Ppm;

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
    pub cap: Ppm,
    pub allowed: GroupSet,
    /// Work that it would do, at most all the time.
    pub demand: Ppm,
    pub score: u64,
    /// How fast it is on each class, relative to the fastest.
    pub speeds: Vec<Ppm>,
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
    pub even: Ppm,
    pub by: By,
    /// Scores that differ less count as equal.
    pub tie: Ppm,
}

/// Shares of `pool` in proportion to weights, within each claim's limit; the others get what a claim leaves.
pub fn evenly(pool: Ppm, claims: &[(u64, Ppm)]) -> Vec<Ppm> {
    let mut order: Vec<usize> = (0..claims.len()).filter(|i| claims[*i].0 > 0).collect();
    // Claims that reach their limit first come first, so that one pass gives each its part of the rest.
    order.sort_by(|a, b| {
        let ((wa, la), (wb, lb)) = (claims[*a], claims[*b]);
        (u128::from(la.0) * u128::from(wb)).cmp(&(u128::from(lb.0) * u128::from(wa))).then(a.cmp(b))
    });
    let mut weight: u128 = order.iter().map(|i| u128::from(claims[*i].0)).sum();
    let (mut left, mut shares) = (pool, vec![Ppm::NONE; claims.len()]);
    for i in order {
        let (own, limit) = claims[i];
        let share = Ppm((u128::from(left.0) * u128::from(own) / weight) as u64);
        shares[i] = share.min(limit);
        left -= shares[i];
        weight -= u128::from(own);
    }
    shares
}

/// Shares of `pool` to the highest score first; within one score evenly.
fn in_order(pool: Ppm, order: &[Vec<usize>], weights: &[u64], limits: &[Ppm]) -> Vec<Ppm> {
    let (mut left, mut shares) = (pool, vec![Ppm::NONE; limits.len()]);
    for equals in order {
        let claims: Vec<(u64, Ppm)> = equals.iter().map(|i| (weights[*i], limits[*i])).collect();
        for (i, share) in equals.iter().zip(evenly(left, &claims)) {
            shares[*i] = share;
        }
        left -= equals.iter().map(|i| shares[*i]).sum::<Ppm>();
    }
    shares
}

/// Claims by score, highest first; claims of equal score together.
fn ranks(claims: &[Claim], Rule { by, tie, .. }: Rule) -> Vec<Vec<usize>> {
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
            u128::from(lead - scores[i]) * u128::from(PPM) <= u128::from(lead) * u128::from(tie.0)
        };
        match ranks.last_mut() {
            Some(rank) if near(scores[rank[0]]) => rank.push(i),
            _ => ranks.push(vec![i]),
        }
    }
    ranks
}

/// Core time that each vCPU may use in all: weights over VMs, split over their vCPUs, within caps.
pub fn time_limits(host: &Host, claims: &[Claim]) -> Vec<Ppm> {
    let all: Ppm = (0..host.classes.len()).map(|class| host.pool(class)).sum();
    let slowest = host.classes.len() - 1;
    let mut wants: Vec<Ppm> = claims.iter().map(|claim| claim.time_on(slowest, claim.demand)).collect();
    let mut weights = vec![0; claims.len()];
    let mut seen: Vec<VmId> = Vec::new();
    for claim in claims {
        if seen.contains(&claim.vm) {
            continue;
        }
        seen.push(claim.vm);
        let of: Vec<usize> = (0..claims.len()).filter(|i| claims[*i].vm == claim.vm).collect();
        let capped = evenly(claim.cap, &of.iter().map(|i| (1, wants[*i])).collect::<Vec<_>>());
        for (i, want) in of.iter().zip(capped) {
            wants[*i] = want;
            weights[*i] = (u64::from(claim.weight.max(1)) * PPM / of.len() as u64).max(1);
        }
    }
    evenly(all, &weights.into_iter().zip(wants).collect::<Vec<_>>())
}

impl Claim {
    /// Time that `work` takes on a class, a whole core's at most.
    pub fn time_on(&self, class: usize, work: Ppm) -> Ppm {
        Ppm::of(work.0, self.speeds[class].0.max(1)).min(Ppm::ALL)
    }

    fn may_use(&self, host: &Host, class: usize) -> bool {
        host.of_class(class).any(|group| self.allowed.contains(group))
    }

    /// The work that a share of each class does.
    pub fn work_of(&self, shares: &[Ppm]) -> Ppm {
        let all: Ppm = shares.iter().zip(&self.speeds).map(|(share, speed)| *share * *speed).sum();
        all.min(self.demand)
    }
}

/// For each claim its share of each class's time.
pub fn deal(host: &Host, claims: &[Claim], rule: Rule) -> Vec<Vec<Ppm>> {
    let classes = host.classes.len();
    let mut shares: Vec<Vec<Ppm>> = vec![Vec::with_capacity(classes); claims.len()];
    let mut time: Vec<Ppm> = time_limits(host, claims);
    let mut work: Vec<Ppm> = claims.iter().map(|claim| claim.demand).collect();
    let weights: Vec<u64> = claims.iter().map(|claim| u64::from(claim.weight.max(1))).collect();
    let ranks = ranks(claims, rule);
    for class in 0..classes {
        let limits: Vec<Ppm> = (0..claims.len())
            .map(|i| {
                if claims[i].may_use(host, class) {
                    claims[i].time_on(class, work[i]).min(time[i])
                } else {
                    Ppm::NONE
                }
            })
            .collect();
        let pool = host.pool(class);
        // A claim that may not use a slower class runs here in any case.
        let bound = |i: usize| !(class + 1..classes).any(|slower| claims[i].may_use(host, slower));
        let own: Vec<(u64, Ppm)> =
            (0..claims.len()).map(|i| (weights[i], if bound(i) { limits[i] } else { Ppm::NONE })).collect();
        let mut granted = evenly(pool, &own);
        let left = pool - granted.iter().copied().sum::<Ppm>();
        let free = |granted: &[Ppm]| -> Vec<Ppm> {
            (0..claims.len()).map(|i| if bound(i) { Ppm::NONE } else { limits[i] - granted[i] }).collect()
        };
        let even = evenly(
            left * rule.even.min(Ppm::ALL),
            &weights.iter().copied().zip(free(&granted)).collect::<Vec<_>>(),
        );
        granted.iter_mut().zip(even).for_each(|(sum, share)| *sum += share);
        let rest = in_order(pool - granted.iter().copied().sum::<Ppm>(), &ranks, &weights, &free(&granted));
        granted.iter_mut().zip(rest).for_each(|(sum, share)| *sum += share);
        for (i, claim) in claims.iter().enumerate() {
            shares[i].push(granted[i]);
            time[i] -= granted[i];
            work[i] = work[i].saturating_sub(granted[i] * claim.speeds[class]);
        }
    }
    shares
}

#[cfg(test)]
mod tests;
