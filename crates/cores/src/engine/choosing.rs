//! Which policy decides, how one takes over from another, and how a sample becomes a decision.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

use eft_base::Instant;
use eft_component::Outbox;
use eft_component::scheduling::{PolicyName, Scheduling};
use serde_json::Value;

use super::{Cores, Effect, Learnt, Purpose, Survey, roles};
use crate::error::EngineError;
use crate::history::{Entry, History, Outcome};
use crate::plan::Plan;
use crate::policy::{Goal, Policy, Settings};
use crate::profile::Profiles;
use crate::sample::Sample;
use crate::scheduler::Scheduler;
use crate::wanted::Wanted;

/// How often learnt profiles are saved.
const SAVE_EVERY: Duration = Duration::from_secs(60);

/// Where the request for a policy comes from.
#[derive(Clone, Debug)]
pub enum Choice {
    /// The settings at the component's start.
    AtBegin,
    /// An operator, with this question, which is answered under this key.
    Asked { key: String, question: Value },
}

/// What decides where components run.
#[derive(Default)]
pub enum Deciding {
    /// Nothing: the requested policy cannot begin.
    #[default]
    Nothing,
    /// Every component stays where the topology, or an operator since, put it.
    Fixed,
    Scheduled(Box<Scheduled>),
}

/// A policy that observes.
pub struct Scheduled {
    pub scheduler: Scheduler,
    /// The plan that was requested last.
    asked: Option<Plan>,
    keeping: Option<Keeping>,
}

/// The file into which the learnt profiles are saved.
struct Keeping {
    path: String,
    saved: u64,
    at: Instant,
}

impl Keeping {
    fn keep(&mut self, scheduler: &Scheduler, now: Instant, every: Duration, out: &mut Outbox<Effect>) {
        let Policy::Profile(policy) = scheduler.policy() else { return };
        let due = now.saturating_since(self.at) >= every;
        if !due || policy.learnt() == self.saved {
            return;
        }
        (self.saved, self.at) = (policy.learnt(), now);
        out.push(Effect::Save(Box::new(Learnt {
            path: self.path.clone(),
            profiles: policy.profiles().clone(),
            machine: scheduler.machine().clone(),
        })));
    }
}

impl Scheduled {
    /// The wanted state from now on; `None`: no change.
    fn decide(&mut self, sample: &Sample, history: &mut History, out: &mut Outbox<Effect>) -> Option<Wanted> {
        let before = (history.taken(), history.changes());
        let begins = self.asked.is_none();
        // The notes on the first sample are dropped: there is nothing to compare it with.
        let mut unheard = History::default();
        let noted = if begins { &mut unheard } else { &mut *history };
        let plan = self.scheduler.decide(sample, noted).plan;
        if let Some(keeping) = &mut self.keeping {
            keeping.keep(&self.scheduler, sample.at, SAVE_EVERY, out);
        }
        // Compared with the requested plan, not the one in force: a plan that was refused must not be tried a hundred
        // times a second.
        let is_new = self.asked.as_ref().is_none_or(|asked| !asked.is_same(&plan));
        let changes = history.changes() > before.1;
        if !is_new {
            if changes {
                history.conclude_where(|number| number > before.0, &Outcome::PlanStays);
            }
            return None;
        }
        let wanted = Wanted::from(&plan);
        if !changes {
            let reason = if begins { "the plan that it begins with" } else { "the plan, little by little" };
            history.add(Entry {
                at: sample.at,
                policy: self.scheduler.policy().name(),
                reason: reason.into(),
                readings: None,
                plan: Some(wanted.clone()),
            });
        }
        self.asked = Some(plan);
        Some(wanted)
    }
}

impl Deciding {
    pub fn is_settled(&self) -> bool {
        matches!(self, Deciding::Scheduled(s) if s.scheduler.policy().is_settled())
    }

    pub fn decide(
        &mut self,
        sample: &Sample,
        history: &mut History,
        out: &mut Outbox<Effect>,
    ) -> Option<Wanted> {
        match self {
            Deciding::Scheduled(scheduled) => scheduled.decide(sample, history, out),
            Deciding::Nothing | Deciding::Fixed => None,
        }
    }

    /// Saves what was learnt: the component ends in good order, or another policy takes over.
    pub fn end(&mut self, now: Instant, out: &mut Outbox<Effect>) {
        if let Deciding::Scheduled(scheduled) = self
            && let Some(keeping) = &mut scheduled.keeping
        {
            keeping.keep(&scheduled.scheduler, now, Duration::ZERO, out);
        }
    }
}

impl Cores {
    /// Queues a choice of policy behind earlier ones.
    pub(super) fn choose(&mut self, choice: Choice, now: Instant, out: &mut Outbox<Effect>) {
        self.choices.push_back(choice);
        if self.choices.len() == 1 {
            self.take_up_next(now, out);
        }
    }

