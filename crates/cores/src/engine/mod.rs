//! The `cores` component: observes, decides, applies decisions step by step, remembers their reasons, answers
//! operators.
//!
//! It owns nothing that the data path needs. Its world reads sensors and changes CPUs for it; the supervisor moves the
//! components. If it dies the stack runs on under the last plan, which the supervisor remembers; its successor goes on
//! from there.
//!
//! It wakes as often as its policy samples, less often while nothing happens, and not at all if the policy needs no
//! samples. It has no neighbours: its inputs are [`Event`]s, its outputs [`Effect`]s.

mod applying;
mod asks;
mod choosing;
mod describe;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

use eft_base::{ComponentId, Instant};
use eft_component::scheduling::Scheduling;
use eft_component::{Component, Context, FromWorld, Outbox, Output};
use eft_machine::{CpuSet, Machine, Share};
use eft_messages::Encoded;
use serde::de::DeserializeOwned;

use crate::attention::{Attention, QuickSample};
use crate::error::EngineError;
use crate::history::History;
use crate::member::{MemberView, Place};
use crate::profile::Profiles;
use crate::sample::Sample;
use crate::scheduler::Scheduler;
use crate::wanted::{CpuChange, Wanted};
use applying::Applying;
use choosing::{Choice, Deciding};

/// The component's inputs.
#[derive(Clone, Debug)]
pub enum Event {
    /// The topology's `[scheduling]`, or what an operator has made of it since.
    Settings(Result<Scheduling, EngineError>),
    /// The components' places in the topology.
    Topology(Result<BTreeMap<String, Place>, EngineError>),
    /// What the predecessor had applied.
    InForce(Wanted),
    /// The initial configuration is complete.
    Begin,
    /// A component appeared, was restarted, moved or died.
    Member(MemberView),
    QuickSample(QuickSample),
    Sample {
        purpose: Purpose,
        sample: Box<Sample>,
        cost: Cost,
    },
    /// The answer to [`Effect::Survey`].
    Surveyed(Result<Box<Survey>, EngineError>),
    /// The result of the [`Effect::Change`] with this ticket.
    Changed {
        ticket: u64,
        result: Result<(), EngineError>,
    },
    /// The supervisor cannot arrange the components as requested.
    Refused(String),
    /// An operator's question, which is answered under this key.
    Asked {
        key: String,
        question: Vec<u8>,
    },
    /// The component is about to end, in good order.
    End,
}

impl FromWorld for Event {
    fn configure(key: String, value: Vec<u8>) -> Option<Event> {
        fn read<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, EngineError> {
            let unread = |e| EngineError::Configuration { key: key.into(), why: format!("{e}") };
            serde_json::from_slice(value).map_err(unread)
        }
        match key.as_str() {
            "scheduling" => Some(Event::Settings(read(&key, &value))),
            "topology.places" => Some(Event::Topology(read(&key, &value))),
            // If it is damaged, it counts as nothing applied.
            "cores.applied" => Some(Event::InForce(read(&key, &value).unwrap_or_default())),
            "cores.refused" => Some(Event::Refused(String::from_utf8_lossy(&value).into_owned())),
            _ if key.starts_with("cores.ask:") => Some(Event::Asked { key, question: value }),
            _ => None,
        }
    }

    fn end() -> Option<Event> {
        Some(Event::End)
    }
}

/// The component's outputs. Requests to sensors and actuators are answered by events, in order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Answered by [`Event::QuickSample`].
    QuickSample,
    /// Answered by [`Event::Sample`] with the same purpose.
    Sample(Purpose),
    /// What a policy has to know before it begins. Answered by [`Event::Surveyed`].
    Survey {
        /// The file that holds them, if the policy needs any.
        profiles: Option<String>,
        /// Cores may be slowed down by a real-time thread where the hardware offers nothing else.
        emulate_speeds: bool,
    },
    /// Unpark, speed up, slow down, park, in this order. Answered by [`Event::Changed`].
    Change { ticket: u64, change: CpuChange },
    /// Asks the supervisor to move components to these places.
    Arrange(Vec<(ComponentId, Place)>),
    /// What is in force now, for a successor.
    Remember(Wanted),
    /// An answer to an operator.
    Answer { key: String, value: Vec<u8> },
    /// Saves what the policy learnt in the file that its profiles came from.
    Save(Box<Learnt>),
    /// One line for the log.
    Complain(String),
}

