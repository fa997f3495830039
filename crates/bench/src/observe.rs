//! `eft bench observe`: the cost of sampling a whole stack as often as the scheduler does, and of a decision each time.
//!
//! Its decisions are not applied, so that the policy is at work all the time: settled, it takes a fifth of the samples.

use super::Common;
use super::figure::{Aim, Figure};
use super::report::print;
use super::stack::{HOST, Serving, Stack, host_peer};
use super::stolen::Stolen;
use anyhow::{Context, Result, bail};
use eft_component::scheduling::PolicyName;
use eft_cores::history::History;
use eft_cores::policy::Settings;
use eft_cores::scheduler::Scheduler;
use eft_host::clock;
use eft_host::sensors::{self, Tree};
use eft_linux::stack_sensor::pages;
use eft_linux::stack_sensor::{CounterNames, StackSensor};
use eft_machine::CpuId;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct ObserveArguments {
    #[command(flatten)]
    common: Common,
    /// Seconds of each round
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Time between two samples
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    period_ms: u64,
}

pub fn run(arguments: &ObserveArguments, names: CounterNames) -> Result<()> {
    let common = &arguments.common;
    let stolen = Stolen::begin(None);
    let stack = Stack::start(common.topology.as_deref())?;
    let managed = eft_machine::CpuSet::one(CpuId(0));
    let mut sensor = StackSensor::new(Tree::live(), names, &managed);
    pages::refresh(&stack.name, &mut sensor)?;
    let sink = Serving::start(host_peer(&["sink", &format!("{HOST}:5207")])?)?;
    let (mut idle, mut busy, mut sample, mut decide) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut longest_us = 0f64;
    for _ in 0..common.rounds {
        let mut scheduler = scheduler(&mut sensor)?;
        idle.push(observe(&mut sensor, &mut scheduler, arguments)?.share);
        // A little longer than the round, so that it covers all of it.
        let seconds = (arguments.seconds + 0.5).to_string();
        let mut load = stack
            .peer(&["source", &format!("{HOST}:5207"), &seconds])?
            .spawn()
            .context("cannot start a load")?;
        std::thread::sleep(Duration::from_millis(300));
        let cost = observe(&mut sensor, &mut scheduler, arguments)?;
        busy.push(cost.share);
        sample.push(cost.sample_us);
        decide.push(cost.decide_us);
        longest_us = longest_us.max(cost.longest_us);
        load.wait()?;
    }
    drop(sink);
    let every = format!("every {} ms", arguments.period_ms);
    let figures = [
        Figure::new(format!("sampling and deciding {every}, idle stack"), "% of a core", idle),
        Figure::new(format!("sampling and deciding {every}, bulk load"), "% of a core", busy)
            .aim(Aim::AtMost(2.0)),
        Figure::new("one sample, bulk load", "us", sample),
        Figure::new("one decision, bulk load", "us", decide),
        Figure::new("longest decision, bulk load", "us", vec![longest_us]),
    ];
    print("observe", &figures, &[stolen.describe()], common.json)
}

/// The policy that `cores` would run, on all CPUs.
fn scheduler(sensor: &mut StackSensor) -> Result<Scheduler> {
    let mut machine = sensors::observe(&Tree::live())?;
    machine.managed = machine.online.clone();
    let names: Vec<String> =
        sensor.sample(clock::now()).components.into_iter().map(|component| component.name).collect();
    Ok(Scheduler::new(PolicyName::Adaptive, machine, &names, Some(&[]), Settings::default())?)
}

/// CPU time of this thread for a round.
struct Cost {
    /// Percent of a core, sleeping and waking included.
    share: f64,
    sample_us: f64,
    decide_us: f64,
    longest_us: f64,
}

fn observe(
    sensor: &mut StackSensor,
    scheduler: &mut Scheduler,
    arguments: &ObserveArguments,
) -> Result<Cost> {
    let period = Duration::from_millis(arguments.period_ms);
    let mut history = History::default();
    let (begin, cpu) = (Instant::now(), thread_cpu());
    let (mut samples, mut deciding, mut longest) = (0u64, Duration::ZERO, Duration::ZERO);
    while begin.elapsed().as_secs_f64() < arguments.seconds {
        std::thread::sleep(period);
        let sample = sensor.sample(clock::now());
        if sample.components.is_empty() {
            bail!("the sensor sees no component");
        }
        let seen = thread_cpu();
        scheduler.decide(&sample, &mut history);
        let took = thread_cpu() - seen;
        deciding += took;
        longest = longest.max(took);
        samples += 1;
    }
    let used = thread_cpu() - cpu;
    let each = |all: Duration| all.as_secs_f64() / samples.max(1) as f64 * 1e6;
    Ok(Cost {
        share: used.as_secs_f64() / begin.elapsed().as_secs_f64() * 100.0,
        sample_us: each(used - deciding),
        decide_us: each(deciding),
        longest_us: longest.as_secs_f64() * 1e6,
    })
}

pub fn thread_cpu() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}
