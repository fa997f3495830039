//! The parameters of the model: values, ranges, tags and sources, from `calibration.toml`.
//!
//! Promises: a parameter without tag, source or, where it was not measured or printed, range is an error.

use std::collections::BTreeMap;

use eft_base::random::Random;
use serde::Deserialize;

use crate::calibration::CalibrationError;
use crate::parameter::Parameter;

const FILE: &str = "calibration.toml";
const TEXT: &str = include_str!("calibration.toml");

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    #[serde(default)]
    machine: BTreeMap<String, Parameter>,
    programs: BTreeMap<String, BTreeMap<String, Parameter>>,
}

/// A program's parameters; see the head of the programs in `calibration.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    pub ipc: u64,
    pub memory: u64,
    pub ipc_wander: u64,
    pub serial: u64,
    pub chunk_ms: u64,
    pub run_ms: u64,
    pub sleep_ms: u64,
    pub arrive_ms: u64,
}

impl Calibration {
    /// Of the paper's machine and programs.
    pub fn read() -> Result<Self, CalibrationError> {
        Self::parse(TEXT)
    }

    pub fn parse(text: &str) -> Result<Self, CalibrationError> {
        let all: Self = toml::from_str(text).map_err(|why| CalibrationError::malformed(FILE, text, &why))?;
        for (name, parameter) in all.parameters() {
            parameter.check().map_err(|why| CalibrationError::Parameter { file: FILE.into(), name, why })?;
        }
        Ok(all)
    }

    /// Every parameter with its name, in a fixed order.
    pub fn parameters(&self) -> impl Iterator<Item = (String, &Parameter)> {
        let machine = self.machine.iter().map(|(name, p)| (format!("machine.{name}"), p));
        let programs = self.programs.iter();
        machine.chain(
            programs.flat_map(|(program, all)| all.iter().map(move |(n, p)| (format!("{program}.{n}"), p))),
        )
    }

    /// Draws a value within its range for each parameter that was assumed or fitted.
    pub fn draw(&self, seed: u64) -> Self {
        let (mut drawn, mut random) = (self.clone(), Random::new(seed));
        let programs = drawn.programs.values_mut().flat_map(BTreeMap::values_mut);
        for parameter in drawn.machine.values_mut().chain(programs) {
            parameter.draw(&mut random);
        }
        drawn
    }

    /// Sets a program's parameter without regard to its range.
    pub fn set(&mut self, program: &str, parameter: &str, value: u64) {
        if let Some(parameter) = self.programs.get_mut(program).and_then(|all| all.get_mut(parameter)) {
            parameter.value = value;
        }
    }

    pub fn machine(&self, name: &str) -> u64 {
        self.machine.get(name).map_or(0, |parameter| parameter.value)
    }

    pub fn program(&self, name: &str) -> Result<Program, CalibrationError> {
        let all = self.programs.get(name).ok_or_else(|| CalibrationError::NoProgram(name.into()))?;
        let value = |key: &str| all.get(key).map_or(0, |parameter| parameter.value);
        Ok(Program {
            ipc: value("ipc"),
            memory: value("memory"),
            ipc_wander: value("ipc_wander"),
            serial: value("serial"),
            chunk_ms: value("chunk_ms"),
            run_ms: value("run_ms"),
            sleep_ms: value("sleep_ms"),
            arrive_ms: value("arrive_ms"),
        })
    }
}

#[cfg(test)]
mod tests;
