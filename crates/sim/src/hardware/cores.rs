//! The cores of a machine, class by class: their clocks, what a cycle of them does, and the power that it takes.

use std::ops::RangeInclusive;

use super::clock::{Clock, DUTY_STEPS, REFERENCE};
use super::power::Chip;

/// Speeds of a core: the steps of a duty cycle, or as many clocks of a table.
pub const SPEEDS: u64 = DUTY_STEPS;

/// A clock of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    pub khz: u64,
    /// Of a core that is always busy, without the static share.
    pub milliwatts: u64,
}

/// From the slowest to the fastest.
pub type Table = [Point; SPEEDS as usize];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speeds {
    /// Eighths of the chip's highest clock, by duty cycles.
    Duty(Chip),
    Clocks(Table),
}

/// Cores that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    pub name: &'static str,
    pub cores: u64,
    pub speeds: Speeds,
    /// What a cycle does, in percent of one of the machine whose costs are counted.
    pub per_cycle: u64,
    pub static_mw: u64,
    /// They have one clock together, and a last-level cache of their own.
    pub is_cluster: bool,
    /// As its kernel tells it, of 1024 for the largest core. `None`: it tells the type only.
    pub capacity: Option<u64>,
}

impl Class {
    fn clock(&self, speed: u64) -> Clock {
        match &self.speeds {
            Speeds::Duty(chip) => Clock { khz: chip.highest.0, duty: speed, per_cycle: self.per_cycle },
            Speeds::Clocks(table) => {
                let point = table[(speed.clamp(1, SPEEDS) - 1) as usize];
                Clock { khz: point.khz, duty: DUTY_STEPS, per_cycle: self.per_cycle }
            }
        }
    }

    fn core_mw(&self, clock: Clock, busy_ppm: u64) -> u64 {
        match &self.speeds {
            Speeds::Duty(chip) => chip.core_mw(clock, busy_ppm),
            Speeds::Clocks(table) => {
                let point = table.iter().find(|point| point.khz >= clock.khz);
                point.map_or(0, |point| point.milliwatts * busy_ppm / 1_000_000)
            }
        }
    }
}

/// Cores have the numbers from 1 on, the first class first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores {
    /// The largest cores first; at least one.
    classes: Vec<Class>,
}

impl Cores {
    /// Of one class, slowed by duty cycles.
    pub fn equal(chip: Chip) -> Self {
        let class = Class {
            name: "equal",
            cores: chip.cores,
            speeds: Speeds::Duty(chip),
            per_cycle: REFERENCE,
            static_mw: chip.static_mw(),
            is_cluster: false,
            capacity: None,
        };
        Self { classes: vec![class] }
    }

    /// The largest cores first. `None`: there is no class.
    pub fn of(classes: Vec<Class>) -> Option<Self> {
        (!classes.is_empty()).then_some(Self { classes })
    }

    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    pub fn count(&self) -> u64 {
        self.classes.iter().map(|class| class.cores).sum()
    }

    /// The numbers of a class's cores.
    pub fn numbers(&self, class: usize) -> RangeInclusive<usize> {
        let before: u64 = self.classes.iter().take(class).map(|class| class.cores).sum();
        let cores = self.classes.get(class).map_or(0, |class| class.cores);
        before as usize + 1..=(before + cores) as usize
    }

    /// A core that is not of this machine is as its largest ones.
    pub fn class_of(&self, core: usize) -> usize {
        (0..self.classes.len()).find(|class| self.numbers(*class).contains(&core)).unwrap_or(0)
    }

    /// `speed`: from 1 to [`SPEEDS`].
    pub fn clock(&self, core: usize, speed: u64) -> Clock {
        self.classes[self.class_of(core)].clock(speed)
    }

    /// The share of its full speed that a core has at this one.
    pub fn share(&self, core: usize, speed: u64) -> f64 {
        let cycles = |clock: Clock| (clock.khz * clock.duty) as f64;
        cycles(self.clock(core, speed)) / cycles(self.clock(core, SPEEDS))
    }

    /// The speed that is nearest to a share of full speed.
    pub fn speed(&self, core: usize, share: f64) -> u64 {
        let off = |speed: &u64| (self.share(core, *speed) - share).abs();
        (1..=SPEEDS).rev().min_by(|one, other| off(one).total_cmp(&off(other))).unwrap_or(SPEEDS)
    }

    /// Cores that have their clock together with this one, itself among them.
    pub fn clocked_with(&self, core: usize) -> RangeInclusive<usize> {
        let class = self.class_of(core);
        if self.classes[class].is_cluster { self.numbers(class) } else { core..=core }
    }

    pub fn static_mw(&self) -> u64 {
        self.classes.iter().map(|class| class.static_mw).sum()
    }

    /// Power of a core at this clock that is busy for `busy_ppm` of the time, without the static share.
    pub fn core_mw(&self, core: usize, clock: Clock, busy_ppm: u64) -> u64 {
        self.classes[self.class_of(core)].core_mw(clock, busy_ppm)
    }

    /// `3`, or where there are classes `little 3`.
    pub fn name(&self, core: usize) -> String {
        match &self.classes[..] {
            [_] => core.to_string(),
            classes => format!("{}{core}", classes[self.class_of(core)].name),
        }
    }
}

#[cfg(test)]
mod tests;
