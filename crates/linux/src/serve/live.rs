//! What the server loop needs from Linux.

use super::Surroundings;
use super::queues::Neighbour;
use crate::futex;
use eft_base::Instant;
use eft_channel::notify::{Doorbell, Wake};
use eft_component::{Component, World};
use eft_host::clock;
use eft_messages::ComponentId;
use std::collections::HashMap;
use std::marker::PhantomData;

/// The world of a server.
pub struct Live<C, S> {
    pub surroundings: S,
    component: PhantomData<C>,
    pub neighbours: HashMap<ComponentId, Neighbour>,
    pub now: Instant,
    /// Neighbours that are to be accused before the supervisor, and their queues.
    pub accused: Vec<(ComponentId, u64)>,
}

impl<C, S> Live<C, S> {
    pub fn new(surroundings: S) -> Live<C, S> {
        Live {
            surroundings,
            component: PhantomData,
            neighbours: HashMap::new(),
            now: clock::now(),
            accused: Vec::new(),
        }
    }
}

impl<C: Component, S: Surroundings<C>> World for Live<C, S> {
    type Effect = C::Effect;

    fn now(&mut self) -> Instant {
        self.now = clock::now();
        self.now
    }

    fn wake(&mut self, peer: ComponentId, how: Wake, doorbell: &Doorbell) {
        match how {
            Wake::None => {}
            Wake::Futex => futex::wake(doorbell.word()),
            Wake::Descriptor => {
                if let Some(neighbour) = self.neighbours.get(&peer) {
                    let _ = rustix::io::write(&neighbour.eventfd, &1u64.to_ne_bytes());
                }
            }
        }
    }

    fn perform(&mut self, effect: C::Effect) {
        self.surroundings.perform(effect);
    }

    fn accuse(&mut self, peer: ComponentId) {
        self.accused.extend(self.neighbours.get(&peer).map(|neighbour| (peer, neighbour.queue)));
    }
}
