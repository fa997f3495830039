//! A running stack to try configurations on: its components, the CPUs and speeds that it may use, and the application
//! of plans.
//!
//! Promises: changes of CPUs go through the journaled actuators; when a [`Ground`] is dropped, places, speeds and the
//! stack's policy are again what they were.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use eft_component::scheduling::Spare;
use eft_cores::member::{MemberView, Place};
use eft_cores::plan::{Plan, Seat};
use eft_cores::platform::Platform;
use eft_cores::wanted::{CpuChange, Wanted};
use eft_host::actuators::burner;
use eft_host::actuators::change::Actuator;
use eft_host::actuators::holder::EndSignals;
use eft_host::managed::machine;
use eft_linux::operator;
use eft_machine::{CpuId, CpuSet, Machine, Share};
use serde_json::{Value, json};

/// Lets long work be asked to end, so that its changes are undone in the ordinary way.
pub struct End {
    signals: EndSignals,
    came: AtomicBool,
}

impl End {
    pub fn new() -> Result<End> {
        Ok(End { signals: EndSignals::block()?, came: AtomicBool::new(false) })
    }

    pub fn check(&self) -> Result<()> {
        if self.signals.arrived() {
            self.came.store(true, Ordering::Relaxed);
        }
        if self.came.load(Ordering::Relaxed) { bail!("interrupted; everything is as it was") } else { Ok(()) }
    }

