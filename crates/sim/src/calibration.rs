//! A machine's calibration file: tables of parameters, each with tag, source and range.

use std::collections::BTreeMap;

use eft_base::random::Random;
use eft_base::text::complaint;
use thiserror::Error;

use crate::hardware::Cores;
use crate::hardware::cores::{Class, Point, SPEEDS, Speeds, Table};
use crate::hardware::power::Chip;
use crate::parameter::{BadParameter, Parameter, Tag};

/// Classes of cores and their tables, the largest cores first.
const CLASSES: [(&str, &str); 3] =
    [("big", "big_cores"), ("medium", "medium_cores"), ("little", "little_cores")];

#[derive(Clone, Debug, PartialEq)]
pub struct Calibration(BTreeMap<String, BTreeMap<String, Parameter>>);

/// Why a model cannot use a calibration file.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CalibrationError {
    /// It does not consist of tables of parameters.
    #[error("{file}: {why}")]
    Malformed { file: String, why: String },
    /// `name`: with its table.
    #[error("{file}: {name} {why}")]
    Parameter { file: String, name: String, why: BadParameter },
    /// The model asks for a parameter, named with its table, that no file gives.
    #[error("the calibration file has no {0}")]
    NoParameter(String),
    /// Of a table of cores.
    #[error("[{table}] {why}")]
    BadCores { table: &'static str, why: &'static str },
    #[error("no program is called '{0}'")]
    NoProgram(String),
}

impl CalibrationError {
    pub fn malformed(file: &str, text: &str, why: &toml::de::Error) -> Self {
        Self::Malformed { file: file.into(), why: complaint(text, why.span(), why.message()) }
    }
}

impl Calibration {
    /// The machine of slower-is-faster. Of eft's messages it has the instructions, which another machine has counted.
    pub fn e5520() -> Result<Self, CalibrationError> {
        let own = Self::parse("e5520.toml", include_str!("../calibration/e5520.toml"))?;
        Ok(own.completed_by(&Self::epyc_vm()?))
    }

    /// What `eft bench costs` has measured on a virtual machine.
    pub fn epyc_vm() -> Result<Self, CalibrationError> {
        Self::parse("epyc-vm.toml", include_str!("../calibration/epyc-vm.toml"))
    }

    pub fn opteron_6168() -> Result<Self, CalibrationError> {
        Self::parse("opteron-6168.toml", include_str!("../calibration/opteron-6168.toml"))
    }

    /// A desktop with two classes of cores.
    pub fn core_ultra_245k() -> Result<Self, CalibrationError> {
        let text = include_str!("../calibration/core-ultra-245k.toml");
        Ok(Self::e5520()?.replaced_by(&Self::parse("core-ultra-245k.toml", text)?))
    }

    /// A big.LITTLE of ARM's.
    pub fn exynos_5422() -> Result<Self, CalibrationError> {
        let text = include_str!("../calibration/exynos-5422.toml");
        Ok(Self::e5520()?.replaced_by(&Self::parse("exynos-5422.toml", text)?))
    }

    /// A server of 64 little cores.
    pub fn xeon_6710e() -> Result<Self, CalibrationError> {
        let text = include_str!("../calibration/xeon-6710e.toml");
        Ok(Self::e5520()?.replaced_by(&Self::parse("xeon-6710e.toml", text)?))
    }

    /// Adds every table of another file that this one lacks.
    pub fn with_stacks_of(mut self, other: &Self) -> Self {
        for (name, table) in &other.0 {
            self.0.entry(name.clone()).or_insert_with(|| table.clone());
        }
        self
    }

    /// Adds every parameter of another file that this one's table of that name lacks.
    fn completed_by(mut self, other: &Self) -> Self {
        for (name, table) in &mut self.0 {
            for (parameter, value) in other.0.get(name).into_iter().flatten() {
                table.entry(parameter.clone()).or_insert_with(|| value.clone());
            }
        }
        self
    }

    /// With every parameter of another file, whether this one has it or not: a machine's own measurements.
    pub fn replaced_by(mut self, other: &Self) -> Self {
        for (name, table) in &other.0 {
            self.0.entry(name.clone()).or_default().extend(table.clone());
        }
        self
    }

