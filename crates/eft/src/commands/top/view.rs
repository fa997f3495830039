//! What the live view shows, as data: the difference of two samples of a stack.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use eft_base::Instant;
use eft_base::time::{self, nanos};
use eft_cores::applications::Applications;
use eft_cores::observation::{ComponentLoad, Observation, Observer};
use eft_cores::sample::{ComponentSample, Hint, Sample};
use eft_cores::throughput::ByteRate;
use eft_host::clock;
use eft_host::sensors::{self, Tree};
use eft_linux::operator;
use eft_linux::stack_sensor::StackSensor;
use eft_machine::{CpuId, CpuSet, Share, Watts};
use serde::Serialize;
use serde_json::{Value, json};

/// One CPU.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CpuRow {
    pub cpu: CpuId,
    pub class: String,
    pub online: bool,
    pub managed: bool,
    pub parked: bool,
    /// Share of full speed.
    pub speed: Share,
    /// Share of the time, by all programs.
    pub busy: Share,
    /// Share of the time that a hypervisor gave to other machines while a task here wanted to run.
    pub stolen: Share,
    /// Whether others than the stack work there.
    pub applications: bool,
    /// The components that were placed there.
    pub runs: Vec<String>,
}

/// One component.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ComponentRow {
    pub name: String,
    pub state: String,
    pub restarts: u64,
    pub cpu: Option<CpuId>,
    pub dedicated: bool,
    pub busy: Share,
    pub polling: Share,
    pub waiting: Share,
    /// Ready to run, but the CPU ran something else or was stolen.
    pub ready: Share,
    pub sleeping: Share,
    pub wake_ups_per_s: f64,
    /// Most messages in any queue toward it, and that queue's capacity.
    pub queue_high: u32,
    pub queue_capacity: u32,
    pub overloads: u64,
    pub hint: Hint,
}

/// Everything at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct View {
    pub stack: String,
    #[serde(rename = "at_ns")]
    pub at: Instant,
    #[serde(rename = "period_ns", with = "time::nanos")]
    pub period: Duration,
    pub cpus: Vec<CpuRow>,
    pub components: Vec<ComponentRow>,
    pub indicators: eft_cores::indicators::Indicators,
    pub connections_open: u64,
    #[serde(rename = "received_bytes_per_s")]
    pub received: ByteRate,
    #[serde(rename = "sent_bytes_per_s")]
    pub sent: ByteRate,
    /// By a meter, or else as `cores` models it for the managed CPUs' packages.
    #[serde(rename = "power_w")]
    pub power: Option<Watts>,
    pub power_is_modelled: bool,
    /// Policy, objective, last decision; null without `cores`.
    pub scheduling: Value,
    /// Raw counters, for readers that compute rates themselves.
    #[serde(skip)]
    pub sample: Sample,
}

/// A running stack that is sampled.
pub struct Source {
    stack: String,
    sensor: StackSensor,
    observer: Observer,
    applications: Applications,
    classes: BTreeMap<CpuId, String>,
    managed: CpuSet,
}

impl Source {
    pub fn open(stack: &str) -> Result<Source> {
        let (answer, _) = ask(stack, &json!({ "op": "ps" }))?;
        let stack = answer["stack"].as_str().unwrap_or(stack).to_string();
        let managed = ask(&stack, &json!({ "op": "sched", "what": "status" }))
            .ok()
            .and_then(|(s, _)| {
                serde_json::from_value::<eft_component::scheduling::Scheduling>(s["scheduling"].clone()).ok()
            })
            .map(|s| s.managed)
            .unwrap_or_default();
        let machine = sensors::observe(&Tree::live())?;
        let classes = machine.cpus.iter().map(|c| (c.cpu, format!("{:?}", c.class).to_lowercase())).collect();
        let sensor = StackSensor::new(Tree::live(), crate::commands::stat::counters_of, &managed);
        let mut source = Source {
            stack,
            sensor,
            observer: Observer::default(),
            applications: Applications::default(),
            classes,
            managed,
        };
        source.sample()?;
        Ok(source)
    }

    /// Its name.
    pub fn stack(&self) -> &str {
        &self.stack
    }

    fn sample(&mut self) -> Result<(Sample, Observation)> {
        eft_linux::stack_sensor::pages::refresh(&self.stack, &mut self.sensor)?;
        let sample = self.sensor.sample(clock::now());
        let seen = self.observer.observe(&sample);
        self.applications.note(&seen);
        Ok((sample, seen))
    }

