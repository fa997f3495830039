//! `eft bench latency`: 64-byte requests and responses, beside the kernel.

use super::Common;
use super::figure::{Aim, Figure};
use super::report::print;
use super::stack::{FAR, Kernels, STACK, Serving, Stack, host_peer};
use super::stolen::Stolen;
use anyhow::{Result, bail};
use std::process::Command;

#[derive(clap::Args)]
pub struct LatencyArguments {
    #[command(flatten)]
    common: Common,
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
}

/// One way to measure: connections, whether everything shares one CPU, and the aim for requests beside the kernel's.
const WAYS: &[(usize, bool, &str, f64)] = &[
    (1, false, "1 connection", 0.7),
    (1, true, "1 connection, all on one CPU", 0.4),
    (32, false, "32 connections", 0.6),
];

pub fn run(arguments: &LatencyArguments) -> Result<()> {
    let common = &arguments.common;
    let stolen = Stolen::begin(None);
    let stack = Stack::start(common.topology.as_deref())?;
    let kernels = Kernels::start()?;
    let (on_stack, on_kernel) = (format!("{STACK}:7"), format!("{FAR}:7"));
    let _echo = Serving::start(stack.peer(&["echo", &on_stack])?)?;
    let _kernel_echo = Serving::start(kernels.peer(&["echo", &on_kernel])?)?;
    let mut figures = Vec::new();
    for (connections, one_cpu, name, aim) in WAYS {
        let pinned = if *one_cpu { Some(pin_all(std::iter::once(&stack))?) } else { None };
        let (mut eft, mut kernel): ([Vec<f64>; 2], [Vec<f64>; 2]) = Default::default();
        for _ in 0..common.rounds {
            for (address, to) in [(&on_stack, &mut eft), (&on_kernel, &mut kernel)] {
                let (n, s) = (connections.to_string(), arguments.seconds.to_string());
                let [rate, median, _] = ask(host_peer(&["ask", address, &n, &s])?)?;
                to[0].push(rate);
                to[1].push(median);
            }
        }
        drop(pinned);
        let ([rate, median], [kernel_rate, kernel_median]) = (eft, kernel);
        let baseline = "two kernels over veth";
        figures
            .push(Figure::new(format!("{name}: round trip"), "us", median).beside(baseline, kernel_median));
        figures.push(
            Figure::new(format!("{name}: requests"), "1/s", rate)
                .beside(baseline, kernel_rate)
                .aim(Aim::AtLeast(*aim)),
        );
    }
    print("latency", &figures, &[stolen.describe()], common.json)
}

/// Requests a second; the median and the longest round trip in microseconds.
pub fn ask(mut command: Command) -> Result<[f64; 3]> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = text.split_whitespace().map(str::parse::<f64>);
    match (words.next(), words.next(), words.next()) {
        (Some(Ok(rate)), Some(Ok(median)), Some(Ok(longest))) => Ok([rate, median, longest]),
        _ => bail!("a client failed: {}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}

/// Puts this process (whose children inherit it), the servers and every process below us on CPU 0
/// until dropped.
pub struct Pinned;

pub fn pin_all<'a>(stacks: impl Iterator<Item = &'a Stack>) -> Result<Pinned> {
    for stack in stacks {
        for pid in stack.processes()? {
            pin(pid as i32, Some(0));
        }
    }
    for pid in below(std::process::id() as i32) {
        pin(pid, Some(0));
    }
    Ok(Pinned)
}

impl Drop for Pinned {
    fn drop(&mut self) {
        for pid in below(std::process::id() as i32) {
            pin(pid, None);
        }
    }
}

/// A process and its descendants, all threads.
fn below(root: i32) -> Vec<i32> {
    let mut all = vec![root];
    let mut i = 0;
    while i < all.len() {
        for task in std::fs::read_dir(format!("/proc/{}/task", all[i])).into_iter().flatten().flatten() {
            if let Some(tid) = task.file_name().to_str().and_then(|t| t.parse::<i32>().ok()) {
                if !all.contains(&tid) {
                    all.push(tid);
                }
                let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
                all.extend(children.split_whitespace().filter_map(|c| c.parse::<i32>().ok()));
            }
        }
        i += 1;
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn pin(tid: i32, cpu: Option<usize>) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    match cpu {
        Some(c) => set.set(c),
        None => (0..CpuSet::MAX_CPU).for_each(|c| set.set(c)),
    }
    let _ = sched_setaffinity(rustix::process::Pid::from_raw(tid), &set);
}
