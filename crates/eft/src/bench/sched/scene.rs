//! A stack on the managed CPUs with emulated speeds, its loads, and what plans and policies achieve on it. Everything is
//! undone when it is dropped.

use std::time::Duration;

use eft_cores::estimate::{self, Activity};
use eft_cores::indicators::{Mix, delivered};
use eft_cores::observation::Observer;
use eft_cores::plan::Plan;
use eft_cores::power::PowerModel;
use eft_cores::profile::sweep::exhaustive;
use eft_machine::CpuSet;
use serde_json::{Value, json};

use super::loads::{Kind, Running};
use crate::bench::stack::Stack;
use crate::commands::profile::ground::{End, Ground, Wish, ask, plan_in_force};
use crate::commands::profile::watch::{Watch, complaint_of};

/// How finely a policy is watched.
const SLICE: Duration = Duration::from_millis(100);

pub struct Scene {
    // Before the stack, since it is put back first.
    pub ground: Ground,
    pub watch: Watch,
    pub end: End,
    pub stack: Stack,
    /// Where loads and peers run.
    pub load_cpu: u32,
}

/// What was achieved over a while.
#[derive(Clone, Debug, Default)]
pub struct Window {
    pub seconds: f64,
    /// Delivered, bytes.
    pub bytes: f64,
    pub mix: Mix,
    /// What was in force, how busy its CPUs were, and for how long.
    pub states: Vec<(Plan, Activity, f64)>,
}

impl Window {
    pub fn throughput(&self) -> f64 {
        self.bytes / self.seconds.max(1e-9)
    }

    /// Mean modelled power.
    pub fn power_w(&self, ground: &Ground, model: &PowerModel) -> f64 {
        let energy = |(plan, activity, seconds): &(Plan, Activity, f64)| {
            estimate::power_w(&ground.platform, model, plan, activity) * seconds
        };
        let seconds: f64 = self.states.iter().map(|(_, _, seconds)| seconds).sum();
        self.states.iter().map(energy).sum::<f64>() / seconds.max(1e-9)
    }
}

impl Scene {
    pub fn start(managed: &CpuSet, levels: usize) -> Result<Scene, String> {
        let end = End::new()?;
        // Stack, loads and peers inherit it: what else runs on a shared machine then takes a percent or two of a CPU
        // instead of half of it.
        // SAFETY: plain numbers; 0 names the calling process.
        if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } != 0 {
            eprintln!("eft: without the right to a high priority, whatever else runs here is measured, too");
        }
        let file = std::env::temp_dir().join(format!("eft-bench-sched-{}.toml", std::process::id()));
        let table = format!("\n[scheduling]\nmanaged = \"{managed}\"\nemulate_speeds = true\n");
        let text = format!("{}{table}", crate::commands::up::DEFAULT_TOPOLOGY);
        std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
        let stack = Stack::start(Some(&file));
        let _ = std::fs::remove_file(&file);
        let stack = stack?;
        let wish = Wish { managed: Some(managed.clone()), emulated_levels: levels };
        let ground = Ground::take(&stack.name, &wish)?;
        let watch = Watch::new(&stack.name, managed)?;
        let load_cpu = ground.platform.base();
        Ok(Scene { ground, watch, end, stack, load_cpu })
    }

    pub fn load(&self, kind: Kind) -> Result<Running, String> {
        Running::start(&self.stack, kind, self.load_cpu)
    }

    pub fn sleep(&self, seconds: f64) -> Result<(), String> {
        self.end.sleep(Duration::from_secs_f64(seconds))
    }

    pub fn status(&self) -> Result<Value, String> {
        ask(&self.stack.name, json!({ "op": "sched", "what": "status" }))
    }

    /// What the policy decided last, the newest first.
    pub fn reasons(&self, count: usize) -> Result<String, String> {
        let answer = ask(&self.stack.name, json!({ "op": "sched", "what": "why" }))?;
        let decisions = answer["decisions"].as_array().cloned().unwrap_or_default();
        let one = |d: &Value| {
            let (age, reason) = (d["age_s"].as_f64().unwrap_or_default(), d["reason"].as_str());
            format!("{age:.1} s ago: {}", reason.unwrap_or_default())
        };
        Ok(decisions.iter().rev().take(count).map(one).collect::<Vec<_>>().join("; "))
    }

    /// Hands the stack over to a policy.
    pub fn policy(&mut self, name: &str, objective: &str, profiles: Option<&str>) -> Result<(), String> {
        self.ground.release_cpus()?;
        let question = json!({ "policy": name, "objective": objective, "floor": 0.95, "profiles": profiles });
        self.ground.policy(&question)
    }

    /// Takes it back.
    pub fn fixed(&mut self) -> Result<(), String> {
        self.ground.policy(&json!({ "policy": "fixed" }))
    }

    /// What a plan achieves with the load that runs.
    pub fn plan_window(&mut self, plan: &Plan, settle: f64, seconds: f64) -> Result<Window, String> {
        self.ground.apply(plan)?;
        self.sleep(settle)?;
        let time = Duration::from_secs_f64(seconds);
        let seen = self.watch.window(&self.end, &self.ground.platform, plan, time)?;
        Ok(Window {
            seconds: seen.seconds,
            bytes: seen.throughput * seen.seconds,
            mix: seen.mix,
            states: vec![(plan.clone(), seen.activity, seen.seconds)],
        })
    }

    /// What the policy in force achieves with the load that runs.
    pub fn policy_window(&mut self, seconds: f64) -> Result<Window, String> {
        let mut window = Window::default();
        let mut observer = Observer::default();
        self.watch.refresh()?;
        observer.observe(&self.watch.sample());
        while window.seconds < seconds {
            let plan = plan_in_force(&self.stack.name, &self.status()?)?;
            self.end.sleep(SLICE)?;
            let seen = observer.observe(&self.watch.sample());
            window.seconds += seen.period_ns as f64 / 1e9;
            window.bytes += delivered(&seen.traffic);
            window.mix = seen.indicators.mix();
            if complaint_of(&seen).is_none() {
                let activity = estimate::seen_activity(&plan, &seen);
                window.states.push((plan, activity, seen.period_ns as f64 / 1e9));
            }
            self.watch.refresh()?;
        }
        match window.states.is_empty() {
            true => Err("the policy could not be watched: no look was sound".into()),
            false => Ok(window),
        }
    }

    /// The configurations of an exhaustive sweep, without those that differ only in where udp sits, since no load here
    /// uses it.
    pub fn configurations(&self) -> Vec<Plan> {
        let mut kept: Vec<(Plan, Plan)> = Vec::new();
        for configuration in exhaustive(&self.ground.platform, self.ground.spare) {
            let mut key = configuration.plan.clone();
            key.seats.remove("udp");
            key.seats.values_mut().for_each(|seat| seat.dedicated = false);
            let used = key.used();
            key.speeds.retain(|cpu, _| used.contains(*cpu));
            key.given_back = CpuSet::new();
            if !kept.iter().any(|(known, _)| known.is_same(&key)) {
                kept.push((key, configuration.plan));
            }
        }
        kept.into_iter().map(|(_, plan)| plan).collect()
    }

    /// Those of them in which every CPU runs at full speed.
    pub fn at_full_speed(&self) -> Vec<Plan> {
        let is_full = |plan: &Plan| plan.used().iter().all(|cpu| plan.speed(cpu) > 0.99);
        self.configurations().into_iter().filter(is_full).collect()
    }
}
