//! The paper's experiments: their runs, and the results as named figures.
//!
//! Protocol of all runs: every program that ends is started once, with an amount of work that takes the same time
//! under `amp-fair` alone, and leaves its cores when it ends; servers serve until the last such program has ended. A
//! program's performance is its work over its time, both without the first 5 s, in which a policy learns. Each result is that of the
//! mean execution time, or of the mean throughput, over initial placements.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use eft_vcpu::options::Policy;

use super::calibration::Calibration;
use super::error::Error;
use super::mixes::{Gain, MIXES, Mix, Scenario};
use super::world::{self, Outcome, Run, Way};

/// Figures by name, such as `mix/8M-4L/amp-vm/mean`.
pub type Figures = BTreeMap<String, f64>;

pub const FAST: usize = 4;
pub const CORES: usize = 12;
const FAIR: Way = Way::Policy(Policy::AmpFair(100));
/// Programs of Figure 6 and of Figure 2.
pub const PARALLEL: [&str; 8] =
    ["blackscholes", "freqmine", "x264", "swaptions", "canneal", "pmake", "apache", "specjbb"];
pub const SINGLE: [&str; 7] = ["hmmer", "perlbench", "GemsFDTD", "soplex", "libquantum", "mcf", "sysbench"];
/// Programs of Figure 12.
pub const SCALING: [&str; 4] = ["blackscholes", "freqmine", "x264", "swaptions"];
pub const COUNTS: [usize; 7] = [0, 2, 4, 6, 8, 10, 12];
/// Mixes and shares of Table 3.
pub const PARTIAL: [&str; 4] = ["4H-4M-4L", "8M-4L", "2H-1M", "2H-1M-1L"];
pub const SHARES: [u8; 4] = [20, 40, 60, 80];

/// How much is run.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub placements: u64,
    pub seconds: u64,
    pub seed: u64,
    /// Run every point of Figures 6 and 12 to 14, not only those that claims are about.
    pub every_point: bool,
    pub threads: usize,
}