/// What a sample is taken for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The policy's next decision.
    Decision,
    /// Its first one. The operator who chose the policy is answered after it.
    Begin { key: Option<String> },
    /// An operator wants to see it.
    Show { key: String },
}

/// What a sample costs, as the world measures it: an engine reads no clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// To take this sample.
    pub sample: Duration,
    /// To decide upon the previous sample.
    pub decide: Duration,
}

/// What a policy has to know before it begins.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub machine: Machine,
    /// Speeds by duty cycle; `None`: the P-states that the machine offers.
    pub duty_levels: Option<Vec<Share>>,
    pub profiles: Profiles,
}

/// What a policy learnt on a machine, and where its profiles came from.
#[derive(Clone, Debug)]
pub struct Learnt {
    pub path: String,
    pub profiles: Profiles,
    pub machine: Machine,
}

/// It sends no messages to other components.
impl Output for Effect {
    type Effect = Effect;

    fn peer(&self) -> Option<ComponentId> {
        None
    }

    fn encode(&self) -> Encoded {
        Encoded::default()
    }

    fn into_effect(self) -> Option<Effect> {
        Some(self)
    }
}

/// What samples have cost so far.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    quick_samples: u64,
    samples: u64,
    sample: Duration,
    decide: Duration,
}

#[derive(Default)]
pub struct Cores {
    settings: Scheduling,
    topology: BTreeMap<String, Place>,
    members: Vec<MemberView>,
    deciding: Deciding,
    /// Chosen policies that have not begun; the first one is being prepared.
    choices: VecDeque<Choice>,
    applied: Wanted,
    applying: Option<Applying>,
    /// Of the last change of CPUs that was asked for.
    ticket: u64,
    /// Of the change that undoes everything at the end.
    undoing: Option<u64>,
    history: History,
    /// Why the last plan was not carried out.
    trouble: Option<String>,
    attention: Attention,
    next_quick_sample: Option<Instant>,
    /// When the latest quick sample was requested.
    quick_sample_at: Instant,
    spent: Spent,
}

impl Cores {
    /// CPUs that it may slow down and park.
    pub fn managed(&self) -> &CpuSet {
        &self.settings.managed
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// Whether a plan is being applied.
    pub fn is_applying(&self) -> bool {
        self.applying.is_some()
    }

    /// What is in force.
    pub fn applied(&self) -> &Wanted {
        &self.applied
    }

    /// The policy at work; `None` while nothing is observed.
    pub fn scheduler(&self) -> Option<&Scheduler> {
        match &self.deciding {
            Deciding::Scheduled(scheduled) => Some(&scheduled.scheduler),
            Deciding::Nothing | Deciding::Fixed => None,
        }
    }

    fn member(&mut self, view: MemberView) {
        if view.peer == ComponentId::CORES {
            return;
        }
        match self.members.iter_mut().find(|m| m.peer == view.peer) {
            Some(m) => *m = view,
            None => self.members.push(view),
        }
    }

    fn period(&self) -> Option<Duration> {
        self.scheduler().map(|_| Duration::from_millis(self.settings.period_ms))
    }

    /// Decides whether what a quick sample showed is worth a whole sample.
    fn quick_sample(&mut self, quick_sample: QuickSample, out: &mut Outbox<Effect>) {
        self.spent.quick_samples += 1;
        let Some(period) = self.period() else { return };
        let settled = self.deciding.is_settled() && self.applying.is_none();
        let pace = self.attention.pay(quick_sample, self.quick_sample_at, settled, self.members.len() as u64);
        self.next_quick_sample = Some(self.quick_sample_at + period * pace.periods);
        if pace.sample {
            out.push(Effect::Sample(Purpose::Decision));
        }
    }

    fn sample(
        &mut self,
        now: Instant,
        purpose: Purpose,
        sample: &Sample,
        cost: Cost,
        out: &mut Outbox<Effect>,
    ) {
        if let Purpose::Show { key } = purpose {
            let value = serde_json::to_vec(sample).unwrap_or_default();
            return out.push(Effect::Answer { key, value });
        }
        self.spent.samples += 1;
        self.spent.sample += cost.sample;
        self.spent.decide += cost.decide;
        let wanted = self.deciding.decide(sample, &mut self.history, out);
        if let Some(wanted) = wanted {
            self.begin(wanted, now, out);
        }
        if let Purpose::Begin { key } = purpose {
            self.next_quick_sample = self.period().map(|period| now + period);
            self.chosen(key, out);
        }
    }

    fn complain(&mut self, why: String, out: &mut Outbox<Effect>) {
        self.trouble = Some(why.clone());
        out.push(Effect::Complain(why));
    }

    /// At the end: what was learnt is saved, and what was changed on the CPUs is undone.
    fn end(&mut self, now: Instant, out: &mut Outbox<Effect>) {
        self.deciding.end(now, out);
        self.undo(out);
        self.next_quick_sample = None;
        self.choices.clear();
        self.deciding = Deciding::Nothing;
    }
}

impl Component for Cores {
    type In = Infallible;
    type Out = Effect;
    type Event = Event;
    type Effect = Effect;