    pub fn parse(file: &str, text: &str) -> Result<Self, CalibrationError> {
        let all: BTreeMap<String, BTreeMap<String, Parameter>> =
            toml::from_str(text).map_err(|why| CalibrationError::malformed(file, text, &why))?;
        for (table, parameters) in &all {
            for (name, parameter) in parameters {
                let name = || format!("{table}.{name}");
                parameter.check().map_err(|why| CalibrationError::Parameter {
                    file: file.into(),
                    name: name(),
                    why,
                })?;
            }
        }
        Ok(Self(all))
    }

    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str, &Parameter)> {
        self.0.iter().flat_map(|(table, all)| all.iter().map(move |(n, p)| (table.as_str(), n.as_str(), p)))
    }

    pub fn parameter(&self, table: &str, name: &str) -> Result<&Parameter, CalibrationError> {
        let known = self.0.get(table).and_then(|all| all.get(name));
        known.ok_or_else(|| CalibrationError::NoParameter(format!("{table}.{name}")))
    }

    pub fn get(&self, table: &str, name: &str) -> Result<u64, CalibrationError> {
        self.parameter(table, name).map(|parameter| parameter.value)
    }

    /// The machine's.
    pub fn chip(&self) -> Result<Chip, CalibrationError> {
        let of = |name: &str| self.get("machine", name);
        Ok(Chip {
            lowest: (of("lowest_khz")?, of("lowest_mw")?),
            highest: (of("highest_khz")?, of("highest_mw")?),
            cores: of("cores")?,
        })
    }

    /// The machine's, by classes if the file has tables of them; else those of [`Self::chip`], which are equal.
    pub fn cores(&self) -> Result<Cores, CalibrationError> {
        let has = |class: &&(&str, &str)| self.0.contains_key(class.1);
        let classes = CLASSES.iter().filter(has).map(|(name, table)| self.class(name, table));
        match Cores::of(classes.collect::<Result<_, CalibrationError>>()?) {
            Some(cores) => Ok(cores),
            None => Ok(Cores::equal(self.chip()?)),
        }
    }

    fn class(&self, name: &'static str, table: &'static str) -> Result<Class, CalibrationError> {
        let of = |name: &str| self.get(table, name);
        let mut clocks = Table::default();
        for (number, point) in (1..=SPEEDS).zip(&mut clocks) {
            let of = |what: &str| of(&format!("{what}_{number}"));
            *point = Point { khz: of("khz")?, milliwatts: of("mw")? };
        }
        let class = Class {
            name,
            cores: of("cores")?,
            speeds: Speeds::Clocks(clocks),
            per_cycle: self.per_cycle(table)?,
            static_mw: of("static_mw")?,
            is_cluster: of("is_cluster")? == 1,
            capacity: of("capacity").ok(),
        };
        let bad = |why| Err(CalibrationError::BadCores { table, why });
        if clocks[0].khz == 0 || !clocks.is_sorted_by(|slow, fast| slow.khz < fast.khz) {
            return bad("has clocks that do not rise");
        }
        if class.cores == 0 || class.per_cycle == 0 {
            return bad("has no cores, or cores that do nothing");
        }
        Ok(class)
    }

    /// Of the first class in percent of the reference, and of the others in percent of the first one: how cores of one machine
    /// compare is better known than what either does, and drawn apart little cores would outrun the big ones now and then.
    fn per_cycle(&self, table: &str) -> Result<u64, CalibrationError> {
        let of_first = || CLASSES.iter().find_map(|(_, first)| self.get(first, "work_percent").ok());
        match (self.get(table, "work_of_largest_percent"), of_first()) {
            (Ok(share), Some(first)) => Ok((first * share + 50) / 100),
            _ => self.get(table, "work_percent"),
        }
    }

    pub fn set(&mut self, table: &str, name: &str, value: u64) {
        if let Some(parameter) = self.0.get_mut(table).and_then(|all| all.get_mut(name)) {
            parameter.value = value;
        }
    }

    /// Draws another value for each parameter that was assumed.
    pub fn draw(&self, seed: u64) -> Self {
        let (mut drawn, mut random) = (self.clone(), Random::new(seed));
        let all = drawn.0.values_mut().flat_map(BTreeMap::values_mut);
        all.filter(|parameter| parameter.tag == Tag::Assumed).for_each(|p| p.draw(&mut random));
        drawn
    }
}

#[cfg(test)]
mod tests;
