//! What a configuration achieves, as the scheduler's sensors see it: throughput as delivered, the nature of the
//! traffic, how busy the CPUs are, and power, metered or modelled.

use std::time::Duration;

use anyhow::{Result, bail};
use eft_base::time::nanos;
use eft_cores::estimate::{self, Activity};
use eft_cores::indicators::{Mix, delivered};
use eft_cores::observation::{Observation, Observer, Part};
use eft_cores::plan::Plan;
use eft_cores::platform::Platform;
use eft_cores::power::PowerModel;
use eft_cores::throughput::Throughput;
use eft_host::clock;
use eft_host::sensors::Tree;
use eft_linux::stack_sensor::pages;
use eft_linux::stack_sensor::{CounterNames, StackSensor};
use eft_machine::{CpuSet, Watts};

use crate::ground::End;

/// How often an unsound sample (a component has just restarted) is repeated.
const ATTEMPTS: usize = 3;

pub struct Watch {
    stack: String,
    sensor: StackSensor,
}

/// Over one window.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// [`delivered`], per second.
    pub throughput: Throughput,
    pub power: Watts,
    /// By a meter; otherwise modelled.
    pub metered: bool,
    /// Share of work of each used CPU, polling not counted.
    pub busy: Activity,
    pub mix: Mix,
    pub indicators: String,
}

impl Watch {
    pub fn new(stack: &str, managed: &CpuSet, names: CounterNames) -> Result<Watch> {
        let sensor = StackSensor::new(Tree::live(), names, managed);
        let mut watch = Watch { stack: stack.into(), sensor };
        watch.refresh()?;
        Ok(watch)
    }

    /// Learns of components that were reborn or moved.
    pub fn refresh(&mut self) -> Result<()> {
        Ok(pages::refresh(&self.stack, &mut self.sensor).map(drop)?)
    }

    pub fn sample(&mut self) -> eft_cores::sample::Sample {
        self.sensor.sample(clock::now())
    }

    /// Watches for so long how a plan does.
    pub fn window(&mut self, end: &End, platform: &Platform, plan: &Plan, time: Duration) -> Result<Seen> {
        let mut complaint = String::new();
        for _ in 0..ATTEMPTS {
            self.refresh()?;
            let mut observer = Observer::default();
            observer.observe(&self.sample());
            end.sleep(time)?;
            let seen = observer.observe(&self.sample());
            match complaint_of(&seen) {
                None => return Ok(Seen::of(platform, plan, &seen)),
                Some(why) => complaint = why,
            }
        }
        bail!("stack `{}` cannot be observed: {complaint}", self.stack)
    }
}

/// Why a sample is useless here. CPUs' own times do not count: they are not used, and unsteady after a change of speed.
pub fn complaint_of(seen: &Observation) -> Option<String> {
    let matters = |part: &Part| matches!(part, Part::Whole | Part::Component(_));
    seen.problems.iter().find(|problem| matters(&problem.part)).map(ToString::to_string)
}

impl Seen {
    pub fn of(platform: &Platform, plan: &Plan, seen: &Observation) -> Seen {
        let seconds = nanos(seen.period) as f64 / 1e9;
        let activity = estimate::seen_activity(plan, seen);
        let work = |name: &str| seen.component(name).map_or(0.0, |load| load.busy.0);
        let used = plan.used();
        let busy = used.iter().map(|cpu| (cpu, plan.on(cpu).map(work).sum::<f64>().min(1.0)));
        let modelled = || estimate::power(platform, &PowerModel::default(), plan, &activity);
        Seen {
            throughput: Throughput(delivered(&seen.traffic) / seconds.max(1e-9)),
            power: seen.power.unwrap_or_else(modelled),
            metered: seen.power.is_some(),
            busy: busy.collect(),
            mix: seen.indicators.mix(),
            indicators: seen.indicators.to_string(),
        }
    }
}
