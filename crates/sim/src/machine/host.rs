//! The `cores` component on the modelled machine: the engine that runs live, in the loop that all servers run in, with
//! the machine for its sensors and actuators. Decisions are applied step by step, as live; the engine can die between
//! any two of its turns, and its successor gets its remembered state.

use eft_machine::Share;
use std::collections::{BTreeMap, VecDeque};

use eft_base::{ComponentId, Instant};
use eft_channel::notify::{Doorbell, Wake};
use eft_channel::status::Status;
use eft_component::scheduling::Scheduling;
use eft_component::{Server, World as Surroundings};
use eft_cores::engine::{Cores, Cost, Effect, Event, Survey};
use eft_cores::member::{MemberView, Place};
use eft_cores::profile::Profiles;
use eft_cores::scheduler::Scheduler;
use eft_cores::wanted::Wanted;

use crate::machine::shape::{Shape, components};
use crate::machine::world::{MOVE_NS, World};

/// Turns without time passing after which the engine counts as livelocked.
const TURNS_MAX: u32 = 1_000;

/// The machine as the engine reaches it, and what the engine was told.
struct Around {
    world: World,
    shape: Shape,
    profiles: Profiles,
    events: VecDeque<Event>,
    /// Components that are moving, and when they arrive.
    moving: Vec<(u64, ComponentId, Place)>,
    remembered: Wanted,
    /// When the plan in force changed.
    changed_ns: Vec<u64>,
    complaints: Vec<String>,
}

impl Around {
    fn arrange(&mut self, places: &[(ComponentId, Place)]) {
        let moved = self.world.arrange(places);
        for (index, (peer, place)) in moved.into_iter().enumerate() {
            self.moving.retain(|(_, other, _)| *other != peer);
            let arrives_ns = self.world.now_ns() + MOVE_NS * (index as u64 + 1);
            self.moving.push((arrives_ns, peer, place));
        }
    }

    fn arrive(&mut self) {
        let now_ns = self.world.now_ns();
        let arrived = self.moving.extract_if(.., |(at_ns, ..)| *at_ns <= now_ns);
        self.events.extend(arrived.map(|(_, peer, place)| Event::Member(view(peer, place))));
    }
}

impl Surroundings for Around {
    type Effect = Effect;

    fn now(&mut self) -> Instant {
        Instant(self.world.now_ns())
    }

    fn wake(&mut self, _: ComponentId, _: Wake, _: &Doorbell) {}

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::QuickSample => self.events.push_back(Event::QuickSample(self.world.quick_sample())),
            Effect::Sample(purpose) => {
                let sample = Box::new(self.world.sample());
                self.events.push_back(Event::Sample { purpose, sample, cost: Cost::default() });
            }
            Effect::Survey { .. } => {
                let survey = Survey {
                    machine: self.shape.machine(),
                    duty_levels: self.shape.duty_levels().map(<[Share]>::to_vec),
                    profiles: self.profiles.clone(),
                };
                self.events.push_back(Event::Surveyed(Ok(Box::new(survey))));
            }
            Effect::Change { ticket, change } => {
                let result = self.world.change(&change);
                self.events.push_back(Event::Changed { ticket, result });
            }
            Effect::Arrange(places) => self.arrange(&places),
            Effect::Remember(applied) => {
                if self.remembered != applied && self.remembered != Wanted::default() {
                    self.changed_ns.push(self.world.now_ns());
                }
                self.remembered = applied;
            }
            Effect::Complain(why) => self.complaints.push(why),
            Effect::Answer { .. } | Effect::Save(_) => {}
        }
    }

    fn accuse(&mut self, _: ComponentId) {}
}

pub struct Host {
    server: Server<Cores>,
    around: Around,
    settings: Scheduling,
    deaths: u64,
}

impl Host {
    pub fn new(world: World, shape: &Shape, settings: Scheduling, profiles: Profiles) -> Host {
        let around = Around {
            world,
            shape: *shape,
            profiles,
            events: VecDeque::new(),
            moving: Vec::new(),
            remembered: Wanted::default(),
            changed_ns: Vec::new(),
            complaints: Vec::new(),
        };
        let mut host = Host { server: newborn(0), around, settings, deaths: 0 };
        host.begin();
        host
    }