    const COUNTERS: &'static [&'static str] = &[];

    fn decode(_peer: ComponentId, _line: &Encoded) -> Option<Infallible> {
        None
    }

    fn receive(
        &mut self,
        _cx: &mut Context,
        _from: ComponentId,
        message: Infallible,
        _out: &mut Outbox<Effect>,
    ) {
        match message {}
    }

    fn event(&mut self, cx: &mut Context, event: Event, out: &mut Outbox<Effect>) {
        let now = cx.now;
        match event {
            Event::Settings(Ok(settings)) => self.settings = settings,
            Event::Topology(Ok(places)) => self.topology = places,
            Event::Settings(Err(why)) | Event::Topology(Err(why)) => self.complain(why.to_string(), out),
            Event::InForce(applied) => self.applied = applied,
            Event::Begin => self.choose(Choice::AtBegin, now, out),
            Event::Member(view) => {
                self.member(view);
                self.go_on(now, out);
            }
            Event::QuickSample(quick_sample) => self.quick_sample(quick_sample, out),
            Event::Sample { purpose, sample, cost } => self.sample(now, purpose, &sample, cost, out),
            Event::Surveyed(survey) => self.surveyed(survey.map(|s| *s), now, out),
            Event::Changed { ticket, result } => self.changed(ticket, result, now, out),
            Event::Refused(why) => self.failed(&why, out),
            Event::Asked { key, question } => self.asked(key, &question, now, out),
            Event::End => self.end(now, out),
        }
    }

    fn check(&self) {
        let awaited = self.undoing.unwrap_or(0);
        assert!(awaited <= self.ticket, "change {awaited} is awaited, and {} were asked for", self.ticket);
    }

    fn expire(&mut self, cx: &mut Context, out: &mut Outbox<Effect>) {
        if self.next_quick_sample.is_some_and(|at| at <= cx.now) {
            self.next_quick_sample = None;
            self.quick_sample_at = cx.now;
            out.push(Effect::QuickSample);
        }
        self.go_on(cx.now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        let arrival = self.applying.as_ref().and_then(Applying::deadline);
        self.next_quick_sample.into_iter().chain(arrival).min()
    }

    fn peer_reborn(&mut self, _cx: &mut Context, _peer: ComponentId, _out: &mut Outbox<Effect>) {}
}

/// The components' names in plans and samples.
fn roles(members: &[MemberView]) -> Vec<String> {
    members.iter().map(|m| m.peer.to_string()).collect()
}
