//! The steps of operations on the paper's machines, and on one that was traced.

use super::operation::{Place, Step};
use crate::calibration::{Calibration, CalibrationError};

pub const OPERATIONS: [&str; 2] = ["offline", "online"];

const US: u64 = 1000;
/// The part of the caller's work for a new CPU that it does before the CPU's processor runs.
const BEFORE_PERCENT: u64 = 33;

pub fn i5_2500k() -> Result<Calibration, CalibrationError> {
    Calibration::parse("i5-2500k.toml", include_str!("../../calibration/i5-2500k.toml"))
}

pub fn exynos_5410() -> Result<Calibration, CalibrationError> {
    Calibration::parse("exynos-5410.toml", include_str!("../../calibration/exynos-5410.toml"))
}

pub fn traced() -> Result<Calibration, CalibrationError> {
    Calibration::parse("traced-vm.toml", include_str!("../../calibration/traced-vm.toml"))
}

/// How a part of an operation divides, ns.
struct Parts {
    before: u64,
    own: u64,
    shared: u64,
    side_by_side: u64,
    after: u64,
    after_deferred: u64,
}

/// Steps of one of the paper's machines, from totals; `instant`: processors start at once.
pub fn from_totals(
    machine: &Calibration,
    operation: &str,
    instant: bool,
) -> Result<Vec<Step>, CalibrationError> {
    let get = |name: &str| machine.get(operation, name);
    let hardware = get("hardware_us")? * US;
    let [native, kept] = [get("native_us")?, get("bolt_us")?].map(|us| (us * US).saturating_sub(hardware));
    let interrupts = get("interrupts_us")? * US;
    let of = |percent: u64| kept * percent / 100;
    let own = of(get("own_percent")?);
    let before = if operation == "online" { own * BEFORE_PERCENT / 100 } else { own };
    let shared = of(get("shared_percent")?);
    let after = |latency: u64| Ok::<u64, CalibrationError>(latency * get("after_permille")? / 1000);
    let parts = Parts {
        before,
        own: own - before,
        shared,
        side_by_side: kept.saturating_sub(own + shared),
        after: after(kept)?,
        after_deferred: after(native)?.saturating_sub(after(kept)?),
    };
    let deferred = native.saturating_sub(kept + interrupts);
    let hardware = if instant { 0 } else { hardware };
    let steps = if operation == "online" {
        coming(&parts, hardware, deferred)
    } else {
        going(&parts, interrupts, deferred)
    };
    Ok(steps.into_iter().filter(|step| step.ns > 0).collect())
}

fn going(parts: &Parts, interrupts: u64, deferred: u64) -> Vec<Step> {
    vec![
        Step::new("domains", parts.shared, Place::Caller).shared(),
        Step::new("notifications", parts.before + parts.own, Place::Caller),
        Step::new("RCU, threads", deferred, Place::Caller).deferred(),
        Step::new("interrupts", interrupts, Place::Caller).deferred(),
        Step::new("CPU goes down", parts.side_by_side, Place::Target).switching(),
        Step::new("after", parts.after, Place::Caller),
        Step::new("after, deferred", parts.after_deferred, Place::Caller).deferred(),
    ]
}

fn coming(parts: &Parts, hardware: u64, deferred: u64) -> Vec<Step> {
    vec![
        Step::new("processor starts", hardware, Place::Hardware),
        Step::new("notifications", parts.before, Place::Caller),
        Step::new("threads, memory", deferred, Place::Caller).deferred(),
        Step::new("CPU comes up", parts.side_by_side, Place::Target),
        Step::new("CPU is let in", parts.own, Place::Caller),
        Step::new("domains", parts.shared, Place::Caller).shared().switching(),
        Step::new("after", parts.after, Place::Caller),
        Step::new("after, deferred", parts.after_deferred, Place::Caller).deferred(),
    ]
}

/// Steps of the traced machine: groups of steps, and which of them Bolt defers or omits.
pub fn from_trace(machine: &Calibration, operation: &str) -> Result<Vec<Step>, CalibrationError> {
    let step = |name: &'static str, key: &str, place: Place| -> Result<Step, CalibrationError> {
        Ok(Step::new(name, machine.get(operation, key)? * US, place))
    };
    let deferred = [
        ("lock", "lock_us"),
        ("grace periods", "grace_periods_us"),
        ("idle driver", "idle_driver_us"),
        ("thread parking", "thread_parking_us"),
        ("allocation", "allocation_us"),
        ("nodes", "nodes_us"),
        ("interrupts", "interrupts_us"),
    ];
    let mut steps = vec![step("hardware", "hardware_us", Place::Hardware)?];
    for (name, key) in deferred {
        steps.push(step(name, key, Place::Caller)?.deferred());
    }
    steps.push(step("other", "other_us", Place::Target)?);
    steps.push(step("stop machine", "stop_machine_us", Place::Target)?.switching());
    Ok(steps.into_iter().filter(|step| step.ns > 0).collect())
}

#[cfg(test)]
mod tests;
