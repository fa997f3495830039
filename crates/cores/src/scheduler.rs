//! The scheduler as the `cores` process calls it: samples in, a plan with its reason out.
//!
//! Promises: the plan it gives always passes [`check`] against [`Scheduler::machine`]; a sample that is stale, missing
//! or absurd changes nothing and leaves one line in the history; a CPU that comes or goes is accepted after
//! [`SAMPLES_TO_BELIEVE`] samples in a row, and the policy then begins anew with the CPUs that are left.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use eft_base::Instant;
use eft_component::scheduling::PolicyName;
use eft_machine::{CpuId, CpuSet, Machine, Share};

use crate::applications::{Applications, Patience};
use crate::error::SchedulerError;
use crate::estimate::PowerReport;
use crate::history::{Entry, History, Readings};
use crate::observation::{Observation, Observer};
use crate::plan::{Plan, PlanError, check};
use crate::platform::{COMPONENTS_MAX, Home, Platform};
use crate::policy::{Decision, Policy, Settings};
use crate::sample::Sample;
use crate::wanted::Wanted;

/// One reading may be wrong; this many in a row are accepted.
pub const SAMPLES_TO_BELIEVE: u32 = 3;

#[derive(Clone, Debug)]
pub struct Scheduler {
    platform: Platform,
    duty_levels: Option<Vec<Share>>,
    settings: Settings,
    policy: Policy,
    observer: Observer,
    plan: Plan,
    /// The CPUs' states where samples differ from `platform`, and for how many samples.
    doubt: Option<(CpuView, u32)>,
    newcomers: Option<(Vec<String>, u32)>,
    /// The CPUs that others use, as the samples show it.
    others: Applications,
    patience: Patience<Home>,
    /// The applications' CPUs were set explicitly, which overrides the samples.
    told: bool,
    last: Observation,
}

/// The machine's state as samples show it.
#[derive(Clone, Debug, PartialEq)]
struct CpuView {
    online: CpuSet,
    managed: CpuSet,
    parked: CpuSet,
}

impl Scheduler {
    /// `duty_levels`: speeds by duty cycle (MSR or emulated); `None`: the P-states that the machine offers.
    pub fn new(
        name: PolicyName,
        machine: Machine,
        components: &[String],
        duty_levels: Option<&[Share]>,
        settings: Settings,
    ) -> Result<Self, SchedulerError> {
        let platform = Platform::new(machine, components, duty_levels)?;
        let policy = Policy::by_name(name, &platform, &settings)?;
        let plan = policy.plan().clone();
        check(&plan, platform.machine())?;
        Ok(Self {
            platform,
            duty_levels: duty_levels.map(<[Share]>::to_vec),
            settings,
            policy,
            observer: Observer::default(),
            plan,
            doubt: None,
            newcomers: None,
            others: Applications::default(),
            patience: Patience::default(),
            told: false,
            last: Observation::default(),
        })
    }

    /// Goes on from the plan that a predecessor had applied. A plan that does not fit the machine or the components is
    /// refused with the reason, and everything stays as it was.
    pub fn resume(&mut self, plan: Plan, now: Instant) -> Result<(), PlanError> {
        check(&plan, self.machine())?;
        if let Some(name) = self.platform.components().iter().find(|name| !plan.seats.contains_key(*name)) {
            return Err(PlanError::NoPlace { component: name.clone() });
        }
        self.policy.resume(plan, now);
        self.plan = self.policy.plan().clone();
        Ok(())
    }

