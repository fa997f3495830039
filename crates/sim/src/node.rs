//! A server of any kind, as the schedule sees it, and what it needs from its world.

use eft_base::Instant;
use eft_channel::Memory;
use eft_channel::notify::{Doorbell, Wake};
use eft_channel::status::Status;
use eft_component::server::FRAME_COUNTERS;
use eft_component::{Component, Effect, Event, Port, Server, Step, World};
use eft_messages::Peer;

/// What a turn of a server does to the world.
#[derive(Default)]
pub struct Surroundings {
    pub now: Instant,
    /// Peers that were woken.
    pub woken: Vec<Peer>,
    pub effects: Vec<Effect>,
}

impl World for Surroundings {
    fn now(&mut self) -> Instant {
        self.now
    }

    fn wake(&mut self, peer: Peer, _: Wake, _: &Doorbell) {
        self.woken.push(peer);
    }

    fn perform(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}

/// A [`Server`] whose component is forgotten.
pub trait Node {
    fn step(&mut self, world: &mut Surroundings, budget: usize) -> Step;
    fn connect(&mut self, world: &mut Surroundings, port: Port);
    fn disconnect(&mut self, peer: Peer);
    fn event(&mut self, now: Instant, event: Event);
    fn has_message(&self) -> bool;
    fn memory(&mut self) -> &mut Memory;
    fn status(&self) -> &Status;
    /// Its counters, as they lie on the status page.
    fn counters(&self) -> Vec<&'static str>;
}

impl<C: Component> Node for Server<C> {
    fn step(&mut self, world: &mut Surroundings, budget: usize) -> Step {
        Server::step(self, world, budget)
    }

    fn connect(&mut self, world: &mut Surroundings, port: Port) {
        Server::connect(self, world, port)
    }

    fn disconnect(&mut self, peer: Peer) {
        Server::disconnect(self, peer)
    }

    fn event(&mut self, now: Instant, event: Event) {
        Server::event(self, now, event)
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