/// One configuration, run with each placement.
struct Job {
    name: String,
    vms: Vec<(&'static str, usize)>,
    fast_cores: usize,
    way: Way,
}

pub fn ways() -> Vec<(&'static str, usize, Way)> {
    vec![
        ("amp-fair", FAST, FAIR),
        ("amp-vm", FAST, Way::Policy(Policy::AmpVm)),
        ("amp-vcpu", FAST, Way::Policy(Policy::AmpVcpu)),
        ("credit", FAST, Way::Credit),
        ("all-slow", 0, FAIR),
        ("all-fast", CORES, FAIR),
    ]
}

fn vms(mix: &Mix) -> Vec<(&'static str, usize)> {
    mix.vms.iter().map(|(name, vcpus, _)| (*name, *vcpus)).collect()
}

fn jobs(every_point: bool) -> Vec<Job> {
    let mut jobs = Vec::new();
    for mix in &MIXES {
        for (name, fast_cores, way) in ways() {
            jobs.push(Job { name: format!("mix/{}/{name}", mix.name), vms: vms(mix), fast_cores, way });
        }
        if PARTIAL.contains(&mix.name) {
            let job = |r: u8| Job {
                name: format!("mix/{}/amp-fair:{r}", mix.name),
                vms: vms(mix),
                fast_cores: FAST,
                way: Way::Policy(Policy::AmpFair(r)),
            };
            jobs.extend(SHARES.into_iter().map(job));
        }
    }
    for name in SINGLE.iter().chain(&PARALLEL) {
        let vcpus = if SINGLE.contains(name) { 1 } else { CORES };
        for (end, fast_cores) in [("slow", 0), ("fast", CORES)] {
            let vms = vec![(*name, vcpus)];
            jobs.push(Job { name: format!("fig2/{name}/{end}"), vms, fast_cores, way: Way::Pinned });
        }
    }
    let first = jobs.len();
    scaling_jobs(&mut jobs);
    let mut index = 0..;
    jobs.retain(|job| index.next() < Some(first) || every_point || has_claim(&job.name));
    jobs
}

/// Whether a claim is about this point of Figures 6 and 12 to 14.
fn has_claim(name: &str) -> bool {
    match name.split('/').collect::<Vec<_>>()[..] {
        ["scale", program, _, count] => {
            (SCALING.contains(&program) || program == "pmake") && ["0", "8", "12"].contains(&count)
        }
        ["scales", mix, way, count] => {
            mix == "1H-1M-1L" && way != "pinned" && ["4", "10", "12"].contains(&count)
        }
        _ => false,
    }
}

fn scaling_jobs(jobs: &mut Vec<Job>) {
    let single = [("pinned", Way::Pinned), ("credit", Way::Credit), ("amp-fair", FAIR)];
    let policies = [("amp-vm", Way::Policy(Policy::AmpVm)), ("amp-vcpu", Way::Policy(Policy::AmpVcpu))];
    for fast_cores in COUNTS {
        for name in PARALLEL {
            let ways =
                single.iter().chain(&policies).filter(|(way, _)| *way == "pinned" || SCALING.contains(&name));
            for (way_name, way) in ways {
                let name = format!("scale/{name}/{way_name}/{fast_cores}");
                let program = name.split('/').nth(1).and_then(|n| PARALLEL.iter().find(|p| **p == n));
                let vms = program.map(|program| vec![(*program, CORES)]).unwrap_or_default();
                jobs.push(Job { name, vms, fast_cores, way: *way });
            }
        }
        for mix in MIXES.iter().filter(|mix| mix.scenario == Scenario::Multi) {
            for (way_name, way) in [single[0], single[2], policies[0]] {
                let name = format!("scales/{}/{way_name}/{fast_cores}", mix.name);
                jobs.push(Job { name, vms: vms(mix), fast_cores, way });
            }
        }
    }
}

/// Runs everything and derives the figures.
pub fn figures(calibration: &Calibration, extent: Extent) -> Result<Figures, Error> {
    let jobs = jobs(extent.every_point);
    let outcomes = run_all(calibration, &jobs, extent)?;
    let mut figures = Figures::new();
    let by_name: BTreeMap<&str, &Vec<Outcome>> =
        jobs.iter().map(|job| job.name.as_str()).zip(&outcomes).collect();
    MIXES.iter().for_each(|mix| mix_figures(mix, &by_name, &mut figures));
    prediction(&by_name, &mut figures);
    for (name, outcomes) in by_name.iter().filter(|(name, _)| name.starts_with("scale")) {
        for vm in 0..outcomes[0].performance.len() {
            figures.insert(format!("{name}/vm{vm}"), performance(outcomes, vm));
        }
    }
    Ok(figures)
}

/// One figure of one mix under one way.
pub fn of_mix(
    calibration: &Calibration,
    mix: &str,
    way: &str,
    key: &str,
    extent: Extent,
) -> Result<f64, Error> {
    let wanted = [format!("mix/{mix}/amp-fair"), format!("mix/{mix}/{way}")];
    let jobs: Vec<Job> = jobs(false).into_iter().filter(|job| wanted.contains(&job.name)).collect();
    let outcomes = run_all(calibration, &jobs, extent)?;
    let by_name: BTreeMap<&str, &Vec<Outcome>> =
        jobs.iter().map(|job| job.name.as_str()).zip(&outcomes).collect();
    let mut figures = Figures::new();
    MIXES.iter().filter(|other| other.name == mix).for_each(|mix| mix_figures(mix, &by_name, &mut figures));
    let missing = || Error::NoFigure { experiment: wanted[1].clone(), figure: key.to_string() };
    figures.get(&format!("{}/{key}", wanted[1])).copied().ok_or_else(missing)
}

/// Runs each job with each placement, on all threads; results are in the order of the jobs.
fn run_all(calibration: &Calibration, jobs: &[Job], extent: Extent) -> Result<Vec<Vec<Outcome>>, Error> {
    let placements = extent.placements.max(1) as usize;
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..extent.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index / placements) else { return };
                    let run = Run {
                        vms: &job.vms,
                        fast_cores: job.fast_cores,
                        seconds: extent.seconds,
                        seed: extent.seed + (index % placements) as u64,
                        ..Run::of_the_paper(calibration, job.way)
                    };
                    let mut outcome = world::run(&run);
                    if let Ok(outcome) = &mut outcome {
                        outcome.usage.clear();
                    }
                    done.lock().unwrap_or_else(|e| e.into_inner()).insert(index, outcome);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(|e| e.into_inner());
    let mut all = done.into_values();
    jobs.iter().map(|_| all.by_ref().take(placements).collect()).collect()
}

