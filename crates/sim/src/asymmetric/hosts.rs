//! Hosts beyond the paper's: a desktop, a laptop and a server of today; policies compete with the best static pinning.
//!
//! Hardware threads are off: a vCPU has a core to itself. The search knows each program's performance in advance, which no
//! policy does: it climbs from the pinning that fills the fast cores in the order of speed-ups, one vCPU's seat at a time.

use eft_base::random::Random;
use eft_vcpu::options::{BOUND, Policy, Score};

use super::calibration::Calibration;
use super::error::Error;
use super::machine::{CoreClass, Machine};
use super::world::{self, Outcome, Run, Way};

const MODERN: &str = include_str!("modern.toml");
const P: CoreClass = CoreClass { name: "P", khz: 5_000_000, ipc_milli: 1000 };
/// Two thirds of a P core's instructions in a cycle, at four fifths of its clock.
const E: CoreClass = CoreClass { name: "E", khz: 4_000_000, ipc_milli: 650 };
/// The same core, with less cache and a lower clock.
const DENSE: CoreClass = CoreClass { name: "dense", khz: 3_100_000, ipc_milli: 900 };
const SERVER: CoreClass = CoreClass { name: "fast", khz: 4_100_000, ipc_milli: 1000 };

pub struct HostOfToday {
    pub name: &'static str,
    pub machine: Machine,
    /// Program and vCPUs of each VM.
    pub vms: Vec<(&'static str, usize)>,
    /// Pinnings that the search tries.
    pub tries: usize,
}

/// `dies` dies with `of_each` cores of each class; each die has its own cache and memory.
fn machine(classes: [CoreClass; 2], dies: usize, of_each: [usize; 2], traffic_max: u64) -> Machine {
    let mut machine = Machine {
        classes: classes.to_vec(),
        class: Vec::new(),
        die: Vec::new(),
        node: (0..dies).map(|die| (die * 2 / dies.max(2)) as u32).collect(),
        traffic_max,
        // Refill of an L2 of 2 MB at 40 GB/s, and of 8 MB of L3 at 20 GB/s.
        move_in_cache_ns: 50_000,
        move_across_ns: 400_000,
        contention: vec![1000; dies],
        plain_policies: false,
    };
    for die in 0..dies {
        for (class, cores) in of_each.into_iter().enumerate() {
            machine.class.extend(std::iter::repeat_n(class, cores));
            machine.die.extend(std::iter::repeat_n(die, cores));
        }
    }
    machine
}

pub fn hosts() -> Vec<HostOfToday> {
    let server = [
        ("hmmer", 4),
        ("perlbench", 8),
        ("swaptions", 8),
        ("x264", 8),
        ("pmake", 16),
        ("GemsFDTD", 4),
        ("soplex", 8),
        ("mcf", 8),
        ("canneal", 8),
        ("apache", 16),
        ("sysbench", 8),
    ];
    // A single-threaded program becomes as many VMs as it has vCPUs here.
    let one_each = |(name, vcpus): (&'static str, usize)| match name {
        "swaptions" | "x264" | "pmake" | "canneal" | "apache" => vec![(name, 4); vcpus / 4],
        _ => vec![(name, 1); vcpus],
    };
    vec![
        HostOfToday {
            name: "desktop 6P+8E",
            machine: machine([P, E], 1, [6, 8], 6000),
            vms: vec![
                ("hmmer", 1),
                ("perlbench", 1),
                ("GemsFDTD", 1),
                ("mcf", 1),
                ("swaptions", 4),
                ("x264", 4),
                ("apache", 2),
            ],
            tries: 60,
        },
        HostOfToday {
            name: "laptop 4P+4E",
            machine: machine([P, E], 1, [4, 4], 3500),
            vms: vec![("perlbench", 1), ("soplex", 1), ("mcf", 1), ("sysbench", 1), ("pmake", 4)],
            tries: 60,
        },
        HostOfToday {
            name: "server 48+48",
            machine: machine([SERVER, DENSE], 8, [6, 6], 5000),
            vms: server.into_iter().flat_map(one_each).collect(),
            tries: 40,
        },
    ]
}

/// Almost `amp-fair`: the two differ by random placement only, not by policy.
const CONTROL: Policy = Policy::AmpFair(99);

/// One way on one host, against `amp-fair`.
#[derive(Clone, Debug)]
pub struct Result {
    pub way: String,
    /// Each VM's speed-up over `amp-fair`.
    pub speed_ups: Vec<f64>,
    pub cache_moves_per_s: f64,
}

impl Result {
    pub fn mean(&self) -> f64 {
        self.speed_ups.iter().sum::<f64>() / self.speed_ups.len() as f64
    }

