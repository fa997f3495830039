//! Dealing out all classes by what is known of the vCPUs.

use alloc::vec::Vec;

use eft_machine::Ppm;

use super::Scheduler;
use crate::adaptive;
use crate::deal::{By, Claim, Rule, deal, time_limits};
use crate::options::Policy;

impl Scheduler {
    fn claims(&self) -> (Vec<usize>, Vec<Claim>) {
        let active: Vec<usize> = (0..self.entries.len()).filter(|i| self.entries[*i].active).collect();
        let claim = |i: &usize| {
            let (entry, known) = (&self.entries[*i], &self.memories[*i].known);
            Claim {
                vm: entry.vcpu.vm,
                weight: entry.vcpu.weight,
                cap: entry.vcpu.cap,
                allowed: entry.vcpu.allowed,
                demand: known.demand,
                score: known.score,
                speeds: self.speeds(*i),
            }
        };
        let claims = active.iter().map(claim).collect();
        (active, claims)
    }

    /// Deals out all classes by what is known now.
    pub(super) fn deal(&mut self) {
        let (active, claims) = self.claims();
        let even = |even| Rule { even, by: By::Vm, tie: self.options.tie };
        let rule = match self.options.policy {
            Policy::AmpVm => even(Ppm::NONE),
            Policy::AmpVcpu => Rule { by: By::Vcpu, ..even(Ppm::NONE) },
            Policy::AmpFair(percent) => even(Ppm::from_percent(percent)),
            Policy::AdaptiveFair(bound) => {
                even(adaptive::even_part(&self.host, &claims, bound, self.options.tie))
            }
        };
        self.even = rule.even;
        let shares = deal(&self.host, &claims, rule);
        let fair =
            if rule == even(Ppm::ALL) { shares.clone() } else { deal(&self.host, &claims, even(Ppm::ALL)) };
        let losses = adaptive::slowdowns(&claims, &shares, &fair);
        for entry in &mut self.entries {
            entry.shares.fill(Ppm::NONE);
        }
        let limits = time_limits(&self.host, &claims);
        for (i, ((index, shares), loss)) in active.into_iter().zip(shares).zip(losses).enumerate() {
            // Overcommitted, no vCPU occupies more of a core than its part of all cores.
            let size = |class| claims[i].time_on(class, self.memories[index].room);
            self.entries[index].limit = limits[i].max(Ppm(1));
            self.entries[index].sizes = (0..self.host.classes.len()).map(size).collect();
            self.entries[index].shares = shares;
            self.memories[index].known.slowdown = loss;
        }
    }
}
