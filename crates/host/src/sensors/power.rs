//! Measured power: RAPL energy counters through powercap, where the machine has them.

use std::time::Duration;

use eft_machine::{Microjoules, Watts};
use serde::Serialize;

use super::Tree;

use crate::error::{Error, error};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Energy {
    pub domain: String,
    pub energy: Microjoules,
    /// Where the counter wraps.
    pub range: Microjoules,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredPower {
    pub domain: String,
    /// As the machine measured it.
    #[serde(rename = "watts")]
    pub power: Watts,
    /// The burners' part of it, by the model: the machine cannot measure it separately.
    #[serde(rename = "burner_modelled_w")]
    pub burner_modelled: Watts,
}

impl MeasuredPower {
    /// Without the burners.
    pub fn net(&self) -> Watts {
        (self.power - self.burner_modelled).max(Watts::ZERO)
    }
}

/// The difference of two readings of a counter that wraps at `range`, if it wrapped once at most; `None` if one wrap
/// cannot explain them.
pub fn used(earlier: Microjoules, now: Microjoules, range: Microjoules) -> Option<Microjoules> {
    now.checked_since(earlier).or_else(|| range.checked_since(earlier)?.0.checked_add(now.0).map(Microjoules))
}

const POWERCAP: &str = "sys/class/powercap";

/// Every domain of every package; empty without RAPL. An unreadable counter (not root) is an error, not an absence.
pub fn read(tree: &Tree) -> Result<Vec<Energy>, Error> {
    let zones = tree.entries(POWERCAP).into_iter().filter(|zone| zone.starts_with("intel-rapl:"));
    zones.map(|zone| energy(tree, &zone)).collect()
}

fn energy(tree: &Tree, zone: &str) -> Result<Energy, Error> {
    let dir = format!("{POWERCAP}/{zone}");
    let path = format!("{dir}/energy_uj");
    let name = tree.text(&format!("{dir}/name")).unwrap_or_default();
    Ok(Energy {
        domain: format!("{name} ({zone})"),
        energy: tree
            .read(&path)?
            .trim()
            .parse()
            .map(Microjoules)
            .map_err(|_| error!(Invalid, "/{path} holds no number"))?,
        range: Microjoules(tree.number(&format!("{dir}/max_energy_range_uj")).unwrap_or(u64::MAX)),
    })
}

/// The power of each domain over `elapsed`, the time between the two readings.
pub fn between(earlier: &[Energy], later: &[Energy], elapsed: Duration) -> Vec<MeasuredPower> {
    let watts = |after: &Energy| {
        let before = earlier.iter().find(|before| before.domain == after.domain)?;
        let used = used(before.energy, after.energy, after.range)?;
        (!elapsed.is_zero()).then(|| MeasuredPower {
            domain: after.domain.clone(),
            power: Watts(used.0 as f64 / elapsed.as_secs_f64() / 1e6),
            burner_modelled: Watts::ZERO,
        })
    };
    later.iter().filter_map(watts).collect()
}

/// Charges burners, as (package, power), to the domains that hold cores: the package, its cores, and the whole platform.
pub fn charge_burners(measured: &mut [MeasuredPower], burners: &[(Option<u32>, Watts)]) {
    let packages: Vec<(String, u32)> = measured.iter().filter_map(|power| package(&power.domain)).collect();
    for power in measured {
        let (name, zone) = power.domain.split_once(" (").unwrap_or((&power.domain, ""));
        let zone = zone.trim_end_matches(')');
        let top = zone.splitn(3, ':').take(2).collect::<Vec<_>>().join(":");
        let own = packages.iter().find(|(known, _)| *known == top).map(|(_, package)| *package);
        let holds = |burner: &&(Option<u32>, Watts)| match name {
            "psys" => true,
            "core" => own.is_some() && (burner.0 == own || burner.0.is_none()),
            _ => name.starts_with("package") && (burner.0 == own || burner.0.is_none()),
        };
        power.burner_modelled = burners.iter().filter(holds).map(|burner| burner.1).sum();
    }
}

/// `package-0 (intel-rapl:0)`: the zone, and the package's number.
fn package(domain: &str) -> Option<(String, u32)> {
    let (name, zone) = domain.split_once(" (")?;
    Some((zone.trim_end_matches(')').to_string(), name.strip_prefix("package-")?.parse().ok()?))
}
