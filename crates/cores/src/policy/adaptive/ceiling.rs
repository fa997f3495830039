//! What a load is known to take: where a plan that should have carried much more carried as much, the bottleneck is outside the
//! stack (the wire, the peer, the program), and a busy stack is no reason for more of it.

use super::trial::MORE;
use super::{Adaptive, Trial};
use crate::estimate;
use crate::policy::measure::Measured;
use crate::throughput::Throughput;

/// A plan that was predicted to carry less than this shows nothing: predictions are not that exact.
const MUCH_MORE: f64 = 1.2;
/// As exact as the promises of two plans are compared.
const AS_MUCH: f64 = 1.1;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ceiling(Option<Known>);

#[derive(Clone, Copy, Debug)]
struct Known {
    throughput: Throughput,
    /// What a plan was predicted to carry that carried no more.
    promised: Throughput,
}

impl Ceiling {
    /// Of two plans under one load, the one predicted to carry `ratio` of the other.
    pub fn note(&mut self, one: Throughput, other: Throughput, ratio: f64) {
        let most = one.max(other);
        self.rise(most);
        let larger = ratio.max(1.0 / ratio);
        if most > one.min(other) * MORE || larger < MUCH_MORE || !larger.is_finite() {
            return;
        }
        let promised = most * larger;
        let promised = self.0.map_or(promised, |known| known.promised.max(promised));
        self.0 = Some(Known { throughput: most, promised });
    }

    /// A plan predicted to carry `ratio` of the one before stays, and carries `share` of it: what was tried promises as much more.
    pub fn moved(&mut self, ratio: f64, share: f64) {
        let longer = share / ratio;
        if let Some(known) = &mut self.0
            && longer.is_finite()
        {
            known.promised *= longer.max(1.0);
        }
    }

    /// The load has taken more: what was known is not true.
    pub fn rise(&mut self, seen: Throughput) {
        self.0 = self.0.filter(|known| seen <= known.throughput * MORE);
    }

    /// What a load that has this much now takes at most from a plan with this promise.
    pub fn most(&self, now: Throughput, promised: Throughput) -> Throughput {
        match self.0 {
            Some(known) if now <= known.throughput * MORE && promised <= known.promised * AS_MUCH => {
                promised.min(if self.is_reached(now) { now } else { known.throughput })
            }
            _ => promised,
        }
    }

    /// Whether a load with this much is known to take no more.
    pub fn is_reached(&self, now: Throughput) -> bool {
        let reached = |known: Known| now * MORE >= known.throughput && now <= known.throughput * MORE;
        self.0.is_some_and(reached)
    }
}

impl Adaptive {
    /// `stays`: the plan that was tried.
    pub(super) fn learn_ceiling(&mut self, trial: &Trial, now: &Measured, stays: bool) {
        let busiest = |plan| {
            estimate::bottleneck(&estimate::utilisation(&self.platform, plan, &trial.demand)).max(1e-6)
        };
        let ratio = busiest(&trial.base) / busiest(&self.plan);
        if stays {
            self.ceiling.moved(ratio, now.throughput.ratio_to(trial.was.throughput));
        }
        self.ceiling.note(trial.was.throughput, now.throughput, ratio);
    }

    /// Whether this load takes no more, whatever the plan.
    pub(super) fn is_sated(&self, now: &Measured) -> bool {
        self.ceiling.is_reached(now.throughput)
    }
}

#[cfg(test)]
mod tests;
