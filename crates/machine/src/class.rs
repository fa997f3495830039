//! Core classes: which cores are big, which are little.
//!
//! The strongest evidence decides: the hybrid PMUs (the kernel knows the core type), then `cpu_capacity`, then the
//! maximum frequency. Promises: cores whose figures differ by less than the noise are called equal; AMD's preferred
//! cores, a few percent apart, are no asymmetric machine.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::KiloHertz;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CoreClass {
    Little,
    Medium,
    Big,
    /// All cores of this machine are alike, as far as is known.
    #[default]
    Equal,
}

impl CoreClass {
    pub fn name(self) -> &'static str {
        match self {
            Self::Little => "little",
            Self::Medium => "medium",
            Self::Big => "big",
            Self::Equal => "equal",
        }
    }
}

/// The evidence for one core's class.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub core_type: Option<String>,
    pub capacity: Option<u32>,
    pub fastest: Option<KiloHertz>,
}

/// Cores whose figures lie within this ratio of the largest are of its class.
const SAME_CLASS_RATIO: f64 = 0.9;
/// Frequencies are weaker evidence than capacities: boost bins differ between equal cores.
const SAME_FREQUENCY_RATIO: f64 = 0.8;

/// The class of each core, in the order given, and what decided it.
pub fn classify(cores: &[Evidence]) -> (Vec<CoreClass>, Option<String>) {
    if let Some(classes) = by_core_type(cores) {
        return (classes, Some("hybrid PMU".into()));
    }
    let capacities: Vec<Option<f64>> = cores.iter().map(|core| core.capacity.map(f64::from)).collect();
    if let Some(classes) = by_figure(&capacities, SAME_CLASS_RATIO) {
        return (classes, Some("cpu_capacity".into()));
    }
    let frequencies: Vec<Option<f64>> =
        cores.iter().map(|core| core.fastest.map(|clock| clock.0 as f64)).collect();
    if let Some(classes) = by_figure(&frequencies, SAME_FREQUENCY_RATIO) {
        return (
            classes,
            Some(format!("maximum frequency, more than {:.0}% apart", (1.0 - SAME_FREQUENCY_RATIO) * 100.0)),
        );
    }
    (cores.iter().map(|_| CoreClass::Equal).collect(), None)
}

/// Intel names its PMUs `cpu_core`, `cpu_atom` and `cpu_lowpower`; ARM has one PMU per microarchitecture, and only the
/// capacity gives their order.
fn by_core_type(cores: &[Evidence]) -> Option<Vec<CoreClass>> {
    let class = |core: &Evidence| match core.core_type.as_deref() {
        Some("cpu_core") => Some(CoreClass::Big),
        Some("cpu_atom" | "cpu_lowpower") => Some(CoreClass::Little),
        _ => None,
    };
    // An offline core is in no PMU's list; the others' types are still known.
    let classes: Vec<Option<CoreClass>> = cores.iter().map(class).collect();
    let mut known = classes.iter().flatten();
    let first = known.next()?;
    if known.all(|other| other == first) {
        return None;
    }
    Some(classes.into_iter().map(|class| class.unwrap_or(CoreClass::Equal)).collect())
}

fn by_figure(figures: &[Option<f64>], same_ratio: f64) -> Option<Vec<CoreClass>> {
    let known: Vec<f64> = figures.iter().flatten().copied().filter(|figure| *figure > 0.0).collect();
    let largest = known.iter().copied().fold(f64::MIN, f64::max);
    let smallest = known.iter().copied().fold(f64::MAX, f64::min);
    if known.len() < 2 || smallest >= largest * same_ratio {
        return None;
    }
    let class = |figure: &Option<f64>| match figure {
        None => CoreClass::Equal,
        Some(figure) if *figure >= largest * same_ratio => CoreClass::Big,
        Some(figure) if *figure <= smallest / same_ratio => CoreClass::Little,
        Some(_) => CoreClass::Medium,
    };
    Some(figures.iter().map(class).collect())
}

#[cfg(test)]
mod tests;