/// A VM's performance over all placements, as in section 4.1 of the paper: the mean execution time of a program that
/// ends, the mean throughput of a server. A program that is fast in a third of its runs and slow in the others takes
/// nearly as long on average as one that is always slow.
fn performance(outcomes: &[Outcome], vm: usize) -> f64 {
    let each = outcomes.iter().map(|outcome| (outcome.performance[vm] as f64).max(1.0));
    let count = outcomes.len() as f64;
    if outcomes.iter().any(|outcome| outcome.serves[vm]) {
        each.sum::<f64>() / count
    } else {
        count / each.map(f64::recip).sum::<f64>()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Speed-ups over amp-fair, by class and over all; the largest slowdown; migrations.
fn mix_figures(mix: &Mix, all: &BTreeMap<&str, &Vec<Outcome>>, figures: &mut Figures) {
    let prefix = format!("mix/{}/", mix.name);
    let Some(fair) = all.get(format!("{prefix}amp-fair").as_str()) else { return };
    let base: Vec<f64> = (0..mix.vms.len()).map(|vm| performance(fair, vm)).collect();
    for (name, outcomes) in all.iter().filter(|(name, _)| name.starts_with(&prefix)) {
        let speed_ups: Vec<f64> =
            base.iter().enumerate().map(|(vm, fair)| performance(outcomes, vm) / fair).collect();
        let mut put = |key: &str, value: f64| figures.insert(format!("{name}/{key}"), value);
        put("mean", mean(&speed_ups));
        for (key, gain) in [("high", Gain::High), ("medium", Gain::Medium), ("low", Gain::Low)] {
            let of: Vec<f64> =
                mix.vms.iter().zip(&speed_ups).filter(|((_, _, g), _)| *g == gain).map(|(_, s)| *s).collect();
            if !of.is_empty() {
                put(key, mean(&of));
            }
        }
        for (vm, speed_up) in speed_ups.iter().enumerate() {
            put(&format!("vm{vm}"), *speed_up);
        }
        let least = speed_ups.iter().copied().fold(f64::MAX, f64::min);
        put("least", least);
        put("most", speed_ups.iter().copied().fold(f64::MIN, f64::max));
        put("slowdown", (1.0 - least).max(0.0) * 100.0);
        put(
            "die-moves",
            mean(&outcomes.iter().map(|o| o.die_moves as f64 * 1000.0 / o.ms as f64).collect::<Vec<_>>()),
        );
        // Each placement's mean, and the spread of these means.
        let means: Vec<f64> = outcomes
            .iter()
            .map(|o| mean(&base.iter().zip(&o.performance).map(|(f, p)| *p as f64 / f).collect::<Vec<_>>()))
            .collect();
        let centre = mean(&means);
        let variance = means.iter().map(|m| (m - centre).powi(2)).sum::<f64>() / means.len() as f64;
        put("spread", variance.sqrt());
    }
}

/// Figure 2: the speed-up of a fast core, measured, and predicted from IPC and utilisation at either end.
fn prediction(all: &BTreeMap<&str, &Vec<Outcome>>, figures: &mut Figures) {
    let names: Vec<&str> = SINGLE.iter().chain(&PARALLEL).copied().collect();
    let of =
        |name: &str, end: &str| all.get(format!("fig2/{name}/{end}").as_str()).map(|outcomes| &outcomes[0]);
    for end in ["fast", "slow"] {
        let scores: Vec<f64> =
            names.iter().map(|name| of(name, end).map_or(0.0, |o| score(o, name))).collect();
        let most = scores.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let predicted: Vec<f64> = scores.iter().map(|score| 1.0 + 1.375 * score / most).collect();
        for (name, predicted) in names.iter().zip(&predicted) {
            figures.insert(format!("fig2/{name}/from-{end}"), *predicted);
        }
        let measured: Vec<f64> = names
            .iter()
            .map(|name| match (of(name, "fast"), of(name, "slow")) {
                (Some(fast), Some(slow)) => fast.performance[0] as f64 / slow.performance[0].max(1) as f64,
                _ => 1.0,
            })
            .collect();
        for (name, measured) in names.iter().zip(&measured) {
            figures.insert(format!("fig2/{name}/measured"), *measured);
        }
        figures.insert(format!("fig2/correlation-{end}"), correlation(&measured, &predicted));
    }
}

fn score(outcome: &Outcome, name: &str) -> f64 {
    let (instructions, cycles, ran) = outcome.counted[0];
    let vcpus = if SINGLE.contains(&name) { 1.0 } else { CORES as f64 };
    instructions as f64 / cycles.max(1) as f64 * (ran as f64 / (outcome.ms.max(1) as f64 * vcpus))
}

fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let (mx, my) = (mean(x), mean(y));
    let sum = |f: &dyn Fn(f64, f64) -> f64| x.iter().zip(y).map(|(a, b)| f(a - mx, b - my)).sum::<f64>();
    sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt().max(f64::MIN_POSITIVE)
}

/// Figure 9: each second's fast and slow core time of each VM of a mix.
pub fn breakdown(
    calibration: &Calibration,
    mix: &Mix,
    policy: Policy,
    extent: Extent,
) -> Result<Vec<Vec<(u32, u32)>>, Error> {
    let vms = vms(mix);
    let run = Run {
        vms: &vms,
        fast_cores: FAST,
        seconds: extent.seconds,
        seed: extent.seed,
        ..Run::of_the_paper(calibration, Way::Policy(policy))
    };
    Ok(world::run(&run)?.usage)
}

#[cfg(test)]
mod tests;
