//! The surroundings of the `cores` component: sensors, actuators, profile files, the supervisor.
//!
//! It reads status pages, and changes speeds and parking through the journaled actuators. It does at once what the
//! engine asks for; the engine learns the result in the next turn.

mod profiles;
mod survey;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Duration;

use eft_channel::notify::Mode;
use eft_channel::status::Status;
use eft_cores::engine::{Cores, Cost, Effect, Event, Purpose};
use eft_cores::error::EngineError;
use eft_cores::wanted::CpuChange;
use eft_host::actuators::change::Actuator;
use eft_host::clock;
use eft_host::sensors::Tree;
use eft_machine::CpuSet;
use eft_messages::ComponentId;

use super::Surroundings;
use crate::protocol::{FromServer, ToServer};
use crate::stack_sensor::{CounterNames, StackSensor};
use crate::{Doing, Result, memory, sandbox};
use profiles::Saver;

/// The host and the supervisor, as `cores` sees them.
pub struct CoresSurroundings {
    control: OwnedFd,
    status: Status,
    sensor: StackSensor,
    managed: CpuSet,
    /// Present if any CPU is managed.
    actuator: Option<Actuator>,
    saver: Saver,
    events: VecDeque<Event>,
    /// How long the engine took for the last sample.
    decide: Duration,
}

impl CoresSurroundings {
    /// `names`: the counter names of all engines.
    pub fn new(control: &OwnedFd, status: &Status, names: CounterNames) -> Result<CoresSurroundings> {
        Ok(CoresSurroundings {
            control: control.try_clone().doing("control socket")?,
            status: status.clone(),
            sensor: StackSensor::new(Tree::live(), names, &CpuSet::new()),
            managed: CpuSet::new(),
            actuator: None,
            saver: Saver::default(),
            events: VecDeque::new(),
            decide: Duration::ZERO,
        })
    }

    fn sample(&mut self, purpose: Purpose) {
        let began = clock::now();
        let sample = Box::new(self.sensor.sample(began));
        let cost = Cost { sample: clock::now().saturating_since(began), decide: self.decide };
        self.events.push_back(Event::Sample { purpose, sample, cost });
    }

    fn change(&self, change: &CpuChange) -> Result<()> {
        let Some(actuator) = &self.actuator else {
            return Err(crate::Error::Missing("no CPU is managed".into()));
        };
        // Another process may hold the journal's lock for a while: announced as asleep, this server does not count as
        // hung.
        let state = self.status.state();
        state.announce(Mode::Descriptor);
        let done = actuator.change(change);
        state.awake();
        reap_children();
        Ok(done?)
    }

    fn tell(&self, message: &FromServer) {
        super::tell(&self.control, message, &[]);
    }
}

impl Surroundings<Cores> for CoresSurroundings {
    fn begin(&mut self, engine: &Cores) -> Result<bool> {
        self.managed = engine.managed().clone();
        self.sensor.manage(&self.managed);
        let landlock = if self.managed.is_empty() {
            sandbox::enter_for_sensors()?
        } else {
            self.actuator = Some(Actuator::new(&self.managed)?);
            sandbox::enter_for_actuators()?
        };
        self.events.push_back(Event::Begin);
        Ok(landlock)
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::QuickSample => {
                self.events.push_back(Event::QuickSample(self.sensor.quick_sample(clock::now())))
            }
            Effect::Sample(purpose) => self.sample(purpose),
            Effect::Survey { profiles, emulate_speeds } => {
                let survey = survey::survey(&self.managed, profiles.as_deref(), emulate_speeds);
                let survey = survey.map_err(|e| EngineError::Host(e.to_string()));
                self.events.push_back(Event::Surveyed(survey.map(Box::new)));
            }
            Effect::Change { ticket, change } => {
                let result = self.change(&change).map_err(|e| EngineError::Host(e.to_string()));
                self.events.push_back(Event::Changed { ticket, result });
            }
            Effect::Arrange(places) => self.tell(&FromServer::Arrange { places }),
            Effect::Remember(applied) => {
                self.tell(&FromServer::Remember { value: serde_json::to_vec(&applied).unwrap_or_default() });
            }
            Effect::Answer { key, value } => self.tell(&FromServer::Answer { key, value }),
            Effect::Save(learnt) => self.saver.save(&learnt),
            Effect::Complain(why) => eprintln!("eft cores: {why}"),
        }
    }

    fn poll(&mut self, _ready: bool, emit: &mut dyn FnMut(Event)) {
        while let Some(event) = self.events.pop_front() {
            let decides =
                matches!(&event, Event::Sample { purpose, .. } if !matches!(purpose, Purpose::Show { .. }));
            let began = clock::now();
            emit(event);
            if decides {
                self.decide = clock::now().saturating_since(began);
            }
        }
    }

    fn pending(&self) -> bool {
        !self.events.is_empty()
    }

    fn control(&mut self, message: ToServer, mut fds: Vec<OwnedFd>, emit: &mut dyn FnMut(Event)) {
        let ToServer::Member(view) = message else { return };
        let page = fds.pop().and_then(|fd| Status::new(memory::map(&fd, false).ok()?).ok());
        let Some(page) = page.filter(|_| view.peer != ComponentId::CORES) else { return };
        self.sensor.update(view.clone(), page);
        emit(Event::Member(view));
    }
}

/// Reaps the holders (of `eft cpu`) that have ended: they are children of this process.
fn reap_children() {
    // SAFETY: WNOHANG does not wait, and without a status pointer nothing is written.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}