    pub fn sleep(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// What the plans may use.
pub struct Wish {
    /// `None`: what the stack's `[scheduling]` manages.
    pub managed: Option<CpuSet>,
    /// Number of speeds of each CPU, if they are emulated; 0: full speed only, unless the machine has P-states.
    pub emulated_levels: usize,
}

/// Speeds that duty cycles are set to are eighths of the full one: the steps of clock modulation.
const EIGHTHS: usize = 8;
/// How long a change of policy may take.
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Ground {
    pub stack: String,
    pub platform: Platform,
    pub spare: Spare,
    /// How the stack was scheduled before; `None` without a `cores` component.
    pub scheduling: Option<Value>,
    actuator: Option<Actuator>,
    before: Vec<MemberView>,
    applied: Wanted,
}

impl Ground {
    /// Takes over: from here on the stack's policy is `fixed`.
    pub fn take(stack: &str, wish: &Wish) -> Result<Ground> {
        let before = members(stack)?;
        // A stack without `cores` has no scheduler to ask, and none that could interfere.
        let has_cores = before.iter().any(|m| m.peer == eft_messages::ComponentId::CORES);
        let scheduling = match has_cores {
            true => Some(ask(stack, json!({ "op": "sched", "what": "status" }))?["scheduling"].clone()),
            false => None,
        };
        let told = scheduling.as_ref().and_then(|s| s["managed"].as_str()).unwrap_or_default();
        let managed = match &wish.managed {
            Some(managed) => managed.clone(),
            None => told.parse::<CpuSet>().unwrap_or_default(),
        };
        if managed.is_empty() {
            bail!("stack `{stack}` manages no CPUs: give --managed CPUS, or `managed` in its [scheduling]");
        }
        let machine = machine(&managed)?;
        let absent = managed.minus(&machine.online.union(&machine.parked));
        if let Some(cpu) = absent.first() {
            bail!("CPU {cpu} is not there or offline (online are {})", machine.online);
        }
        let roles: Vec<String> = before.iter().filter(|m| is_placed(m)).map(|m| m.peer.to_string()).collect();
        let levels = duty_levels(&machine, wish.emulated_levels)?;
        let platform = Platform::new(machine, &roles, levels.as_deref())?;
        let parks = scheduling.as_ref().is_some_and(|s| s["unneeded"] == "park");
        let ground = Ground {
            stack: stack.into(),
            platform,
            spare: if parks { Spare::Park } else { Spare::GiveBack },
            actuator: Some(Actuator::new(&managed)?),
            scheduling,
            before,
            applied: Wanted::default(),
        };
        ground.policy(&json!({ "policy": "fixed" }))?;
        Ok(ground)
    }

    pub fn machine(&self) -> &Machine {
        self.platform.machine()
    }

    pub fn managed(&self) -> CpuSet {
        self.platform.managed()
    }

    /// Changes the stack's policy and waits until it has applied its first plan.
    pub fn policy(&self, settings: &Value) -> Result<()> {
        if self.scheduling.is_none() {
            return Ok(());
        }
        let mut question = settings.clone();
        question["op"] = "sched".into();
        question["what"] = "policy".into();
        ask(&self.stack, question)?;
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let status = ask(&self.stack, json!({ "op": "sched", "what": "status" }))?;
            if status["last"].is_null() || status["last"]["outcome"] != "under way" {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("stack `{}` does not carry out the change of its policy", self.stack)
    }

    /// Applies a plan: first the changes that make room, then the moves, then the changes that take room away.
    pub fn apply(&mut self, plan: &Plan) -> Result<()> {
        let wanted = Wanted::from(plan);
        let old = self.applied.clone();
        if let Some(actuator) = &self.actuator {
            actuator.change(&CpuChange::making_room(&old, &wanted))?;
        }
        for member in members(&self.stack)?.iter().filter(|m| is_placed(m)) {
            if let Some(place) = wanted.places.get(&member.peer.to_string()) {
                put(&self.stack, member, *place)?;
            }
        }
        // Recorded before it is done, so that a change that fails half way is undone, too.
        self.applied = wanted.clone();
        match &self.actuator {
            Some(actuator) => Ok(actuator.change(&CpuChange::taking_away(&old, &wanted))?),
            None => Ok(()),
        }
    }

    /// Sets full speed everywhere and unparks all CPUs. Places stay.
    pub fn release_cpus(&mut self) -> Result<()> {
        let applied = std::mem::take(&mut self.applied);
        let undo = CpuChange::between(&applied, &applied.without_changes());
        self.actuator.as_ref().map_or(Ok(()), |actuator| Ok(actuator.change(&undo)?))
    }

    fn put_back(&mut self) -> Result<()> {
        self.release_cpus()?;
        for member in self.before.iter().filter(|m| is_placed(m)) {
            put(&self.stack, member, Place { cpu: member.cpu, dedicated: member.dedicated })?;
        }
        match &self.scheduling {
            Some(before) if before["policy"] != "fixed" => self.policy(before),
            _ => Ok(()),
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let cpus = self.release_cpus();
        if let Err(why) = cpus.and_then(|()| self.put_back()) {
            eprintln!(
                "eft: not everything could be put back: {why:#}; `eft cpu restore` undoes changes of CPUs"
            );
        }
    }
}

pub fn ask(stack: &str, question: Value) -> Result<Value> {
    Ok(operator::ask(stack, &question).map(|(answer, _)| answer)?)
}

pub fn members(stack: &str) -> Result<Vec<MemberView>> {
    let answer = ask(stack, json!({ "op": "members" }))?;
    serde_json::from_value(answer["members"].clone()).context("answer of the stack")
}

pub fn is_placed(member: &MemberView) -> bool {
    member.peer != eft_messages::ComponentId::CORES
}

fn put(stack: &str, member: &MemberView, place: Place) -> Result<()> {
    let Place { cpu, dedicated } = place;
    if (member.cpu, member.dedicated) == (cpu, dedicated) && !member.moving {
        // It may have been moved since it was read, but only by another user of this stack.
        let now = members(stack)?;
        if now.iter().any(|m| m.peer == member.peer && (m.cpu, m.dedicated) == (cpu, dedicated)) {
            return Ok(());
        }
    }
    let question = json!({ "op": "place", "component": member.name, "cpu": cpu, "dedicated": dedicated });
    ask(stack, question).map(drop)
}

/// The plan that is in force, as `cores` tells it.
pub fn plan_in_force(stack: &str, status: &Value) -> Result<Plan> {
    let seat = |m: &MemberView| Some((m.peer.to_string(), Seat { cpu: m.cpu?, dedicated: m.alone }));
    let speeds = status["speeds"].as_object().into_iter().flatten();
    let speed = |(cpu, share): (&String, &Value)| Some((cpu.parse().ok()?, Share(share.as_f64()?)));
    let parked = status["parked"].as_array().into_iter().flatten();
    Ok(Plan {
        seats: members(stack)?.iter().filter(|m| is_placed(m)).filter_map(seat).collect(),
        speeds: speeds.filter_map(speed).collect(),
        parked: parked.filter_map(|cpu| cpu.as_u64().map(|c| CpuId(c as u32))).collect(),
        ..Plan::default()
    })
}

/// P-states where all managed CPUs have them; else duty cycles, if they are wished.
fn duty_levels(machine: &Machine, count: usize) -> Result<Option<Vec<Share>>> {
    if count == 0 {
        return Ok(if machine.has_frequencies() { None } else { Some(Vec::new()) });
    }
    burner::check_allowed()?;
    Ok(Some(eighths(count)))
}

/// `count` speeds, evenly among the eighths, the full one included.
fn eighths(count: usize) -> Vec<Share> {
    let count = count.clamp(1, EIGHTHS);
    let steps = (1..=count).map(|step| step * EIGHTHS / count);
    steps.map(|step| Share(step as f64 / EIGHTHS as f64)).collect()
}

#[cfg(test)]
mod tests;
