//! The judge's own estimate of power and its own ranking. It shares no code and no constant with the model that the
//! policies use, so that an error there is not repeated here.
//!
//! All of it is modelled: the machine has no meter. A core whose clock is stopped for a part of the time (which is what
//! the emulated speed stands for) needs its voltage all the while that it is awake, so slowness saves only what switches.

use eft_cores::plan::Plan;
use eft_machine::CpuId;

/// Of one core, W. Assumed; [`Constants::ALL`] has a machine that leaks much and one that leaks little beside the middle.
#[derive(Clone, Copy, Debug)]
pub struct Constants {
    pub name: &'static str,
    /// Awake, doing nothing.
    awake_w: f64,
    /// More, for each share of the time in which instructions are executed.
    executing_w: f64,
    /// In a deep idle state.
    asleep_w: f64,
    /// What all cores share, while any of them is used.
    shared_w: f64,
}

impl Constants {
    pub const MIDDLE: Constants =
        Constants { name: "middle", awake_w: 2.0, executing_w: 6.0, asleep_w: 0.1, shared_w: 5.0 };
    pub const ALL: [Constants; 3] = [
        Constants::MIDDLE,
        Constants { name: "leaks much", awake_w: 4.0, executing_w: 5.0, asleep_w: 0.3, shared_w: 8.0 },
        Constants { name: "leaks little", awake_w: 0.7, executing_w: 7.0, asleep_w: 0.05, shared_w: 2.5 },
    ];
}

/// What was measured over a while under one plan.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    pub seconds: f64,
    pub plan: Plan,
    /// CPU time of each component, s.
    pub cpu_s: Vec<(String, f64)>,
}

/// Energy of the managed CPUs, J. `cpus` are all of them.
pub fn energy_j(slice: &Slice, cpus: &[CpuId], constants: &Constants) -> f64 {
    let one = |cpu: CpuId| {
        let on_it = |name: &str| slice.plan.seats.get(name).is_some_and(|seat| seat.cpu == cpu);
        let work: f64 = slice.cpu_s.iter().filter(|(name, _)| on_it(name)).map(|(_, s)| s).sum();
        let executing = (work / slice.seconds.max(1e-9)).min(1.0);
        // A core at half speed is awake twice as long for the same work.
        let awake = (executing / slice.plan.speed(cpu).0.clamp(0.01, 1.0)).min(1.0);
        constants.awake_w * awake + constants.executing_w * executing + constants.asleep_w * (1.0 - awake)
    };
    (cpus.iter().map(|cpu| one(*cpu)).sum::<f64>() + constants.shared_w) * slice.seconds
}

/// How much of a reference a load achieved: the geometric mean over its parts, so that none hides behind another.
pub fn relative(work_per_s: &[f64], reference_per_s: &[f64]) -> f64 {
    let logs: Vec<f64> = work_per_s
        .iter()
        .zip(reference_per_s)
        .map(|(own, other)| (own.max(1e-9) / other.max(1e-9)).ln())
        .collect();
    (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    Throughput,
    /// Least power with at least this share of the best throughput.
    Power {
        floor: f64,
    },
}

/// Indices of `(throughput, watts)`, the best first.
pub fn ranked(tried: &[(f64, f64)], goal: Goal) -> Vec<usize> {
    let top = tried.iter().map(|(throughput, _)| *throughput).fold(0.0, f64::max);
    let mut order: Vec<usize> = (0..tried.len()).collect();
    order.sort_by(|a, b| {
        let ((throughput_a, watts_a), (throughput_b, watts_b)) = (tried[*a], tried[*b]);
        match goal {
            Goal::Throughput => throughput_b.total_cmp(&throughput_a),
            Goal::Power { floor } => {
                let falls_short = |throughput: f64| throughput < floor * top;
                match (falls_short(throughput_a), falls_short(throughput_b)) {
                    (false, false) => watts_a.total_cmp(&watts_b),
                    (true, true) => throughput_b.total_cmp(&throughput_a),
                    (short_a, short_b) => short_a.cmp(&short_b),
                }
            }
        }
    });
    order
}

#[cfg(test)]
mod tests;
