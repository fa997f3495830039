//! `eft bench beside`: what a program that computes loses to traffic: beside eft, and beside the kernel under the same traffic.
//!
//! One thread a CPU computes all the time. What it gets done in a second without traffic, less what it gets done with it,
//! is what the traffic takes: the work of stack and programs, and whatever else they keep a CPU with. Then as many requests as
//! are answered are made beside it: what the one that computes takes from the traffic.

use super::figure::{Aim, Figure};
use super::latency::ask;
use super::report::print;
use super::side::{ECHO, Side};
use super::stack::host_peer;
use super::stolen::Stolen;
use anyhow::{Context, Result, anyhow, bail};
use eft_component::topology::{DEFAULT, EDGE, STACK};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct BesideArguments {
    /// Rounds of each setting and of the kernel, in turn; medians are compared
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds of each load
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Requests of 64 bytes a second, on all connections together, while a neighbour's loss is measured
    #[arg(long, default_value_t = 1000)]
    rate: u32,
    #[arg(long, default_value_t = 8)]
    connections: usize,
    #[arg(long)]
    json: bool,
}

/// Ways to put components into processes, and how much more than to the kernel a neighbour may lose.
const SETTINGS: [(&str, &str, f64); 3] =
    [("one process each", DEFAULT, 1.2), ("edge", EDGE, 1.1), ("stack", STACK, 1.0)];

const BASELINE: &str = "two kernels over veth";

/// Of the requests that are due, as many must be answered, or the traffic is not the same.
const ANSWERED: f64 = 0.95;

pub fn run(arguments: &BesideArguments) -> Result<()> {
    let BesideArguments { rounds, seconds, rate, connections, json } = *arguments;
    if connections == 0 || rate == 0 {
        bail!("there is no traffic without connections and requests");
    }
    let stolen = Stolen::begin(None);
    let mut sides = Vec::new();
    for (number, (_, topology, _)) in SETTINGS.iter().enumerate() {
        sides.push(Side::of_stack(number, topology, &[])?);
    }
    sides.push(Side::of_kernels()?);
    let neighbours = Neighbours::start()?;
    let traffic = Traffic { rate, connections, seconds };
    let mut losses = vec![Vec::new(); sides.len()];
    let mut rates = vec![Vec::new(); sides.len()];
    for _ in 0..rounds {
        for ((side, losses), rates) in sides.iter().zip(&mut losses).zip(&mut rates) {
            // Next to each other, since a shared machine's speed varies.
            let alone = neighbours.work_during(|| {
                std::thread::sleep(Duration::from_secs_f64(seconds));
                Ok(())
            })?;
            let beside = neighbours.work_during(|| traffic.run(side))?;
            losses.push((1.0 - beside / alone) * 100.0 * neighbours.count() as f64);
            rates.push(traffic.most(side)?);
        }
    }
    drop(neighbours);
    let (kernel, kernel_rates) = (losses.pop().unwrap_or_default(), rates.pop().unwrap_or_default());
    let loss_of = |((name, _, most), losses): (&(&str, &str, f64), Vec<f64>)| {
        Figure::new(format!("{name}: loss of a computing neighbour"), "% of a CPU", losses)
            .beside(BASELINE, kernel.clone())
            .aim(Aim::AtMost(*most))
    };
    let rate_of = |((name, _, _), rates): (&(&str, &str, f64), Vec<f64>)| {
        Figure::new(format!("{name}: requests beside it"), "1/s", rates)
            .beside(BASELINE, kernel_rates.clone())
    };
    let losses = SETTINGS.iter().zip(losses).map(loss_of);
    let figures: Vec<Figure> = losses.chain(SETTINGS.iter().zip(rates).map(rate_of)).collect();
    let load = format!("{rate} requests a second on {connections} connections, answered in all ways");
    print("beside", &figures, &[load, stolen.describe()], json)
}

struct Traffic {
    rate: u32,
    connections: usize,
    seconds: f64,
}

impl Traffic {
    /// Open loop: so many requests are due in a second, however long answers take.
    fn run(&self, side: &Side) -> Result<()> {
        let whose = if side.stack.is_some() { "a stack" } else { "the kernel" };
        let answered = self.ask(side, &["--rate", &self.rate.to_string()])?;
        if answered < self.rate as f64 * ANSWERED {
            let rate = self.rate;
            bail!("{whose} answered only {answered:.0} of {rate} requests a second: choose a lower --rate");
        }
        Ok(())
    }

    /// Closed loop: how many requests are answered in a second.
    fn most(&self, side: &Side) -> Result<f64> {
        self.ask(side, &[])
    }

    fn ask(&self, side: &Side, how: &[&str]) -> Result<f64> {
        let address = format!("{}:{ECHO}", side.far);
        let (connections, seconds) = (self.connections.to_string(), self.seconds.to_string());
        let words = [&["ask", &address, &connections, &seconds], how].concat();
        let [answered, ..] = ask(host_peer(&words)?)?;
        Ok(answered)
    }
}

/// Threads that compute, one a CPU.
struct Neighbours {
    work: Vec<Arc<AtomicU64>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Neighbours {
    fn start() -> Result<Neighbours> {
        let cpus = std::thread::available_parallelism().context("CPUs")?.get();
        let stop = Arc::new(AtomicBool::new(false));
        let work: Vec<_> = (0..cpus).map(|_| Arc::new(AtomicU64::new(0))).collect();
        let one = |work: &Arc<AtomicU64>| {
            let (work, stop) = (work.clone(), stop.clone());
            std::thread::Builder::new()
                .spawn(move || compute(&work, &stop))
                .map_err(|e| anyhow!("a thread: {e}"))
        };
        let threads = work.iter().map(one).collect::<Result<_>>()?;
        Ok(Neighbours { work, stop, threads })
    }

    fn count(&self) -> usize {
        self.threads.len()
    }

    /// Rounds a second that all get done while `f` runs.
    fn work_during(&self, f: impl FnOnce() -> Result<()>) -> Result<f64> {
        let done = || self.work.iter().map(|work| work.load(Ordering::Relaxed)).sum::<u64>();
        let (before, begin) = (done(), Instant::now());
        f()?;
        Ok((done() - before) as f64 / begin.elapsed().as_secs_f64())
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Arithmetic without memory: what it gets done is the CPU time that it has.
fn compute(work: &AtomicU64, stop: &AtomicBool) {
    let mut state = 1u64;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..1000 {
            state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        work.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_work_until_they_are_dropped() {
        let neighbours = Neighbours::start().unwrap();
        let work = neighbours.work[0].clone();
        let rate = neighbours.work_during(|| {
            let before = work.load(Ordering::Relaxed);
            while work.load(Ordering::Relaxed) == before {
                std::thread::yield_now();
            }
            Ok(())
        });
        assert!(rate.unwrap() > 0.0);
        drop(neighbours);
        let done = work.load(Ordering::Relaxed);
        std::thread::yield_now();
        assert_eq!(work.load(Ordering::Relaxed), done);
    }
}