    /// Configures a new engine as the supervisor would.
    fn begin(&mut self) {
        let anywhere = Place { cpu: None, dedicated: false };
        let topology: BTreeMap<String, Place> =
            components().into_iter().map(|name| (name, anywhere)).collect();
        let events = &mut self.around.events;
        events.clear();
        events.push_back(Event::Settings(Ok(self.settings.clone())));
        events.push_back(Event::Topology(Ok(topology)));
        events.push_back(Event::InForce(self.around.remembered.clone()));
        for name in components() {
            let Ok(peer) = name.parse() else { continue };
            let seat = self.around.world.plan().seats.get(&name);
            let place = seat.map_or(anywhere, |s| Place { cpu: Some(s.cpu), dedicated: s.dedicated });
            events.push_back(Event::Member(view(peer, place)));
        }
        events.push_back(Event::Begin);
        self.settle();
    }

    /// The engine dies, whatever it is doing, and a successor begins.
    pub fn kill(&mut self) {
        self.deaths += 1;
        self.server = newborn(self.deaths);
        self.begin();
    }

    /// The engine ends in order; nothing runs after it.
    pub fn end(&mut self) {
        self.around.events.push_back(Event::End);
        self.settle();
    }

    /// Runs turns until nothing is left to do now.
    fn settle(&mut self) {
        for _ in 0..TURNS_MAX {
            let events: Vec<Event> = self.around.events.drain(..).collect();
            let now = Instant(self.around.world.now_ns());
            let count = events.len();
            events.into_iter().for_each(|event| self.server.event(now, event));
            let step = self.server.step(&mut self.around, 64);
            if step.work + count == 0 && self.around.events.is_empty() {
                return;
            }
        }
        panic!("cores does not come to rest at {} ns", self.around.world.now_ns());
    }

    /// One turn; `false`: there was nothing to do.
    pub fn turn(&mut self) -> bool {
        let Some(event) = self.around.events.pop_front() else {
            return self.server.step(&mut self.around, 64).work > 0;
        };
        self.server.event(Instant(self.around.world.now_ns()), event);
        self.server.step(&mut self.around, 64);
        true
    }

    /// Lets time pass until something is due, at most until `end_ns`.
    pub fn wait(&mut self, end_ns: u64) {
        let deadline = eft_component::Component::deadline(self.server.component()).map(|at| at.0);
        let arrival = self.around.moving.iter().map(|(at_ns, ..)| *at_ns).min();
        let next_ns = deadline.into_iter().chain(arrival).min().unwrap_or(end_ns).min(end_ns);
        self.around.world.pass(next_ns.saturating_sub(self.around.world.now_ns()));
        self.around.arrive();
    }

    pub fn until(&mut self, end_ns: u64) {
        while self.around.world.now_ns() < end_ns {
            self.wait(end_ns);
            self.settle();
        }
    }

    pub fn world(&self) -> &World {
        &self.around.world
    }

    pub fn engine(&self) -> &Cores {
        self.server.component()
    }

    /// The policy at work.
    pub fn scheduler(&self) -> &Scheduler {
        self.engine().scheduler().unwrap_or_else(|| panic!("nothing decides: {:?}", self.around.complaints))
    }

    /// When the plan in force changed, without the initial plan.
    pub fn changed_ns(&self) -> &[u64] {
        &self.around.changed_ns
    }

    /// The engine's complaints.
    pub fn complaints(&self) -> &[String] {
        &self.around.complaints
    }
}

fn newborn(seed: u64) -> Server<Cores> {
    Server::new(Cores::default(), Status::heap(), seed)
}

fn view(peer: ComponentId, place: Place) -> MemberView {
    MemberView {
        peer,
        name: peer.to_string(),
        generation: 1,
        pid: None,
        running: true,
        cpu: place.cpu,
        dedicated: place.dedicated,
        alone: place.dedicated,
        moving: false,
    }
}
