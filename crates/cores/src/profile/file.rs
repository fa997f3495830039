//! The profile file: TOML behind one line that names its version and a digest of the rest.
//!
//! ```text
//! # eft profiles, version 2, digest 0123456789abcdef
//! [machine]
//! model = "…"
//! …
//! [[load]]
//! name = "bulk"
//! mix = { … }
//! [[load.outcome]]
//! throughput = …
//! ```
//!
//! Promises: a file that is damaged, of another version or of another machine is refused with one clear line; what was
//! written reads back the same.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use eft_base::text::{complaint, one_line};
use eft_machine::{CoreClass, CpuSet, Machine};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::profile::{LoadProfile, Profiles};

pub const VERSION: u32 = 2;
/// A larger file is not a profile file of eft.
const BYTES_MAX: usize = 16 << 20;
const HEAD: &str = "# eft profiles, version ";

/// What identifies a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    #[serde(default)]
    pub model: Option<String>,
    pub cpus: CpuSet,
    pub little: CpuSet,
    pub medium: CpuSet,
    pub big: CpuSet,
}

impl Fingerprint {
    pub fn of(machine: &Machine) -> Self {
        let of_class = |class: CoreClass| {
            machine.cpus.iter().filter(|cpu| cpu.class == class).map(|cpu| cpu.cpu).collect()
        };
        Self {
            model: machine.model.clone(),
            cpus: machine.online.union(&machine.offline).union(&machine.parked),
            little: of_class(CoreClass::Little),
            medium: of_class(CoreClass::Medium),
            big: of_class(CoreClass::Big),
        }
    }

    /// What differs, in a few words.
    fn difference(&self, other: &Self) -> Option<String> {
        if self.model != other.model {
            let name = |model: &Option<String>| model.clone().unwrap_or_else(|| "unnamed".into());
            return Some(format!("{} instead of {}", name(&other.model), name(&self.model)));
        }
        if self.cpus != other.cpus {
            return Some(format!("CPUs {} instead of {}", other.cpus, self.cpus));
        }
        (self != other).then(|| "its cores are of other classes".into())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    machine: Fingerprint,
    #[serde(default, rename = "load")]
    loads: Vec<LoadProfile>,
}

/// Why a profile file is not read or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileError {
    #[error("the profile file is larger than {} MiB", BYTES_MAX >> 20)]
    TooLarge,
    #[error("this is no profile file of eft (its first line names version and digest)")]
    Foreign,
    #[error("the profile file has version {0}; this program reads version {VERSION}")]
    Version(String),
    #[error("the profile file is damaged or was edited: its digest does not match")]
    Digest,
    #[error("the profile file is damaged: {0}")]
    Damaged(String),
    /// With what differs.
    #[error("the profile file is of another machine: {0}")]
    OtherMachine(String),
    #[error("{0}")]
    Unwritable(String),
}

pub fn write(profiles: &Profiles, machine: &Machine) -> Result<String, FileError> {
    let contents =
        Contents { machine: Fingerprint::of(machine), loads: profiles.loads.iter().cloned().collect() };
    let body =
        toml::to_string(&contents).map_err(|error| FileError::Unwritable(one_line(&error.to_string())))?;
    Ok(format!("{HEAD}{VERSION}, digest {:016x}\n{body}", digest(&body)))
}

pub fn read(text: &str, machine: &Machine) -> Result<Profiles, FileError> {
    if text.len() > BYTES_MAX {
        return Err(FileError::TooLarge);
    }
    let (head, body) = text.split_once('\n').unwrap_or((text, ""));
    let told = head.strip_prefix(HEAD).and_then(|rest| rest.split_once(", digest "));
    let (version, told) = told.ok_or(FileError::Foreign)?;
    if version != VERSION.to_string() {
        let version: String = version.chars().filter(|c| !c.is_control()).take(10).collect();
        return Err(FileError::Version(version));
    }
    if u64::from_str_radix(told.trim(), 16) != Ok(digest(body)) {
        return Err(FileError::Digest);
    }
    let contents: Contents = toml::from_str(body)
        .map_err(|error| FileError::Damaged(complaint(body, error.span(), error.message())))?;
    if let Some(difference) = Fingerprint::of(machine).difference(&contents.machine) {
        return Err(FileError::OtherMachine(difference));
    }
    contents.loads.iter().try_for_each(check_load)?;
    Ok(Profiles { loads: contents.loads.into() })
}

fn check_load(load: &LoadProfile) -> Result<(), FileError> {
    let sane = |value: f64| value.is_finite() && value >= 0.0;
    let mix = load.mix.axes().iter().all(|axis| (0.0..=1.0).contains(axis));
    let outcomes = load.outcomes.iter().all(|outcome| {
        sane(outcome.throughput.0)
            && sane(outcome.power.0)
            && outcome.latency.is_none_or(|latency| sane(latency.0))
    });
    if mix && outcomes {
        return Ok(());
    }
    Err(FileError::Damaged(format!("load '{}' has figures that cannot be", one_line(&load.name))))
}

/// FNV-1a: finds damage, not malice.
fn digest(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