    /// Feeds one sample; the plan in the answer is to be applied if it differs from the one in force.
    ///
    /// What is worth noting goes into `history`, which outlives the scheduler.
    pub fn decide(&mut self, sample: &Sample, history: &mut History) -> Decision {
        let mut seen = self.observer.observe(sample);
        self.believe(sample, history);
        let decision = match seen.complaint() {
            Some(complaint) => self.kept(complaint),
            None => {
                self.follow_applications(&mut seen, history);
                self.policy.decide(seen.at, &seen)
            }
        };
        let decision = self.checked(decision);
        self.record(&seen, &decision, history);
        self.last = seen;
        self.plan = decision.plan.clone();
        decision
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn machine(&self) -> &Machine {
        self.platform.machine()
    }

    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub fn goal(&self) -> crate::policy::Goal {
        self.settings.goal
    }

    pub fn observation(&self) -> &Observation {
        &self.last
    }

    /// Modelled power of the plan as it is used now, against every managed CPU at full speed doing the same work.
    pub fn power(&self) -> PowerReport {
        PowerReport::of(&self.platform, &self.settings.power, &self.plan, &self.last)
    }

    /// CPUs that others than the stack use, as the samples show it.
    pub fn applications(&self) -> &CpuSet {
        self.others.cpus()
    }

    /// Sets where the applications run, overriding the samples: the stack is placed near them, or away.
    pub fn set_applications(&mut self, cpus: CpuSet, history: &mut History) {
        self.told = true;
        if self.platform.applications != cpus {
            self.applications_are(cpus, self.last.at, history);
        }
    }

    /// The policy begins anew only if the applications went elsewhere in a way that matters, and stayed there. While no
    /// application runs, they are assumed to come back to where they were.
    fn follow_applications(&mut self, seen: &mut Observation, history: &mut History) {
        self.others.note(seen);
        for cpu in &mut seen.cpus {
            cpu.others = self.others.share(cpu.cpu);
        }
        let Some(now) = self.platform.home(self.others.cpus()).filter(|_| !self.told) else { return };
        // The first applications seen have nothing to be compared with, but they have to stay as well.
        let nowhere = Home { package: u32::MAX, boost: false };
        let held = self.platform.home(&self.platform.applications).unwrap_or(nowhere);
        if self.patience.is_over(seen.at, &held, now) {
            self.applications_are(self.others.cpus().clone(), seen.at, history);
        }
    }

    /// A policy whose plans do not depend on it goes on, with all that it learnt; another one may follow it some day.
    fn applications_are(&mut self, cpus: CpuSet, at: Instant, history: &mut History) {
        self.platform.applications = cpus;
        if self.policy.heeds_applications() {
            self.begin_anew("the applications' CPUs are others", at, history);
        }
    }

    /// Changes the policy while everything runs; on an error the old one stays.
    pub fn set_policy(&mut self, name: PolicyName, settings: Settings) -> Result<(), SchedulerError> {
        let policy = Policy::by_name(name, &self.platform, &settings)?;
        (self.policy, self.settings) = (policy, settings);
        Ok(())
    }

    fn kept(&self, reason: String) -> Decision {
        Decision { plan: self.plan.clone(), reason: Some(reason) }
    }

    /// Checks a policy's plan, which is not trusted either.
    fn checked(&self, decision: Decision) -> Decision {
        match check(&decision.plan, self.machine()) {
            Ok(()) => decision,
            Err(why) => self.kept(why.to_string()),
        }
    }

    fn record(&self, seen: &Observation, decision: &Decision, history: &mut History) {
        let changed = !decision.plan.is_same(&self.plan);
        let Some(reason) = decision.reason.clone().or_else(|| changed.then(|| "begins".to_string())) else {
            return;
        };
        let readings = Some(Readings::of(&self.plan, seen));
        let plan = changed.then(|| Wanted::from(&decision.plan));
        history.add(Entry { at: seen.at, policy: self.policy.name(), reason, readings, plan });
    }

    /// Accepts changes that have been seen often enough: CPUs that came or went, new components.
    fn believe(&mut self, sample: &Sample, history: &mut History) {
        let view = CpuView {
            online: cpus(sample, |cpu| cpu.online),
            managed: cpus(sample, |cpu| cpu.managed),
            parked: cpus(sample, |cpu| cpu.parked),
        };
        if view.online.minus(&view.parked).is_empty() {
            // A sample without a running CPU cannot be true, however often it comes.
            self.doubt = None;
        } else if self.is_new(&view) {
            let samples = confirm(&mut self.doubt, &view);
            if samples >= SAMPLES_TO_BELIEVE {
                self.adopt(&view, sample.at, history);
                self.doubt = None;
            }
        } else {
            // eft itself parks CPUs, so that change is accepted at once.
            self.doubt = None;
            let (online, offline) = (view.online.clone(), present(self.machine(), &view).minus(&view.online));
            self.platform.set_states(online, offline, view.parked);
        }
        self.greet(sample, history);
    }

    fn is_new(&self, view: &CpuView) -> bool {
        let machine = self.platform.machine();
        let usable = |online: &CpuSet, parked: &CpuSet| online.union(parked);
        // CPUs that are parked but not managed were parked by others.
        view.managed != machine.managed
            || usable(&view.online, &view.parked) != usable(&machine.online, &machine.parked)
            || view.parked.minus(&view.managed) != machine.parked.minus(&machine.managed)
    }

    fn adopt(&mut self, view: &CpuView, at: Instant, history: &mut History) {
        let mut machine = self.platform.machine().clone();
        machine.offline = present(&machine, view).minus(&view.online);
        machine.online = view.online.clone();
        machine.managed = view.managed.clone();
        machine.parked = view.parked.clone();
        let components = self.platform.components().to_vec();
        self.rebuild(machine, &components, "the CPUs are others", at, history);
    }

    /// A component that the topology did not name (a further nic) gets a seat too.
    fn greet(&mut self, sample: &Sample, history: &mut History) {
        let known = self.platform.components();
        let running = sample.components.iter().filter(|component| component.running).map(|c| &c.name);
        let mut new: Vec<String> =
            running.filter(|name| !known.contains(name) && is_name(name)).cloned().collect();
        new.sort();
        new.dedup();
        new.truncate(COMPONENTS_MAX.saturating_sub(known.len()));
        if new.is_empty() {
            self.newcomers = None;
        } else if confirm(&mut self.newcomers, &new) >= SAMPLES_TO_BELIEVE {
            new.extend_from_slice(known);
            self.newcomers = None;
            let machine = self.platform.machine().clone();
            self.rebuild(machine, &new, "there is a new component", sample.at, history);
        }
    }

    fn rebuild(
        &mut self,
        machine: Machine,
        components: &[String],
        why: &str,
        at: Instant,
        history: &mut History,
    ) {
        let Ok(mut platform) = Platform::new(machine, components, self.duty_levels.as_deref()) else {
            return;
        };
        platform.applications = self.platform.applications.clone();
        self.platform = platform;
        self.begin_anew(why, at, history);
    }

    /// Replaces a policy that no longer fits: the stack needs a place.
    fn begin_anew(&mut self, why: &str, at: Instant, history: &mut History) {
        let made = [self.policy.name(), PolicyName::Adaptive]
            .into_iter()
            .filter_map(|name| Policy::by_name(name, &self.platform, &self.settings).ok())
            .find(|policy| check(policy.plan(), self.platform.machine()).is_ok());
        let Some(policy) = made else { return };
        self.plan = policy.plan().clone();
        self.policy = policy;
        history.add(Entry {
            at,
            policy: self.policy.name(),
            reason: format!("begins anew: {why}"),
            readings: Some(Readings::of(&self.plan, &self.last)),
            plan: Some(Wanted::from(&self.plan)),
        });
    }
}

fn present(machine: &Machine, view: &CpuView) -> CpuSet {
    machine.online.union(&machine.offline).union(&view.online).union(&view.parked)
}

fn cpus(sample: &Sample, wanted: fn(&crate::sample::CpuSample) -> bool) -> CpuSet {
    let bounded = sample.cpus.iter().take(eft_machine::cpu_set::CPU_MAX as usize + 1);
    bounded
        .filter(|cpu| cpu.cpu <= CpuId(eft_machine::cpu_set::CPU_MAX) && wanted(cpu))
        .map(|cpu| cpu.cpu)
        .collect()
}

fn is_name(name: &str) -> bool {
    (1..=32).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Counts how often in a row the same was seen.
fn confirm<T: Clone + PartialEq>(held: &mut Option<(T, u32)>, now: &T) -> u32 {
    let samples = match held {
        Some((before, samples)) if before == now => *samples + 1,
        _ => 1,
    };
    *held = Some((now.clone(), samples));
    samples
}

#[cfg(test)]
mod tests;
