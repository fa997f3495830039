//! `eft bench observe`: what it costs to look at a whole stack as often as the scheduler does.

use super::Common;
use super::report::{Line, print};
use super::samples::Samples;
use super::stack::{HOST, Serving, Stack, host_peer};
use eft_linux::sensors::Tree;
use eft_linux::sensors::components::StackSensor;
use eft_linux::{clock, sensors};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct ObserveArguments {
    #[command(flatten)]
    common: Common,
    /// Seconds of each round
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Time between two looks
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    period_ms: u64,
}

pub fn run(arguments: &ObserveArguments) -> Result<(), String> {
    let common = &arguments.common;
    let stack = Stack::start(common.topology.as_deref())?;
    let managed = eft_cores::CpuSet::one(0);
    let mut sensor = StackSensor::new(Tree::live(), crate::commands::stat::counters_of, &managed);
    sensors::pages::refresh(&stack.name, &mut sensor).map_err(|e| e.to_string())?;
    let sink = Serving::start(host_peer(&["sink", &format!("{HOST}:5207")])?)?;
    let (mut idle, mut busy, mut look) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..common.rounds {
        idle.push(observe(&mut sensor, arguments)?.0);
        // A little longer than the round, so that it covers all of it.
        let seconds = (arguments.seconds + 0.5).to_string();
        let mut load = stack
            .peer(&["source", &format!("{HOST}:5207"), &seconds])?
            .spawn()
            .map_err(|e| format!("cannot start a load: {e}"))?;
        std::thread::sleep(Duration::from_millis(300));
        let (share, per_look) = observe(&mut sensor, arguments)?;
        busy.push(share);
        look.push(per_look);
        load.wait().map_err(|e| e.to_string())?;
    }
    drop(sink);
    let line =
        |what: String, samples, unit| Line { what, value: Samples::new(samples), unit, baseline: None };
    let every = format!("every {} ms", arguments.period_ms);
    let lines = [
        line(format!("looking {every}, idle stack"), idle, "% of a core"),
        line(format!("looking {every}, bulk load"), busy, "% of a core"),
        line("one look, bulk load".into(), look, "us"),
    ];
    print("observe", &lines, common.json);
    Ok(())
}

/// CPU time of this thread for a round of looks, sleeping and waking included: share of a core in percent, and
/// microseconds a look.
fn observe(sensor: &mut StackSensor, arguments: &ObserveArguments) -> Result<(f64, f64), String> {
    let period = Duration::from_millis(arguments.period_ms);
    let (begin, cpu) = (Instant::now(), thread_cpu());
    let mut looks = 0u64;
    while begin.elapsed().as_secs_f64() < arguments.seconds {
        std::thread::sleep(period);
        let sample = sensor.sample(clock::now());
        if sample.components.is_empty() {
            return Err("the sensor sees no component".into());
        }
        looks += 1;
    }
    let used = (thread_cpu() - cpu).as_secs_f64();
    Ok((used / begin.elapsed().as_secs_f64() * 100.0, used / looks.max(1) as f64 * 1e6))
}

fn thread_cpu() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}