    /// Of the VM that loses most, in percent.
    pub fn slowdown(&self) -> f64 {
        largest_slowdown(&self.speed_ups)
    }
}

/// In percent.
pub fn largest_slowdown(speed_ups: &[f64]) -> f64 {
    speed_ups.iter().map(|speed_up| 1.0 - speed_up).fold(0.0, f64::max) * 100.0
}

struct Trial<'a> {
    host: &'a HostOfToday,
    calibration: &'a Calibration,
    seconds: u64,
    seed: u64,
}

impl Trial<'_> {
    fn run(&self, way: Way, masks: &[u128]) -> std::result::Result<Outcome, Error> {
        world::run(&Run {
            vms: &self.host.vms,
            machine: Some(&self.host.machine),
            masks,
            score: Score::Predicted,
            seconds: self.seconds,
            seed: self.seed,
            ..Run::of_the_paper(self.calibration, way)
        })
    }

    /// Pins `fast` vCPUs of each VM to the fast cores, the others to the slow ones.
    fn pinned(&self, fast: &[usize]) -> std::result::Result<Outcome, Error> {
        let (on_fast, on_slow) = (self.host.machine.mask(0), self.host.machine.mask(1));
        let of = |(vm, count): (usize, &usize)| {
            let vcpus = self.host.vms[vm].1;
            (0..vcpus).map(|vcpu| if vcpu < *count { on_fast } else { on_slow }).collect::<Vec<_>>()
        };
        let masks: Vec<u128> = fast.iter().enumerate().flat_map(of).collect();
        self.run(Way::Credit, &masks)
    }
}

fn result(way: &str, fair: &Outcome, outcome: &Outcome) -> Result {
    let each = outcome.performance.iter().zip(&fair.performance);
    Result {
        way: way.into(),
        speed_ups: each.map(|(now, fair)| *now as f64 / *fair as f64).collect(),
        cache_moves_per_s: outcome.die_moves as f64 * 1000.0 / outcome.ms as f64,
    }
}

/// All ways on one host; the best static pinning that the search finds is the last.
pub fn compare(host: &HostOfToday, seconds: u64, seed: u64) -> std::result::Result<Vec<Result>, Error> {
    let calibration = Calibration::parse(MODERN)?;
    let trial = Trial { host, calibration: &calibration, seconds, seed };
    let fair = trial.run(Way::Policy(Policy::AmpFair(100)), &[])?;
    let mut results = vec![result("amp-fair", &fair, &fair)];
    for way in [
        Way::Credit,
        Way::Policy(Policy::AmpVm),
        Way::Policy(Policy::AmpVcpu),
        Way::Policy(Policy::AdaptiveFair(BOUND)),
        Way::Policy(CONTROL),
    ] {
        let name = match way {
            Way::Policy(policy) => policy.to_string(),
            _ => "credit".into(),
        };
        results.push(result(&name, &fair, &trial.run(way, &[])?));
    }
    let best = search(&trial, &fair)?;
    results.push(result("best static pinning", &fair, &best));
    Ok(results)
}

/// Climbs from the order of speed-ups: each try moves seats on the fast cores from one VM to another.
fn search(trial: &Trial, fair: &Outcome) -> std::result::Result<Outcome, Error> {
    let vms = &trial.host.vms;
    let seats = trial.host.machine.mask(0).count_ones() as usize;
    let speed_up = |(name, _): &(&str, usize)| {
        let program = trial.calibration.program(name)?;
        let slow = (1000 - program.memory) * trial.host.machine.slowness_milli(1) / 1000 + program.memory;
        let busy = (program.run_ms * 1000).checked_div(program.arrive_ms).unwrap_or(1000);
        Ok::<u64, Error>((slow - 1000) * busy)
    };
    let gains = vms.iter().map(speed_up).collect::<std::result::Result<Vec<u64>, Error>>()?;
    let mut order: Vec<usize> = (0..vms.len()).collect();
    order.sort_by_key(|vm| std::cmp::Reverse(gains[*vm]));
    let (mut fast, mut left) = (vec![0; vms.len()], seats);
    for vm in order {
        fast[vm] = vms[vm].1.min(left);
        left -= fast[vm];
    }
    let of = |outcome: &Outcome| result("", fair, outcome).mean();
    let mut best = trial.pinned(&fast)?;
    let mut random = Random::new(trial.seed);
    for _ in 0..trial.host.tries {
        let mut other = fast.clone();
        let (from, to) = (random.below(vms.len() as u64) as usize, random.below(vms.len() as u64) as usize);
        let movable = other[from].min(vms[to].1 - other[to]);
        if from == to || movable == 0 {
            continue;
        }
        let count = 1 + random.below(movable as u64) as usize;
        other[from] -= count;
        other[to] += count;
        let outcome = trial.pinned(&other)?;
        if of(&outcome) > of(&best) {
            (fast, best) = (other, outcome);
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests;
