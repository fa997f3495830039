//! The policies of `eft_cores` behind [`Decider`]: the machine is described to them once, each sample is handed over, and
//! their plans become what is wanted of supervisor and actuators.

use std::time::Duration;

use eft_component::scheduling::{ObjectiveName, Scheduling, Unneeded};
use eft_cores::placement::Spare;
use eft_cores::plan::{Plan, Seat};
use eft_cores::policy::{Objective, Policy, Settings};
use eft_cores::profile::{self, Profiles};
use eft_cores::sample::Sample;
use eft_cores::scheduler::Scheduler;
use eft_machine::{CpuSet, Machine};
use serde_json::{Value, json};

use super::decide::{Decider, Decision, Ground, Wanted};
use super::machine::{has_frequencies, machine};
use eft_host::actuators::burner;
use eft_host::named_file;

/// Speeds that duty cycles are set to: the steps of clock modulation, which the emulation follows.
const EIGHTHS: [f64; 7] = [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875];

/// How often learnt profiles are saved.
const SAVE_EVERY: Duration = Duration::from_secs(60);

/// A policy at work.
pub struct Scheduled {
    scheduler: Scheduler,
    period: Duration,
    /// The plan that was asked for last.
    asked: Option<Plan>,
    keeper: Option<Keeper>,
}

impl Scheduled {
    pub fn new(ground: &Ground) -> Result<Scheduled, String> {
        let settings = ground.settings;
        let machine = machine(ground.managed)?;
        let duty_levels = duty_levels(&machine, settings.emulate_speeds);
        let components: Vec<String> = ground.members.iter().map(|m| m.peer.to_string()).collect();
        let pure = pure_settings(settings, &machine)?;
        let name = settings.policy.name();
        let mut scheduler = Scheduler::new(name, machine, &components, duty_levels, pure)?;
        let mut asked = None;
        if !ground.chosen && !ground.applied.places.is_empty() {
            let applied = planned(ground.applied, ground.managed);
            match applied.and_then(|plan| scheduler.resume(plan, eft_host::clock::now().0)) {
                Ok(()) => asked = Some(scheduler.plan().clone()),
                Err(why) => eprintln!("eft cores: begins anew instead of from the plan in force: {why}"),
            }
        }
        let keeper = settings.profiles.clone().filter(|_| name == "profile").map(Keeper::new);
        Ok(Scheduled { period: Duration::from_millis(settings.period_ms), asked, keeper, scheduler })
    }

    /// What the policy noted at this look, if anything.
    fn noted(&self, sample: &Sample) -> Option<(String, Value)> {
        let mut now =
            self.scheduler.history().entries().rev().take_while(|entry| entry.at_ns == sample.at_ns);
        let last = now.next()?;
        // What changed the plan, if several things were noted at once.
        let entry = if last.plan.is_some() { last } else { now.find(|e| e.plan.is_some()).unwrap_or(last) };
        let readings = serde_json::to_value(&entry.readings).unwrap_or_default();
        Some((entry.reason.clone(), json!({ "summary": entry.readings.to_string(), "values": readings })))
    }
}

impl Decider for Scheduled {
    fn period(&self) -> Option<Duration> {
        Some(self.period)
    }

    fn decide(&mut self, sample: &Sample) -> Option<Decision> {
        let plan = self.scheduler.look(sample).plan;
        if let Some(keeper) = &mut self.keeper {
            keeper.keep(&self.scheduler, sample.at_ns, SAVE_EVERY);
        }
        let noted = self.noted(sample);
        // Compared with what was asked for and not with what is: a plan that was refused is not tried a hundred times
        // a second.
        let begins = self.asked.is_none();
        let is_new = self.asked.as_ref().is_none_or(|asked| !asked.is_same(&plan));
        let wanted = is_new.then(|| Wanted::from(&plan));
        if is_new {
            self.asked = Some(plan);
        }
        if wanted.is_none() && noted.is_none() {
            return None;
        }
        let (reason, readings) = match noted {
            Some(noted) if !begins => noted,
            _ => ("the plan that it begins with".into(), Value::Null),
        };
        Some(Decision { wanted, reason, readings })
    }

    fn is_settled(&self) -> bool {
        self.scheduler.policy().is_settled()
    }

    fn end(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            keeper.keep(&self.scheduler, eft_host::clock::now().0, Duration::ZERO);
        }
    }

    fn describe(&self) -> Value {
        json!({
            "plan": self.scheduler.plan().to_string(),
            "changes": self.scheduler.history().changes(),
            "indicators": self.scheduler.observation().indicators,
            "power": self.scheduler.power(),
        })
    }
}

/// Writes what the policy learns back into the file that its profiles came from.
struct Keeper {
    path: String,
    saved: u64,
    at_ns: u64,
    /// Said once, not each minute.
    failed: bool,
}

impl Keeper {
    fn new(path: String) -> Keeper {
        Keeper { path, saved: 0, at_ns: eft_host::clock::now().0, failed: false }
    }

