//! Dealing out all classes by what is known of the vCPUs.

use alloc::vec::Vec;

use super::Scheduler;
use crate::PPM;
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
                cap_ppm: entry.vcpu.cap_ppm,
                allowed: entry.vcpu.allowed,
                demand_ppm: known.demand_ppm,
                score: known.score,
                speed_ppm: self.speeds(*i),
            }
        };
        let claims = active.iter().map(claim).collect();
        (active, claims)
    }

    /// Deals out all classes by what is known now.
    pub(super) fn deal(&mut self) {
        let (active, claims) = self.claims();
        let even = |even_ppm| Rule { even_ppm, by: By::Vm, tie_ppm: self.options.tie_ppm };
        let rule = match self.options.policy {
            Policy::AmpVm => even(0),
            Policy::AmpVcpu => Rule { by: By::Vcpu, ..even(0) },
            Policy::AmpFair(percent) => even(u64::from(percent) * PPM / 100),
            Policy::AdaptiveFair(bound) => {
                even(adaptive::even_part(&self.host, &claims, u64::from(bound), self.options.tie_ppm))
            }
        };
        self.even_ppm = rule.even_ppm;
        let shares = deal(&self.host, &claims, rule);
        let fair = if rule == even(PPM) { shares.clone() } else { deal(&self.host, &claims, even(PPM)) };
        let losses = adaptive::slowdowns(&claims, &shares, &fair);
        for entry in &mut self.entries {
            entry.shares.fill(0);
        }
        let limits = time_limits(&self.host, &claims);
        for (i, ((index, shares), loss)) in active.into_iter().zip(shares).zip(losses).enumerate() {
            // Overcommitted, nobody occupies more of a core than its part of all cores.
            let size = |class| claims[i].time_on(class, self.memories[index].room_ppm);
            self.entries[index].limit = limits[i].max(1);
            self.entries[index].sizes = (0..self.host.classes.len()).map(size).collect();
            self.entries[index].shares = shares;
            self.memories[index].known.slowdown_ppm = loss;
        }
    }
}
