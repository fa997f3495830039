//! A load of many threads in a process of its own: it keeps every CPU busy and notices if a thread is lost.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use eft_host::actuators::affinity;
use eft_machine::CpuId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

#[derive(Args)]
pub struct LoadArguments {
    threads: usize,
}

/// Together the threads take this much of the machine, spinners not counted.
const SHARE: f64 = 0.1;
/// One thread in this many is bound to a CPU, so that its mask can be lost or kept.
const BOUND_EVERY: usize = 50;
const PERIOD: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(20);

/// One spinner for each CPU among them, so that no CPU is ever idle. Each line on stdin asks for a proof of life.
pub fn run(arguments: &LoadArguments) -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get());
    let busy = PERIOD.mul_f64(SHARE * cpus as f64 / arguments.threads.max(1) as f64).min(PERIOD / 2);
    let counters: Vec<Arc<AtomicU64>> = (0..arguments.threads).map(|_| Arc::new(AtomicU64::new(0))).collect();
    // The reader of "ready" takes the masks as final, so every thread must have bound itself before.
    let (started, is_started) = mpsc::channel::<()>();
    for (index, counter) in counters.iter().enumerate() {
        let counter = counter.clone();
        let is_spinner = index < cpus;
        let bound_to =
            (index % BOUND_EVERY == BOUND_EVERY - 1).then(|| CpuId((index / BOUND_EVERY % cpus) as u32));
        let started = started.clone();
        let work = move || {
            // One that may not is as good a load without.
            let _ = bound_to.map(affinity::pin_myself);
            drop(started);
            if is_spinner {
                // SAFETY: plain numbers; 0 names the calling thread. Spinners fill what the others leave.
                unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
            }
            loop {
                spin(busy);
                counter.fetch_add(1, Ordering::Relaxed);
                if !is_spinner {
                    // Spread over the period, or all would wake at once.
                    std::thread::sleep(PERIOD.mul_f64(0.5 + (index % 16) as f64 / 16.0));
                }
            }
        };
        std::thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(work)
            .map_err(|error| anyhow!("thread {index} cannot be started ({error})"))?;
    }
    drop(started);
    // No thread sends: the call returns when the last thread has dropped its end.
    let _ = is_started.recv();
    let mut output = std::io::stdout();
    let mut say = |text: String| writeln!(output, "{text}").and_then(|()| output.flush());
    say("ready".into())?;
    for _ in std::io::stdin().lines().map_while(Result::ok) {
        say(format!("alive {}", alive(&counters)))?;
    }
    Ok(())
}

fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// How many of the threads make progress.
fn alive(counters: &[Arc<AtomicU64>]) -> usize {
    let before: Vec<u64> = counters.iter().map(|counter| counter.load(Ordering::Relaxed)).collect();
    let begin = Instant::now();
    loop {
        let moved = counters
            .iter()
            .zip(&before)
            .filter(|(counter, before)| counter.load(Ordering::Relaxed) > **before)
            .count();
        if moved == counters.len() || begin.elapsed() > PATIENCE {
            return moved;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The load as its starter holds it; it ends with the value.
pub struct Load {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub threads: usize,
}

impl Load {
    pub fn start(threads: usize) -> Result<Self> {
        let complain = |error: std::io::Error| anyhow!("the load cannot be started ({error})");
        let program = std::env::current_exe().map_err(complain)?;
        let mut child = Command::new(program)
            .args(["bench", "load", &threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(complain)?;
        let (input, output) = child.stdin.take().zip(child.stdout.take()).context("the load has no pipes")?;
        let mut load = Self { child, input, output: BufReader::new(output), threads };
        if load.line()? != "ready" {
            bail!("the load did not start");
        }
        Ok(load)
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits for a limited time: a load that hangs must not hang the measurement.
    fn line(&mut self) -> Result<String> {
        let mut fds = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        let limit = Timespec { tv_sec: (PATIENCE + PATIENCE).as_secs() as i64, tv_nsec: 0 };
        if self.output.buffer().is_empty() && poll(&mut fds, Some(&limit)).is_ok_and(|ready| ready == 0) {
            bail!("the load does not answer in time");
        }
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|error| anyhow!("the load does not answer ({error})"))?;
        Ok(line.trim().to_string())
    }

    /// How many threads are alive.
    pub fn alive(&mut self) -> Result<usize> {
        self.input.write_all(b"\n").map_err(|error| anyhow!("the load has ended ({error})"))?;
        let line = self.line()?;
        line.strip_prefix("alive ")
            .and_then(|count| count.parse().ok())
            .with_context(|| format!("the load says '{line}'"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
