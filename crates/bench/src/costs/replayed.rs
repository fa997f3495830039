//! One component's recordings of all loads, replayed: the costs of its kinds of work.

use super::count::{self, Counted, Events};
use super::file::Parameter;
use super::fit::{self, Stretch};
use super::kinds::{self, Kind};
use super::recordings;
use anyhow::{Context, Result, bail};
use eft_base::Protection;
use eft_messages::ComponentId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Fewer say nothing.
const FEWEST: f64 = 20.0;

/// A load's recording of a component.
pub struct OfLoad {
    /// As the load's folder is called.
    pub load: String,
    counted: Counted,
    events: Vec<Events>,
    native_ns: u64,
}

pub struct Replayed {
    pub component: ComponentId,
    pub loads: Vec<OfLoad>,
}

/// Replays the recordings of all folders, one for each load.
pub fn all(folders: &[PathBuf], calls: usize, scratch: &Path) -> Result<Vec<Replayed>> {
    let mut by_component: BTreeMap<ComponentId, Vec<OfLoad>> = BTreeMap::new();
    for folder in folders {
        let load = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        for file in recordings(folder)? {
            let Some(component) = count::component(&file).with_context(|| file.display().to_string())? else {
                continue;
            };
            let native_ns = count::natively(&file, calls)?.ns.iter().sum();
            let (counted, events) = count::under_callgrind(&file, calls, Protection::On, scratch)?;
            let of_load = OfLoad { load: load.clone(), counted, events, native_ns };
            by_component.entry(component).or_default().push(of_load);
        }
    }
    if by_component.is_empty() {
        bail!("there are no recordings of tcp, ip or filter");
    }
    Ok(by_component.into_iter().map(|(component, loads)| Replayed { component, loads }).collect())
}

impl OfLoad {
    fn stretches(&self, kinds: &[Kind]) -> Vec<Stretch> {
        let of = |(counts, events): (&Vec<u64>, &Events)| Stretch {
            counts: counts.iter().zip(kinds).map(|(n, kind)| *n as f64 / kind.unit as f64).collect(),
            cost: events.instructions as f64,
        };
        self.counted.stretches.iter().zip(&self.events).map(of).collect()
    }

    pub fn messages(&self) -> u64 {
        self.counted.messages
    }

    /// For each message that a neighbour has sent.
    pub fn instructions(&self) -> f64 {
        self.sum(|events| events.instructions) / self.counted.messages.max(1) as f64
    }

    /// The same: misses of the first level that the last one has, and misses of the last one.
    pub fn misses(&self) -> (f64, f64) {
        let messages = self.counted.messages.max(1) as f64;
        let last = self.sum(|events| events.last_misses) / messages;
        ((self.sum(|events| events.first_misses) / messages - last).max(0.0), last)
    }

    /// The same: nanoseconds.
    pub fn native_ns(&self) -> f64 {
        self.native_ns as f64 / self.counted.messages.max(1) as f64
    }

    fn sum(&self, of: fn(&Events) -> u64) -> f64 {
        self.events.iter().map(of).sum::<u64>() as f64
    }
}

impl Replayed {
    /// Instructions of each kind of work that occurred.
    pub fn parameters(&self) -> Vec<Parameter> {
        let kinds = kinds::of(self.component);
        let groups: Vec<Vec<Stretch>> = self.loads.iter().map(|load| load.stretches(kinds)).collect();
        let whole: Vec<Stretch> = groups.concat();
        let costs = fit::costs(&whole);
        let error = fit::error(&whole, &costs) * 100.0;
        let one = |((kind, cost), (low, high)): ((&Kind, f64), (f64, f64))| {
            let count: f64 = self
                .loads
                .iter()
                .flat_map(|l| &l.counted.stretches)
                .map(|s| s[index(kinds, kind)])
                .sum::<u64>() as f64;
            let number = count / kind.unit as f64;
            (number >= FEWEST).then(|| Parameter {
                name: kind.name,
                value: cost,
                low,
                high,
                is_assumed: false,
                source: format!(
                    "instructions of {} for {}: callgrind, {number:.0} in recordings of {} loads; the fit is off by {error:.0}% (median)",
                    self.component,
                    kind.what,
                    self.loads.len()
                ),
            })
        };
        kinds.iter().zip(costs).zip(fit::ranges(&groups)).filter_map(one).collect()
    }
}

fn index(kinds: &[Kind], kind: &Kind) -> usize {
    kinds.iter().position(|other| other.name == kind.name).unwrap_or(0)
}
