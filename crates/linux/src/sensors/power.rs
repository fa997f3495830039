//! Measured power: RAPL energy counters through powercap, where the machine has them.

use serde::Serialize;

use super::Tree;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Energy {
    pub domain: String,
    pub energy_uj: u64,
    /// Where the counter wraps.
    pub range_uj: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredPower {
    pub domain: String,
    pub watts: f64,
}

const POWERCAP: &str = "sys/class/powercap";

/// Every domain of every package; empty without RAPL. An unreadable counter (not root) is an error, not an absence.
pub fn read(tree: &Tree) -> Result<Vec<Energy>, String> {
    let zones = tree.entries(POWERCAP).into_iter().filter(|zone| zone.starts_with("intel-rapl:"));
    zones.map(|zone| energy(tree, &zone)).collect()
}

fn energy(tree: &Tree, zone: &str) -> Result<Energy, String> {
    let dir = format!("{POWERCAP}/{zone}");
    let path = format!("{dir}/energy_uj");
    let name = tree.text(&format!("{dir}/name")).unwrap_or_default();
    Ok(Energy {
        domain: format!("{name} ({zone})"),
        energy_uj: tree.read(&path)?.trim().parse().map_err(|_| format!("/{path} holds no number"))?,
        range_uj: tree.number(&format!("{dir}/max_energy_range_uj")).unwrap_or(u64::MAX),
    })
}

pub fn between(earlier: &[Energy], later: &[Energy], seconds: f64) -> Vec<MeasuredPower> {
    let watts = |after: &Energy| {
        let before = earlier.iter().find(|before| before.domain == after.domain)?;
        let used_uj = match after.energy_uj.checked_sub(before.energy_uj) {
            Some(used) => used,
            None => after.range_uj.checked_sub(before.energy_uj)?.checked_add(after.energy_uj)?,
        };
        (seconds > 0.0)
            .then(|| MeasuredPower { domain: after.domain.clone(), watts: used_uj as f64 / seconds / 1e6 })
    };
    later.iter().filter_map(watts).collect()
}
