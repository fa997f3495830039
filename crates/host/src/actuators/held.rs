//! What eft holds at the moment: the parked CPUs and the speeds that were set, in one file beside the journal.
//!
//! The journal says how to undo; this file says what is wanted. Both are accessed under the journal's lock only.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use eft_base::Instant;
use eft_cores::duty::DutyOptions;
use eft_cores::park::{Delays, ParkBackEnd};
use eft_cores::speed::BackEnd;
use eft_machine::{CpuId, CpuSet, Share};
use serde::{Deserialize, Serialize};

use super::lazy::ParkedSince;
use super::scope::Scope;
use crate::error::{Error, error};
use crate::sensors::tasks::TaskId;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Counts the changes, so that the holder can report which one it has seen.
    pub generation: u64,
    #[serde(alias = "keeper")]
    pub holder: Option<TaskId>,
    pub managed: CpuSet,
    pub parking: Option<HeldParking>,
    pub speeds: BTreeMap<CpuId, HeldSpeed>,
    /// CPUs that `eft cpu offline` and `online` switched.
    pub switched: CpuSet,
    /// The machine description in force.
    pub machine: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldParking {
    pub back_end: ParkBackEnd,
    pub scope: Scope,
    pub spread: Vec<u32>,
    pub delays: Delays,
    pub force: bool,
    /// Keep cpusets and attachments although nothing is parked.
    pub keep_set_up: bool,
    /// CPU and the moment it was parked, on the monotonic clock; in the file, whole ms.
    #[serde(with = "moments")]
    pub parked: BTreeMap<CpuId, Instant>,
}

/// Moments as whole milliseconds, as every eft has written them.
mod moments {
    use std::collections::BTreeMap;

    use eft_base::Instant;
    use eft_machine::CpuId;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(parked: &BTreeMap<CpuId, Instant>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(parked.iter().map(|(cpu, since)| (cpu, since.as_millis())))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<CpuId, Instant>, D::Error> {
        let named = BTreeMap::<CpuId, u64>::deserialize(from)?;
        Ok(named.into_iter().map(|(cpu, ms)| (cpu, Instant::from_millis(ms))).collect())
    }
}

impl HeldParking {
    pub fn set(&self) -> CpuSet {
        self.parked.keys().copied().collect()
    }

    pub fn since(&self) -> Vec<ParkedSince> {
        self.parked.iter().map(|(cpu, since)| ParkedSince { cpu: *cpu, since: *since }).collect()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldSpeed {
    pub back_end: BackEnd,
    pub share: Share,
    pub duty: Option<DutyOptions>,
    pub phase: Option<String>,
    /// What the measuring loop did in a second before the core was slowed.
    pub full_rate: Option<f64>,
}

impl Held {
    pub fn parked(&self) -> CpuSet {
        self.parking.as_ref().map(HeldParking::set).unwrap_or_default()
    }

    /// Nothing is held. The generation still counts on, since others may wait for the one that they published.
    pub fn nothing(generation: u64) -> Held {
        Held { generation, ..Held::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.parking.is_none() && self.speeds.is_empty() && self.switched.is_empty()
    }
}

/// The holder's status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    pub generation: u64,
    /// Thread of the burner on each slowed CPU.
    pub burners: BTreeMap<CpuId, i32>,
    pub errors: Vec<String>,
    pub notes: Vec<String>,
    pub swept: usize,
}

impl Status {
    /// Whether the holder has applied `generation` or a later one, which contains it: another eft may have published
    /// one before the holder got the lock.
    pub fn has_served(&self, generation: u64) -> bool {
        self.generation >= generation
    }
}

/// A holder's progress with a generation.
#[derive(Debug, PartialEq)]
pub enum Progress {
    /// Done, but for these errors.
    Served(Vec<String>),
    Working,
    /// It ended, and that was not the last thing that it did.
    Ended,
}

/// A holder that holds nothing writes its status and ends. So the check whether it is alive comes before the reading
/// of its status.
pub fn progress(
    generation: u64,
    is_alive: impl FnOnce() -> bool,
    status: impl FnOnce() -> Status,
) -> Progress {
    let is_alive = is_alive();
    let status = status();
    match (status.has_served(generation), is_alive) {
        (true, _) => Progress::Served(status.errors),
        (false, true) => Progress::Working,
        (false, false) => Progress::Ended,
    }
}

pub fn load(dir: &Path) -> Held {
    read(dir, "held.json")
}

pub fn save(dir: &Path, held: &Held) -> Result<(), Error> {
    write(dir, "held.json", held)
}

pub fn load_status(dir: &Path) -> Status {
    read(dir, "status.json")
}

pub fn save_status(dir: &Path, status: &Status) -> Result<(), Error> {
    write(dir, "status.json", status)
}

/// An absent or damaged file means that nothing is held; the journal can still undo the changes.
fn read<T: Default + for<'de> Deserialize<'de>>(dir: &Path, name: &str) -> T {
    fs::read(dir.join(name)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Replaces the file as a whole, or not at all.
fn write<T: Serialize>(dir: &Path, name: &str, value: &T) -> Result<(), Error> {
    let (path, fresh) = (dir.join(name), dir.join(format!("{name}.new")));
    let text = serde_json::to_vec(value).map_err(|error| error!(System, "{error}"))?;
    fs::write(&fresh, text)
        .and_then(|()| fs::rename(&fresh, &path))
        .map_err(|error| error!(System, "{} cannot be written ({error})", path.display()))
}

#[cfg(test)]
mod tests;
