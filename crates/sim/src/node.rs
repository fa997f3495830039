//! A server of any kind, as the schedule sees it, and its surroundings.

use eft_base::{DomainId, Instant, PoolId};
use eft_channel::Memory;
use eft_channel::notify::{Doorbell, Wake};
use eft_channel::socket::Arena;
use eft_channel::status::Status;
use eft_component::fault::Fault;
use eft_component::server::{Budget, FRAME_COUNTERS};
use eft_component::sockets::ConnectionId;
use eft_component::{Answer, Component, Configure, FromWorld, Port, Server, Step, World, sockets, transport};
use eft_messages::ComponentId;
use eft_transport::Fuse;
use std::convert::Infallible;
use std::marker::PhantomData;

/// The effects of all engines of a stack.
#[derive(Debug)]
pub enum Effect {
    Transport(transport::Effect),
    Sockets(sockets::Effect),
    /// Of the filter or ip.
    Answer(Answer),
}

impl Effect {
    /// Whether it is for the program that has this domain and this connection to sockets.
    pub fn is_for(&self, domain: DomainId, connection: ConnectionId) -> bool {
        use {sockets::Effect as S, transport::Effect as T};
        match self {
            Effect::Transport(
                T::Readable(s) | T::Writable(s) | T::EndOfStream(s) | T::HangUp(s) | T::Urgent(s),
            ) => s.domain == domain,
            Effect::Sockets(S::Reply { connection: of, .. } | S::Shadow { connection: of, .. }) => {
                *of == connection
            }
            Effect::Sockets(_) | Effect::Answer(_) => false,
        }
    }
}

impl From<transport::Effect> for Effect {
    fn from(effect: transport::Effect) -> Effect {
        Effect::Transport(effect)
    }
}

impl From<sockets::Effect> for Effect {
    fn from(effect: sockets::Effect) -> Effect {
        Effect::Sockets(effect)
    }
}

impl From<Answer> for Effect {
    fn from(answer: Answer) -> Effect {
        Effect::Answer(answer)
    }
}

impl From<Infallible> for Effect {
    fn from(never: Infallible) -> Effect {
        match never {}
    }
}

/// The events of all engines of a stack.
pub enum Event {
    /// The same for all engines that receive it.
    Configure {
        key: String,
        value: Vec<u8>,
    },
    DomainOpened {
        domain: DomainId,
        pool: PoolId,
        arena: Arena,
    },
    /// To one kind of engine.
    Transport(transport::Event),
    Sockets(sockets::Event),
}

/// Events of an engine of a stack.
pub trait Hears: FromWorld {
    /// Events for this kind of engine only.
    fn own(_event: Event) -> Option<Self> {
        None
    }

    /// `None`: the engine does not receive such events.
    fn hear(event: Event) -> Option<Self> {
        match event {
            Event::Configure { key, value } => Self::configure(key, value),
            Event::DomainOpened { domain, pool, arena } => Self::domain_opened(domain, pool, arena),
            event => Self::own(event),
        }
    }
}

impl Hears for transport::Event {
    fn own(event: Event) -> Option<Self> {
        match event {
            Event::Transport(event) => Some(event),
            _ => None,
        }
    }
}

impl Hears for sockets::Event {
    fn own(event: Event) -> Option<Self> {
        match event {
            Event::Sockets(event) => Some(event),
            _ => None,
        }
    }
}

impl Hears for Configure {}

impl Hears for Infallible {}

/// The results of a server's turn outside of the server.
#[derive(Default)]
pub struct Surroundings {
    pub now: Instant,
    /// Peers that were woken.
    pub woken: Vec<ComponentId>,
    pub effects: Vec<Effect>,
    /// Peers that were accused.
    pub accused: Vec<ComponentId>,
    /// Of the server whose turn it is.
    pub fuse: Fuse,
}

/// The surroundings of a server whose effects are `E`.
struct Around<'a, E>(&'a mut Surroundings, PhantomData<E>);

impl<E: Into<Effect>> World for Around<'_, E> {
    type Effect = E;

    fn now(&mut self) -> Instant {
        self.0.now
    }

    fn wake(&mut self, peer: ComponentId, _: Wake, _: &Doorbell) {
        self.0.fuse.burn();
        self.0.woken.push(peer);
    }

    fn sends(&mut self) {
        self.0.fuse.burn();
    }

    fn perform(&mut self, effect: E) {
        self.0.fuse.burn();
        self.0.effects.push(effect.into());
    }

    fn accuse(&mut self, peer: ComponentId) {
        self.0.accused.push(peer);
    }
}

/// A [`Server`] whose component is forgotten.
pub trait Node {
    fn step(&mut self, world: &mut Surroundings, budget: &dyn Budget) -> Step;
    /// See [`Server::take_rest`].
    fn take_rest(&mut self, world: &mut Surroundings);
    fn connect(&mut self, world: &mut Surroundings, port: Port);
    fn disconnect(&mut self, peer: ComponentId);
    fn event(&mut self, now: Instant, event: Event);
    /// See [`Server::inject`].
    fn inject(&mut self, fault: Fault, skip: u32);
    fn disarm(&mut self);
    fn has_message(&self) -> bool;
    fn memory(&mut self) -> &mut Memory;
    fn status(&self) -> &Status;
    /// Its counters, as they lie on the status page.
    fn counters(&self) -> Vec<&'static str>;
}

impl<C: Component<Event: Hears, Effect: Into<Effect>>> Node for Server<C> {
    fn step(&mut self, world: &mut Surroundings, budget: &dyn Budget) -> Step {
        Server::step(self, &mut Around(world, PhantomData), budget)
    }

    fn take_rest(&mut self, world: &mut Surroundings) {
        Server::take_rest(self, &mut Around(world, PhantomData))
    }

    fn connect(&mut self, world: &mut Surroundings, port: Port) {
        Server::connect(self, &mut Around(world, PhantomData), port)
    }

    fn disconnect(&mut self, peer: ComponentId) {
        Server::disconnect(self, peer)
    }

    fn event(&mut self, now: Instant, event: Event) {
        let event = C::Event::hear(event).expect("an event of this component");
        Server::event(self, now, event)
    }

    fn inject(&mut self, fault: Fault, skip: u32) {
        Server::inject(self, fault, skip)
    }

    fn disarm(&mut self) {
        Server::disarm(self)
    }

    fn has_message(&self) -> bool {
        Server::has_message(self)
    }

    fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    fn status(&self) -> &Status {
        Server::status(self)
    }

    fn counters(&self) -> Vec<&'static str> {
        FRAME_COUNTERS.iter().chain(C::COUNTERS).copied().collect()
    }
}
