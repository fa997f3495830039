//! The cores as the policy sees them: classes by speed, and groups of equal cores that share a cache.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use eft_machine::Ppm;
use serde::{Deserialize, Serialize};

use crate::error::HostError;

/// A [`GroupSet`] has room for this many groups; a two-socket server has about a dozen.
pub const GROUPS_MAX: usize = 128;
/// Fast, slow, and classes between; more kinds than any machine has.
pub const CLASSES_MAX: usize = 8;

/// Cores of one speed. Class 0 is the fastest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Class {
    pub name: String,
    /// Speed of compute-bound work relative to class 0.
    #[serde(rename = "speed_ppm")]
    pub speed: Ppm,
    /// What an instruction stream's IPC is here relative to class 0 until it was measured: all of it where only the clock
    /// differs.
    #[serde(rename = "ipc_ppm")]
    pub ipc: Ppm,
    /// Second hardware threads of the cores of this class: a seat there makes a core's other thread slower, so these are
    /// dealt out after all cores.
    pub sibling_of: Option<u8>,
}

/// Cores of one class behind one cache: what a vCPU is placed on. The kernel chooses the core inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub class: u8,
    pub cores: u32,
    /// Hardware threads; as many as `cores` where there is no SMT.
    pub threads: u32,
    /// Last-level cache.
    pub cache: u32,
    /// Cores that share a cache before the last level, as E cores in fours; 0 where none do.
    pub cluster: u32,
    pub node: u32,
}

/// What [`Host::distance`] is between two last-level caches.
const CACHE: u32 = 5;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    pub classes: Vec<Class>,
    pub groups: Vec<Group>,
}

impl Host {
    /// What makes a host unusable.
    pub fn check(&self) -> Result<(), HostError> {
        if self.groups.is_empty() || self.groups.len() > GROUPS_MAX {
            return Err(HostError::Groups { found: self.groups.len(), most: GROUPS_MAX });
        }
        if self.classes.is_empty() || self.classes.len() > CLASSES_MAX {
            return Err(HostError::Classes { found: self.classes.len(), most: CLASSES_MAX });
        }
        let speeds: Vec<Ppm> = self.classes.iter().map(|class| class.speed).collect();
        let is_unordered = speeds.windows(2).any(|pair| pair[0] < pair[1]);
        if speeds[0] != Ppm::ALL || is_unordered || speeds.contains(&Ppm::NONE) {
            return Err(HostError::ClassOrder);
        }
        let is_no_sibling =
            |(index, class): (usize, &Class)| class.sibling_of.is_some_and(|of| usize::from(of) >= index);
        if self.classes.iter().enumerate().any(is_no_sibling) {
            return Err(HostError::SiblingsFirst);
        }
        if self.classes.iter().any(|class| class.ipc == Ppm::NONE) {
            return Err(HostError::NoInstructions);
        }
        let bad = |group: &&Group| {
            usize::from(group.class) >= self.classes.len() || group.cores == 0 || group.threads < group.cores
        };
        self.groups.iter().find(bad).map_or(Ok(()), |group| Err(HostError::BadGroup(format!("{group:?}"))))
    }

    pub fn class_of(&self, group: usize) -> usize {
        usize::from(self.groups[group].class)
    }

    pub fn is_asymmetric(&self) -> bool {
        self.classes.iter().filter(|class| class.sibling_of.is_none()).count() > 1
    }

    /// The class of a group's cores, also if it stands for their second threads.
    pub fn core_class_of(&self, group: usize) -> usize {
        let class = self.class_of(group);
        self.classes[class].sibling_of.map_or(class, usize::from)
    }

    /// Whether both stand for the same cores: first and second threads.
    pub fn are_same_cores(&self, from: usize, to: usize) -> bool {
        self.core_class_of(from) == self.core_class_of(to) && self.distance(from, to) == 0
    }

    /// The slowest cores.
    pub fn slowest_cores(&self) -> usize {
        self.classes.iter().rposition(|class| class.sibling_of.is_none()).unwrap_or(0)
    }

    /// Groups of a class.
    pub fn of_class(&self, class: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.groups.len()).filter(move |group| self.class_of(*group) == class)
    }

    /// Core time of a class, all of each core's.
    pub fn pool(&self, class: usize) -> Ppm {
        self.of_class(class).map(|group| Ppm::ALL * self.groups[group].cores).sum()
    }

    /// Whether a move from one group to another leaves the cache behind.
    pub fn crosses_cache(&self, from: usize, to: usize) -> bool {
        self.groups[from].cache != self.groups[to].cache
    }

    /// Moves that cost more are farther: 0 in one cluster, 1 in one last-level cache, 5 in one NUMA node, 10 beyond.
    pub fn distance(&self, from: usize, to: usize) -> u32 {
        let (from, to) = (self.groups[from], self.groups[to]);
        match (from.node == to.node, from.cache == to.cache, from.cluster == to.cluster) {
            (false, ..) => 2 * CACHE,
            (_, false, _) => CACHE,
            (.., false) => 1,
            _ => 0,
        }
    }

    /// What a move has to bring, if one to another last-level cache has to bring `cache`.
    pub fn move_cost(&self, from: usize, to: usize, cache: Duration) -> Duration {
        (cache / CACHE).saturating_mul(self.distance(from, to))
    }
}

/// Some of a host's groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSet(u128);

impl GroupSet {
    pub const ALL: GroupSet = GroupSet(u128::MAX);

    pub fn insert(&mut self, group: usize) {
        if group < GROUPS_MAX {
            self.0 |= 1 << group;
        }
    }

    pub fn contains(self, group: usize) -> bool {
        group < GROUPS_MAX && self.0 & 1 << group != 0
    }
}

impl FromIterator<usize> for GroupSet {
    fn from_iter<T: IntoIterator<Item = usize>>(groups: T) -> Self {
        let mut set = Self::default();
        groups.into_iter().for_each(|group| set.insert(group));
        set
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use eft_machine::Share;

    /// `fast` and `slow` cores behind one cache; the slow ones run at `speed` of the fast ones.
    pub fn host(fast: u32, slow: u32, speed: f64) -> Host {
        let class = |name: &str, speed| Class { name: name.into(), speed, ipc: Ppm::ALL, sibling_of: None };
        let group = |class, cores| Group { class, cores, threads: cores, cache: 0, cluster: 0, node: 0 };
        Host {
            classes: vec![class("fast", Ppm::ALL), class("slow", Ppm::from(Share(speed)))],
            groups: vec![group(0, fast), group(1, slow)],
        }
    }

    #[test]
    fn impossible_hosts_are_refused() {
        assert_eq!(host(1, 1, 0.5).check(), Ok(()));
        assert!(Host::default().check().is_err());
        assert!(host(0, 1, 0.5).check().is_err());
        assert!(host(1, 1, 0.0).check().is_err());
        assert!(host(1, 1, 1.5).check().is_err());
        let mut bad = host(1, 1, 0.5);
        bad.groups[1].class = 2;
        assert!(bad.check().is_err());
        bad = host(1, 1, 0.5);
        bad.classes[1].sibling_of = Some(1);
        assert!(bad.check().is_err());
        bad = host(1, 1, 0.5);
        bad.classes[1].ipc = Ppm::NONE;
        assert!(bad.check().is_err());
    }
}