    fn take_up_next(&mut self, now: Instant, out: &mut Outbox<Effect>) {
        while let Some(choice) = self.choices.front().cloned() {
            match self.settings_of(&choice) {
                Ok(settings) if settings.policy == PolicyName::Fixed => {
                    self.deciding.end(now, out);
                    self.take_up_fixed(&choice, settings, now, out);
                }
                Ok(settings) => {
                    // Saved first, since the next policy may read what this one learnt.
                    self.deciding.end(now, out);
                    let Scheduling { profiles, emulate_speeds, .. } = settings;
                    return out.push(Effect::Survey { profiles, emulate_speeds });
                }
                Err(why) => self.refuse(&choice, why, out),
            }
            self.choices.pop_front();
        }
    }

    /// The settings after a choice: those that it does not name stay.
    fn settings_of(&self, choice: &Choice) -> Result<Scheduling, EngineError> {
        let Choice::Asked { question, .. } = choice else { return Ok(self.settings.clone()) };
        let question_error = |e| EngineError::Question(format!("{e}"));
        let mut wanted = serde_json::to_value(&self.settings).map_err(question_error)?;
        for key in ["policy", "objective", "floor", "profiles"] {
            if !question[key].is_null() {
                wanted[key] = question[key].clone();
            }
        }
        let settings: Scheduling = serde_json::from_value(wanted).map_err(question_error)?;
        settings.check()?;
        Ok(settings)
    }

    fn refuse(&mut self, choice: &Choice, why: EngineError, out: &mut Outbox<Effect>) {
        let why = why.to_string();
        match choice {
            Choice::Asked { key, .. } => self.answer_error(key.clone(), &why, out),
            Choice::AtBegin => {
                self.deciding = Deciding::Nothing;
                out.push(Effect::Complain(format!("{why}; everything stays as it is")));
                self.trouble = Some(why);
            }
        }
    }

    /// Takes up `fixed`. If an operator chose it, what another policy had changed is put back first.
    fn take_up_fixed(
        &mut self,
        choice: &Choice,
        settings: Scheduling,
        now: Instant,
        out: &mut Outbox<Effect>,
    ) {
        self.settings = settings;
        self.deciding = Deciding::Fixed;
        self.next_quick_sample = None;
        let Choice::Asked { key, .. } = choice else { return };
        self.trouble = None;
        let wanted = Wanted { places: self.topology.clone(), ..Wanted::default() };
        self.history.add(Entry {
            at: now,
            policy: PolicyName::Fixed,
            reason: "policy fixed: everything as the topology says".into(),
            readings: None,
            plan: Some(wanted.clone()),
        });
        self.begin(wanted, now, out);
        self.chosen(Some(key.clone()), out);
    }

    /// The survey that the chosen policy needs has come.
    pub(super) fn surveyed(
        &mut self,
        survey: Result<Survey, EngineError>,
        now: Instant,
        out: &mut Outbox<Effect>,
    ) {
        let Some(choice) = self.choices.front().cloned() else { return };
        let made = self.settings_of(&choice).and_then(|settings| {
            let scheduled = self.schedule(&choice, &settings, survey?, now, out)?;
            Ok((settings, scheduled))
        });
        match made {
            Ok((settings, scheduled)) => {
                self.settings = settings;
                self.deciding = Deciding::Scheduled(Box::new(scheduled));
                let key = match choice {
                    Choice::AtBegin => None,
                    Choice::Asked { key, .. } => {
                        self.trouble = None;
                        Some(key)
                    }
                };
                out.push(Effect::Sample(Purpose::Begin { key }));
            }
            Err(why) => self.refuse(&choice, why, out),
        }
        self.choices.pop_front();
        self.take_up_next(now, out);
    }

    fn schedule(
        &self,
        choice: &Choice,
        settings: &Scheduling,
        survey: Survey,
        now: Instant,
        out: &mut Outbox<Effect>,
    ) -> Result<Scheduled, EngineError> {
        let Survey { machine, duty_levels, profiles } = survey;
        let told = policy_settings(settings, profiles);
        let mut scheduler =
            Scheduler::new(settings.policy, machine, &roles(&self.members), duty_levels.as_deref(), told)?;
        let mut asked = None;
        if matches!(choice, Choice::AtBegin) && !self.applied.places.is_empty() {
            let applied = self.applied.to_plan(&settings.managed);
            match applied.and_then(|plan| scheduler.resume(plan, now)) {
                Ok(()) => asked = Some(scheduler.plan().clone()),
                Err(why) => out
                    .push(Effect::Complain(format!("begins anew instead of from the plan in force: {why}"))),
            }
        }
        let keeping = settings.profiles.clone().filter(|_| settings.policy == PolicyName::Profile);
        let keeping = keeping.map(|path| Keeping { path, saved: 0, at: now });
        Ok(Scheduled { scheduler, asked, keeping })
    }
}

fn policy_settings(settings: &Scheduling, profiles: Profiles) -> Settings {
    Settings {
        goal: Goal { objective: settings.objective, floor: settings.floor },
        spare: settings.unneeded,
        profiles,
        latency_max: settings.latency_max,
        ..Settings::default()
    }
}
