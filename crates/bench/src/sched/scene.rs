//! A stack on the managed CPUs with emulated speeds, its loads, and what plans and policies achieve on it, as its loads
//! count it. Everything is undone when it is dropped.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use eft_cores::plan::Plan;
use eft_host::clock;
use eft_linux::stack_sensor::CounterNames;
use eft_machine::{CpuId, CpuSet};
use serde_json::{Value, json};

use super::judge::{Constants, Slice, energy_j};
use super::loads::{Load, Places, Running};
use crate::ground::{End, Ground, Wish, ask, is_placed, members, plan_in_force};
use crate::stack::Stack;
use crate::watch::Watch;

/// How finely a policy is watched.
const SLICE: Duration = Duration::from_millis(100);

pub struct Scene {
    // Before the stack, since it is put back first.
    pub ground: Ground,
    pub watch: Watch,
    pub end: End,
    pub stack: Stack,
    /// The managed CPUs.
    pub cpus: Vec<CpuId>,
}

/// What was achieved over a while.
#[derive(Clone, Debug, Default)]
pub struct Window {
    pub seconds: f64,
    /// Of each part of the load.
    pub work: Vec<f64>,
    pub slices: Vec<Slice>,
}

impl Window {
    pub fn work_per_s(&self) -> Vec<f64> {
        self.work.iter().map(|work| work / self.seconds.max(1e-9)).collect()
    }

    /// Mean modelled power.
    pub fn power_w(&self, cpus: &[CpuId], constants: &Constants) -> f64 {
        let energy: f64 = self.slices.iter().map(|slice| energy_j(slice, cpus, constants)).sum();
        energy / self.slices.iter().map(|slice| slice.seconds).sum::<f64>().max(1e-9)
    }

    /// What was in force at the end.
    pub fn plan(&self) -> Plan {
        self.slices.last().map(|slice| slice.plan.clone()).unwrap_or_default()
    }
}

impl Scene {
    pub fn start(managed: &CpuSet, levels: usize, names: CounterNames) -> Result<Scene> {
        let end = End::new()?;
        // Stack, loads and peers inherit it: what else runs on a shared machine then takes a percent or two of a CPU
        // instead of half of it.
        // SAFETY: plain numbers; 0 names the calling process.
        if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } != 0 {
            eprintln!("eft: without the right to a high priority, whatever else runs here is measured, too");
        }
        let file = std::env::temp_dir().join(format!("eft-bench-sched-{}.toml", std::process::id()));
        let table = format!("\n[scheduling]\nmanaged = \"{managed}\"\nemulate_speeds = true\n");
        let text = format!("{}{table}", eft_component::topology::DEFAULT);
        std::fs::write(&file, text).with_context(|| file.display().to_string())?;
        let stack = Stack::start(Some(&file));
        let _ = std::fs::remove_file(&file);
        let stack = stack?;
        let wish = Wish { managed: Some(managed.clone()), emulated_levels: levels };
        let ground = Ground::take(&stack.name, &wish)?;
        let watch = Watch::new(&stack.name, managed, names)?;
        Ok(Scene { ground, watch, end, stack, cpus: managed.iter().collect() })
    }

    pub fn load(&self, load: &Load, places: Places) -> Result<Running> {
        Running::start(&self.stack, load, places)
    }

    pub fn sleep(&self, seconds: f64) -> Result<()> {
        self.end.sleep(Duration::from_secs_f64(seconds))
    }

    pub fn status(&self) -> Result<Value> {
        ask(&self.stack.name, json!({ "op": "sched", "what": "status" }))
    }

    /// What the policy decided last, the newest first.
    pub fn reasons(&self, count: usize) -> Result<String> {
        let answer = ask(&self.stack.name, json!({ "op": "sched", "what": "why" }))?;
        let decisions = answer["decisions"].as_array().cloned().unwrap_or_default();
        let one = |d: &Value| {
            let (age, reason) = (d["age_s"].as_f64().unwrap_or_default(), d["reason"].as_str());
            format!("{age:.1} s ago: {}", reason.unwrap_or_default())
        };
        Ok(decisions.iter().rev().take(count).map(one).collect::<Vec<_>>().join("; "))
    }

    /// Hands the stack over to a policy.
    pub fn policy(&mut self, name: &str, objective: &str, profiles: Option<&str>) -> Result<()> {
        self.ground.release_cpus()?;
        let question = json!({ "policy": name, "objective": objective, "floor": 0.95, "profiles": profiles });
        self.ground.policy(&question)
    }

    /// Takes it back.
    pub fn fixed(&mut self) -> Result<()> {
        self.ground.policy(&json!({ "policy": "fixed" }))
    }

    pub fn components(&self) -> &[String] {
        self.ground.platform.components()
    }

    /// What a plan achieves with the load that runs.
    pub fn plan_window(&mut self, load: &Running, plan: &Plan, settle: f64, seconds: f64) -> Result<Window> {
        self.ground.apply(plan)?;
        self.sleep(settle)?;
        let mut window = Window { work: vec![0.0; load.work().len()], ..Window::default() };
        self.slice(load, plan.clone(), Duration::from_secs_f64(seconds), &mut window)?;
        Ok(window)
    }

    /// What the policy in force achieves with the load that runs.
    pub fn policy_window(&mut self, load: &Running, seconds: f64) -> Result<Window> {
        let mut window = Window { work: vec![0.0; load.work().len()], ..Window::default() };
        while window.seconds < seconds {
            let plan = plan_in_force(&self.stack.name, &self.status()?)?;
            self.slice(load, plan, SLICE, &mut window)?;
        }
        Ok(window)
    }

    fn slice(&self, load: &Running, plan: Plan, time: Duration, window: &mut Window) -> Result<()> {
        let (begin, work, cpu) = (Instant::now(), load.work(), self.cpu_s()?);
        self.end.sleep(time)?;
        let seconds = begin.elapsed().as_secs_f64();
        for (sum, (before, now)) in window.work.iter_mut().zip(work.iter().zip(load.work())) {
            *sum += now.saturating_sub(*before) as f64;
        }
        let used = |(name, now): (String, f64)| {
            let before = cpu.iter().find(|(other, _)| *other == name).map_or(now, |(_, before)| *before);
            // One that died and came back begins anew.
            (name, (now - before).max(0.0))
        };
        let cpu_s = self.cpu_s()?.into_iter().map(used).collect();
        window.seconds += seconds;
        window.slices.push(Slice { seconds, plan, cpu_s });
        Ok(())
    }

    /// CPU time of each component so far, by the kernel's account.
    fn cpu_s(&self) -> Result<Vec<(String, f64)>> {
        let time = |pid: Option<u32>| pid.and_then(clock::process_cpu).unwrap_or_default().as_secs_f64();
        let all = members(&self.stack.name)?;
        Ok(all.iter().filter(|m| is_placed(m)).map(|m| (m.peer.to_string(), time(m.pid))).collect())
    }
}
