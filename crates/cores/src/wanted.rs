//! The wanted state, and the order of changes towards it: first those that make room (unpark, speed up), then the
//! moves, and only when all components have arrived those that take room away (slow down, park), so that no component
//! is ever on a CPU that is parked or not fast enough yet.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use core::fmt;

use eft_machine::{CpuId, CpuSet, Share};
use serde::{Deserialize, Serialize};

use crate::member::Place;
use crate::plan::{Plan, PlanError, SPEED_EQUAL, Seat};

/// The wanted state, in absolute terms: safe to apply again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// By the component's role, as in samples: `tcp`, `nic0`.
    pub places: BTreeMap<String, Place>,
    /// Shares of full speed; a managed CPU that is not named runs at full speed.
    pub speeds: BTreeMap<CpuId, Share>,
    pub parked: BTreeSet<CpuId>,
}

impl From<&Plan> for Wanted {
    fn from(plan: &Plan) -> Wanted {
        let place = |seat: &Seat| Place { cpu: Some(seat.cpu), dedicated: seat.dedicated };
        Wanted {
            places: plan.seats.iter().map(|(name, seat)| (name.clone(), place(seat))).collect(),
            speeds: plan
                .speeds
                .iter()
                .filter(|(_, s)| **s < SPEED_EQUAL.rest())
                .map(|(c, s)| (*c, *s))
                .collect(),
            parked: plan.parked.iter().collect(),
        }
    }
}

impl Wanted {
    /// Converts to a plan of these managed CPUs: the reverse of `Wanted::from`.
    pub fn to_plan(&self, managed: &CpuSet) -> Result<Plan, PlanError> {
        let mut plan = Plan::default();
        for (name, place) in &self.places {
            let cpu = place.cpu.ok_or_else(|| PlanError::PlacedAnywhere { component: name.clone() })?;
            plan.seats.insert(name.clone(), Seat { cpu, dedicated: place.dedicated });
        }
        plan.parked = self.parked.iter().copied().collect();
        plan.speeds = self.speeds.clone();
        plan.given_back = managed.minus(&plan.used()).minus(&plan.parked);
        Ok(plan)
    }

    fn speed(&self, cpu: CpuId) -> Share {
        self.speeds.get(&cpu).copied().unwrap_or(Share::ALL)
    }

    /// Whether it changes any CPU.
    pub fn touches_cpus(&self) -> bool {
        !self.speeds.is_empty() || !self.parked.is_empty()
    }

    /// The same places, with every CPU as it was before eft: at the end, and when a plan could not be carried out.
    pub fn without_changes(&self) -> Wanted {
        Wanted { places: self.places.clone(), ..Wanted::default() }
    }

    /// The state after room was made for `new` and before any is taken away.
    pub fn with_room_for(&self, new: Wanted) -> Wanted {
        let speed = |cpu: &CpuId| (*cpu, self.speed(*cpu).max(new.speed(*cpu)));
        let speeds = self.speeds.keys().chain(new.speeds.keys()).map(speed).collect();
        let parked = self.parked.intersection(&new.parked).copied().collect();
        Wanted { speeds, parked, places: new.places }
    }

    /// CPUs whose speed changes in one direction on the way to `new`, and to what.
    fn speeds_to(&self, new: &Wanted, is_wanted: impl Fn(Share, Share) -> bool) -> BTreeMap<CpuId, Share> {
        let cpus: BTreeSet<CpuId> = self.speeds.keys().chain(new.speeds.keys()).copied().collect();
        cpus.into_iter()
            .map(|cpu| (cpu, self.speed(cpu), new.speed(cpu)))
            .filter(|(_, before, after)| before.differs(*after, SPEED_EQUAL) && is_wanted(*before, *after))
            .map(|(cpu, _, after)| (cpu, after))
            .collect()
    }
}

impl fmt::Display for Wanted {
    /// One line: `sockets+tcp@1*1.00 ip+nic0@2*0.50 parked 3`; `!` marks a dedicated CPU.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_plan(&CpuSet::new()) {
            Ok(plan) => fmt::Display::fmt(&plan, f),
            Err(reason) => fmt::Display::fmt(&reason, f),
        }
    }
}

/// Changes of CPUs, in the order in which they have to be made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuChange {
    pub unpark: CpuSet,
    /// Shares of full speed.
    pub faster: BTreeMap<CpuId, Share>,
    pub slower: BTreeMap<CpuId, Share>,
    pub park: CpuSet,
}

impl CpuChange {
    /// The changes that must precede the moves.
    pub fn making_room(old: &Wanted, new: &Wanted) -> CpuChange {
        CpuChange {
            unpark: old.parked.difference(&new.parked).copied().collect(),
            faster: old.speeds_to(new, |before, after| after > before),
            ..CpuChange::default()
        }
    }

    /// The changes that must follow the moves.
    pub fn taking_away(old: &Wanted, new: &Wanted) -> CpuChange {
        CpuChange {
            slower: old.speeds_to(new, |before, after| after < before),
            park: new.parked.difference(&old.parked).copied().collect(),
            ..CpuChange::default()
        }
    }

    /// All changes at once, if no component moves.
    pub fn between(old: &Wanted, new: &Wanted) -> CpuChange {
        let CpuChange { slower, park, .. } = CpuChange::taking_away(old, new);
        CpuChange { slower, park, ..CpuChange::making_room(old, new) }
    }

    pub fn is_empty(&self) -> bool {
        self.unpark.is_empty() && self.faster.is_empty() && self.slower.is_empty() && self.park.is_empty()
    }
}

#[cfg(test)]
mod tests;
