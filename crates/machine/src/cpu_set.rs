//! A set of CPUs, read and written in the kernel's list format (`0-3,8`).
//!
//! Promises: what is printed parses back to the same set. Numbers are bounded by [`CPU_MAX`], so that a hostile
//! `0-4000000000` costs neither time nor memory.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::CpuId;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The kernel's own limit (`NR_CPUS`) on the largest builds.
pub const CPU_MAX: u32 = 8191;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuSet(BTreeSet<CpuId>);

impl CpuSet {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn one(cpu: CpuId) -> Self {
        Self(BTreeSet::from([cpu]))
    }

    pub fn insert(&mut self, cpu: CpuId) {
        self.0.insert(cpu);
    }

    pub fn remove(&mut self, cpu: CpuId) {
        self.0.remove(&cpu);
    }

    pub fn contains(&self, cpu: CpuId) -> bool {
        self.0.contains(&cpu)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = CpuId> + '_ {
        self.0.iter().copied()
    }

    pub fn first(&self) -> Option<CpuId> {
        self.0.first().copied()
    }

    pub fn last(&self) -> Option<CpuId> {
        self.0.last().copied()
    }

    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }

    pub fn minus(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    /// The kernel's hexadecimal mask format, 32 bits a word, as `smp_affinity` and `tracing_cpumask` use it.
    pub fn to_mask(&self) -> String {
        let words = self.last().map_or(1, |last| last.0 as usize / 32 + 1);
        let mut bits = alloc::vec![0u32; words];
        for cpu in self.iter() {
            bits[cpu.0 as usize / 32] |= 1 << (cpu.0 % 32);
        }
        let text: Vec<String> = bits.iter().rev().map(|word| format!("{word:08x}")).collect();
        text.join(",")
    }

    /// The inverse of [`CpuSet::to_mask`].
    pub fn from_mask(text: &str) -> Result<Self, BadCpuList> {
        let bad = || BadCpuList(text.trim().to_string());
        let words: Vec<&str> = text.trim().split(',').collect();
        if words.len() > CPU_MAX as usize / 32 + 1 {
            return Err(bad());
        }
        let mut set = Self::new();
        for (index, word) in words.iter().rev().enumerate() {
            let bits = u32::from_str_radix(word, 16).map_err(|_| bad())?;
            (0..32)
                .filter(|bit| bits & (1 << bit) != 0)
                .for_each(|bit| set.insert(CpuId(index as u32 * 32 + bit)));
        }
        Ok(set)
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<T: IntoIterator<Item = CpuId>>(cpus: T) -> Self {
        Self(cpus.into_iter().collect())
    }
}

/// A text that is not a list of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCpuList(pub String);

impl fmt::Display for BadCpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a list of CPUs (write it as 1-3,6, numbers up to {CPU_MAX})", self.0)
    }
}

impl core::error::Error for BadCpuList {}

impl FromStr for CpuSet {
    type Err = BadCpuList;

    fn from_str(text: &str) -> Result<Self, BadCpuList> {
        let bad = || BadCpuList(text.trim().to_string());
        let number = |digits: &str| match digits.trim().parse::<u32>() {
            Ok(cpu) if cpu <= CPU_MAX && !digits.trim().starts_with('+') => Ok(cpu),
            _ => Err(bad()),
        };
        let mut set = Self::new();
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(bad());
            }
            set.0.extend((first..=last).map(CpuId));
        }
        Ok(set)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<(CpuId, CpuId)> = Vec::new();
        for cpu in self.iter() {
            match runs.last_mut() {
                Some((_, last)) if last.0 + 1 == cpu.0 => *last = cpu,
                _ => runs.push((cpu, cpu)),
            }
        }
        let parts: Vec<String> = runs
            .iter()
            .map(|(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") })
            .collect();
        f.pad(&parts.join(","))
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
