//! Operations' times, as named figures: `MACHINE/OPERATION/WAY/CPUS/ms`, `…/switched_ms` until CPUs are off or run.
//!
//! `instant/…` is the x86 machine whose processors start at once, `without-concurrency/…` and `without-sharing/…` are ablations.

use super::machines::{OPERATIONS, from_totals, from_trace};
use super::operation::{Gains, Step, Way, latency};
use crate::calibration::{Calibration, CalibrationError};
use crate::judge::Figures;

/// CPUs of the paper's sets.
pub const SET: usize = 3;

const NS_PER_MS: f64 = 1e6;

/// The paper's machines, and one that was traced.
#[derive(Clone)]
pub struct Machines {
    pub i5: Calibration,
    pub exynos: Calibration,
    pub traced: Calibration,
}

impl Machines {
    pub fn nominal() -> Result<Self, CalibrationError> {
        Ok(Self {
            i5: super::machines::i5_2500k()?,
            exynos: super::machines::exynos_5410()?,
            traced: super::machines::traced()?,
        })
    }

    /// Draws other values of the assumed parameters.
    pub fn draw(&self, seed: u64) -> Self {
        Self { i5: self.i5.draw(seed), exynos: self.exynos.draw(seed), traced: self.traced.draw(seed) }
    }
}

pub fn figures(machines: &Machines) -> Result<Figures, CalibrationError> {
    let mut all = Figures::new();
    for operation in OPERATIONS {
        for (name, machine, instant) in [
            ("i5", &machines.i5, false),
            ("exynos", &machines.exynos, false),
            ("instant", &machines.i5, true),
        ] {
            ways(&mut all, &format!("{name}/{operation}"), &from_totals(machine, operation, instant)?);
        }
        ways(&mut all, &format!("traced/{operation}"), &from_trace(&machines.traced, operation)?);
        let measured = machines.traced.get(operation, "three_us")? as f64 / 1000.0;
        all.insert(format!("traced/{operation}/measured/3/ms"), measured);
        let steps = from_totals(&machines.i5, operation, false)?;
        for (name, gains) in [
            ("without-concurrency", Gains { concurrency: false, sharing: true }),
            ("without-sharing", Gains { concurrency: true, sharing: false }),
        ] {
            let set = latency(&steps, SET, Way::Set(gains)).done_ns as f64 / NS_PER_MS;
            all.insert(format!("{name}/{operation}/set/{SET}/ms"), set);
        }
    }
    cluster(&mut all, &machines.exynos)?;
    Ok(all)
}

fn ways(all: &mut Figures, name: &str, steps: &[Step]) {
    for (way, how) in [("native", Way::Native), ("bolt", Way::OneByOne), ("set", Way::Set(Gains::ALL))] {
        for cpus in [1, SET] {
            let took = latency(steps, cpus, how);
            all.insert(format!("{name}/{way}/{cpus}/ms"), took.done_ns as f64 / NS_PER_MS);
            all.insert(format!("{name}/{way}/{cpus}/switched_ms"), took.switched_ns as f64 / NS_PER_MS);
        }
    }
}

/// The cluster's power while all of its online cores sleep.
fn cluster(all: &mut Figures, machine: &Calibration) -> Result<(), CalibrationError> {
    for online in 1..=2 {
        let deep = online <= machine.get("cluster", "online_most")?;
        let mw = machine.get("cluster", if deep { "package_sleep_mw" } else { "sleep_mw" })?;
        all.insert(format!("cluster/{online}/mw"), mw as f64);
    }
    Ok(())
}

/// The parts of an operation on a machine, ms: name, whether Bolt does it, time.
pub fn parts(
    machines: &Machines,
    machine: &str,
    operation: &str,
) -> Result<Vec<(String, bool, f64)>, CalibrationError> {
    let steps = match machine {
        "i5" => from_totals(&machines.i5, operation, false)?,
        "exynos" => from_totals(&machines.exynos, operation, false)?,
        _ => from_trace(&machines.traced, operation)?,
    };
    Ok(steps.iter().map(|s| (s.name.to_string(), !s.is_deferred, s.ns as f64 / NS_PER_MS)).collect())
}

/// Null models: each way takes as long as one native operation, or as one for each CPU.
pub fn simple(nominal: &Figures, linear: bool) -> Figures {
    let value = |name: &str| -> f64 {
        let parts: Vec<&str> = name.split('/').collect();
        let [machine, operation, _, cpus, unit] = parts[..] else {
            return nominal.get("cluster/2/mw").copied().unwrap_or(f64::NAN);
        };
        let one = nominal.get(&format!("{machine}/{operation}/native/1/{unit}"));
        let times = if linear { cpus.parse().unwrap_or(1.0) } else { 1.0 };
        one.copied().unwrap_or(f64::NAN) * times
    };
    nominal.keys().map(|name| (name.clone(), value(name))).collect()
}
