//! Machine descriptions (`topologies/machines/*.toml`): an asymmetric machine that is emulated on a symmetric one.
//!
//! Promises: unknown keys, speeds out of range and a CPU named twice are errors that name the place in the file, so
//! that no experiment runs with a typing mistake.

use alloc::string::String;
use alloc::vec::Vec;

use eft_base::text::complaint;
use eft_machine::{CoreClass, CpuSet, Share};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::duty::Phase;
use crate::power::{PowerError, PowerModel};
use crate::speed::{Speed, SpeedError};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    pub name: String,
    #[serde(default)]
    pub about: String,
    /// How the stalls of slowed cores are aligned with each other.
    #[serde(default)]
    pub phase: Phase,
    #[serde(rename = "core")]
    pub cores: Vec<CoreDescription>,
    pub power: Option<PowerModel>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreDescription {
    pub cpus: CpuSet,
    #[serde(default)]
    pub class: CoreClass,
    /// In the notation of `eft cpu speed`: a share such as `0.421` or `7/8`, or a frequency.
    #[serde(default = "full")]
    pub speed: String,
}

fn full() -> String {
    "full".into()
}

/// What is wrong with a description.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DescriptionError {
    /// Not TOML, or unknown keys or values; with the place in the file.
    #[error("{0}")]
    Syntax(String),
    #[error("CPU {0} is described twice")]
    Twice(CpuSet),
    #[error("a [[core]] names no CPU")]
    CoreWithoutCpu,
    #[error("the description has no [[core]]")]
    NoCore,
    #[error(transparent)]
    Speed(#[from] SpeedError),
    #[error(transparent)]
    Power(#[from] PowerError),
}

impl Description {
    pub fn parse(text: &str) -> Result<Self, DescriptionError> {
        let description: Self = toml::from_str(text)
            .map_err(|e| DescriptionError::Syntax(complaint(text, e.span(), e.message())))?;
        let mut named = CpuSet::new();
        for core in &description.cores {
            core.speed()?;
            let twice = named.and(&core.cpus);
            if !twice.is_empty() {
                return Err(DescriptionError::Twice(twice));
            }
            if core.cpus.is_empty() {
                return Err(DescriptionError::CoreWithoutCpu);
            }
            named = named.union(&core.cpus);
        }
        if named.is_empty() {
            return Err(DescriptionError::NoCore);
        }
        if let Some(power) = &description.power {
            power.check()?;
        }
        Ok(description)
    }

    pub fn cpus(&self) -> CpuSet {
        self.cores.iter().fold(CpuSet::new(), |all, core| all.union(&core.cpus))
    }
}

impl CoreDescription {
    pub fn speed(&self) -> Result<Speed, SpeedError> {
        self.speed.parse()
    }

    /// Cores at full speed are left alone.
    pub fn is_slowed(&self) -> bool {
        self.speed() != Ok(Speed::Share(Share::ALL))
    }
}

#[cfg(test)]
mod tests;