    fn keep(&mut self, scheduler: &Scheduler, now_ns: u64, every: Duration) {
        let Policy::Profile(policy) = scheduler.policy() else { return };
        let due = now_ns.saturating_sub(self.at_ns) >= every.as_nanos() as u64;
        if !due || policy.learnt() == self.saved {
            return;
        }
        (self.saved, self.at_ns) = (policy.learnt(), now_ns);
        match self.write(policy.profiles(), scheduler.machine()) {
            Ok(()) => self.failed = false,
            Err(why) if !self.failed => {
                eprintln!("eft cores: what was learnt is not saved: {why}");
                self.failed = true;
            }
            Err(_) => {}
        }
    }

    /// All or nothing: whoever reads meanwhile, and whatever happens, finds the old file or the new one. A file that is not
    /// a profile file of this machine any more is somebody else's, and stays.
    fn write(&self, learnt: &Profiles, machine: &Machine) -> Result<(), String> {
        let told = |e: std::io::Error| format!("{}: {e}", self.path);
        let before = named_file::regular_text(&self.path).map_err(told)?;
        let stored = profile::file::read(&before, machine).map_err(|e| format!("{}: {e}", self.path))?;
        let text = profile::file::write(&stored.updated(learnt), machine)?;
        let beside = format!("{}.new", self.path);
        std::fs::write(&beside, text).map_err(told)?;
        std::fs::rename(&beside, &self.path).map_err(told)
    }
}

/// What is in force, as a plan: the reverse of `Wanted::from`.
fn planned(applied: &Wanted, managed: &CpuSet) -> Result<Plan, String> {
    let mut plan = Plan::default();
    for (name, place) in &applied.places {
        let cpu = place.cpu.ok_or_else(|| format!("{name} was placed anywhere"))?;
        plan.seats.insert(name.clone(), Seat { cpu, dedicated: place.dedicated });
    }
    plan.parked = applied.parked.iter().copied().collect();
    plan.speeds = applied.speeds.clone();
    plan.given_back = managed.minus(&plan.used()).minus(&plan.parked);
    Ok(plan)
}

/// P-states if all managed CPUs have them; else duty cycles, if that is wished and allowed; else full speed only.
fn duty_levels(machine: &Machine, emulate: bool) -> Option<&'static [f64]> {
    if has_frequencies(machine) {
        return None;
    }
    if !emulate {
        return Some(&[]);
    }
    match burner::check_allowed() {
        Ok(()) => Some(&EIGHTHS),
        Err(reason) => {
            eprintln!("eft cores: cores run at full speed only: {reason}");
            Some(&[])
        }
    }
}

fn pure_settings(settings: &Scheduling, machine: &Machine) -> Result<Settings, String> {
    let profiles = match &settings.profiles {
        None => Profiles::default(),
        Some(path) => {
            let text = named_file::regular_text(path).map_err(|e| format!("{path}: {e}"))?;
            profile::file::read(&text, machine).map_err(|e| format!("{path}: {e}"))?
        }
    };
    Ok(Settings {
        objective: match settings.objective {
            ObjectiveName::Throughput => Objective::Throughput,
            ObjectiveName::LeastPower => Objective::LeastPower { floor: settings.floor },
            ObjectiveName::ThroughputPerWatt => Objective::ThroughputPerWatt,
        },
        spare: match settings.unneeded {
            Unneeded::GiveBack => Spare::GiveBack,
            Unneeded::Park => Spare::Park,
        },
        profiles,
        latency_us_max: settings.latency_us_max,
        ..Settings::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use eft_cores::indicators::Mix;
    use eft_cores::profile::Outcome;

    #[test]
    fn what_was_learnt_is_saved_and_a_file_of_somebody_else_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("profiles.toml").to_string_lossy().into_owned();
        let machine = Machine { model: Some("this".into()), ..Machine::default() };
        let plan = |cpu: u32| {
            let seats = [("tcp".to_string(), Seat { cpu, dedicated: false })].into();
            Plan { seats, ..Plan::default() }
        };
        let outcome =
            |cpu: u32, throughput: f64| Outcome { throughput, plan: plan(cpu), ..Outcome::default() };
        let mut stored = Profiles::default();
        stored.record("bulk", Mix::default(), outcome(0, 1.0));
        stored.record("bulk", Mix::default(), outcome(5, 7.0));
        std::fs::write(&path, profile::file::write(&stored, &machine).unwrap()).unwrap();
        // The policy had no use for CPU 5, and found CPU 0 better than it was.
        let mut learnt = Profiles::default();
        learnt.record("bulk", Mix::default(), outcome(0, 3.0));
        Keeper::new(path.clone()).write(&learnt, &machine).unwrap();
        let now = profile::file::read(&std::fs::read_to_string(&path).unwrap(), &machine).unwrap();
        let figures: Vec<f64> = now.loads[0].outcomes.iter().map(|o| o.throughput).collect();
        assert_eq!(figures, [7.0, 3.0]);

        for bad in ["not ours".to_string(), std::fs::read_to_string(&path).unwrap().replace("7.0", "8.0")] {
            std::fs::write(&path, &bad).unwrap();
            assert!(Keeper::new(path.clone()).write(&learnt, &machine).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), bad);
        }
    }
}