    /// The next sample.
    pub fn view(&mut self) -> Result<View> {
        let (ps, _) = ask(&self.stack, &json!({ "op": "ps" }))?;
        // Without `cores`, or while it restarts, there is no scheduling to report.
        let scheduling = ask(&self.stack, &json!({ "op": "sched", "what": "status" }))
            .map_or(Value::Null, |(answer, _)| answer);
        let (mut sample, seen) = self.sample()?;
        let components = self.components(&ps, &seen);
        let cpus = self.cpus(&seen, &components);
        let seconds = nanos(seen.period).max(1) as f64 / 1e9;
        sample.components.iter_mut().for_each(|component| self.call_by_name(component));
        Ok(View {
            stack: self.stack.clone(),
            at: seen.at,
            period: seen.period,
            cpus,
            components,
            connections_open: seen.traffic.connections_open,
            received: ByteRate(seen.traffic.received_bytes as f64 / seconds),
            sent: ByteRate(seen.traffic.sent_bytes as f64 / seconds),
            indicators: seen.indicators,
            power: seen.power.or_else(|| scheduling["state"]["power"]["now_w"].as_f64().map(Watts)),
            power_is_modelled: seen.power.is_none(),
            scheduling,
            sample,
        })
    }

    /// Samples go by role (`nic0`), people by what `eft ps` says (`nic:eth0`).
    fn call_by_name(&self, component: &mut ComponentSample) {
        let name =
            |role: &str| self.sensor.views().find(|v| v.peer.to_string() == role).map(|v| v.name.clone());
        let queues = component.queues.iter_mut().map(|queue| &mut queue.from);
        for called in queues.chain([&mut component.name]) {
            if let Some(name) = name(called) {
                *called = name;
            }
        }
    }

    fn components(&self, ps: &Value, seen: &Observation) -> Vec<ComponentRow> {
        let role = |name: &str| self.sensor.views().find(|v| v.name == name).map(|v| v.peer.to_string());
        let row = |c: &Value| {
            let name = c["component"].as_str().unwrap_or_default().to_string();
            let load = role(&name).and_then(|role| seen.component(&role).cloned()).unwrap_or_default();
            let time = Time::of(&load);
            let fullest =
                load.queues.iter().max_by_key(|q| u64::from(q.high) * 65_536 / u64::from(q.capacity.max(1)));
            ComponentRow {
                state: c["state"].as_str().unwrap_or_default().to_string(),
                restarts: c["deaths"].as_u64().unwrap_or(0),
                cpu: c["cpu"].as_u64().map(|cpu| CpuId(cpu as u32)),
                dedicated: c["alone"] == true,
                busy: time.busy,
                polling: time.polling,
                waiting: time.waiting,
                ready: time.ready,
                sleeping: load.sleeping,
                wake_ups_per_s: load.wake_ups_per_s,
                queue_high: fullest.map_or(0, |q| q.high),
                queue_capacity: fullest.map_or(0, |q| q.capacity),
                overloads: load.overloads,
                hint: load.hint,
                name,
            }
        };
        ps["components"].as_array().into_iter().flatten().map(row).collect()
    }

    fn cpus(&self, seen: &Observation, components: &[ComponentRow]) -> Vec<CpuRow> {
        let row = |load: &eft_cores::observation::CpuLoad| CpuRow {
            cpu: load.cpu,
            class: self.classes.get(&load.cpu).cloned().unwrap_or_default(),
            online: load.online,
            managed: self.managed.contains(load.cpu),
            parked: load.parked,
            speed: load.speed,
            busy: load.busy,
            stolen: load.stolen,
            applications: self.applications.cpus().contains(load.cpu),
            runs: components.iter().filter(|c| c.cpu == Some(load.cpu)).map(|c| c.name.clone()).collect(),
        };
        seen.cpus.iter().map(row).collect()
    }
}

/// What a component's time went to. Its own account runs on while its CPU is another's; the kernel knows how much it had,
/// and only that much can be work, polling or a wait on the CPU.
struct Time {
    busy: Share,
    polling: Share,
    waiting: Share,
    ready: Share,
}

impl Time {
    fn of(load: &ComponentLoad) -> Time {
        let awake = load.busy + load.polling + load.waiting;
        let had = if awake > Share::NONE { Share(load.cpu_share / awake).within() } else { Share::ALL };
        Time {
            busy: load.busy * had,
            polling: load.polling * had,
            waiting: load.waiting * had,
            ready: awake * had.rest(),
        }
    }
}

fn ask(stack: &str, request: &Value) -> Result<(Value, Vec<std::os::fd::OwnedFd>)> {
    Ok(operator::ask(stack, request)?)
}

#[cfg(test)]
mod tests;
