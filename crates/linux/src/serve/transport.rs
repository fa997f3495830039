//! The surroundings of tcp and udp: applications that ring, and the far ends of their descriptors.

use super::{Surroundings, park};
use crate::descriptors::{FarEnds, is_far_end};
use crate::protocol::ToServer;
use eft_base::{ComponentId, DomainId, Instant, SocketId};
use eft_channel::Shared;
use eft_channel::dirty::Dirty;
use eft_channel::notify::Doorbell;
use eft_channel::socket::Arena;
use eft_component::Component;
use eft_component::transport::{Effect, Event};
use eft_host::clock;
use rustix::event::epoll;
use std::os::fd::OwnedFd;
use std::sync::Arc;

struct Domain {
    id: DomainId,
    arena: Arena,
    dirty: Dirty,
    /// Where the search for marked slots continues.
    searched: usize,
    bell: Shared<Doorbell>,
    /// In the set on which the process sleeps, if it sleeps on descriptors.
    eventfd: Option<OwnedFd>,
}

/// The applications of one transport.
pub struct TransportSurroundings {
    transport: ComponentId,
    domains: Vec<Domain>,
    /// The index of the domain whose marks are taken first.
    first: usize,
    far: FarEnds,
    set: Option<Arc<OwnedFd>>,
}

/// The most marks taken in one turn, however many sockets are marked; up to a word's worth more.
const MARKS_PER_TURN: usize = 256;
/// Far ends brought in line with their sockets in one turn, beside those where there is something to tell: what arrives meanwhile
/// waits.
const FAR_PER_TURN: usize = 16;

impl TransportSurroundings {
    pub fn new(transport: ComponentId) -> Self {
        TransportSurroundings { transport, domains: Vec::new(), first: 0, far: FarEnds::default(), set: None }
    }
}

impl TransportSurroundings {
    /// Emits events for the sockets that programs have changed. Those whose token is missing go to `wanted`.
    fn take_marks(&mut self, wanted: &mut Vec<SocketId>, emit: &mut dyn FnMut(Event)) {
        let count = self.domains.len();
        let mut left = MARKS_PER_TURN;
        for i in (self.first..).take(count) {
            let f = &mut self.domains[i % count];
            let id = f.id;
            let arena = &f.arena;
            let taken = f.dirty.take(left, &mut f.searched, |slot| {
                let socket = SocketId { domain: id, slot: slot as u32 };
                if arena.sleepers(socket.slot).is_some_and(|sleepers| sleepers.take_wanted()) {
                    wanted.push(socket);
                }
                emit(Event::Dirty(socket));
            });
            left = left.saturating_sub(taken);
            if left == 0 {
                self.first = (i + 1) % count;
                return;
            }
        }
    }
}

impl<C: Component<Event = Event, Effect = Effect>> Surroundings<C> for TransportSurroundings {
    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Readable(s) => self.far.readable(s),
            Effect::Writable(s) => self.far.writable(s),
            Effect::EndOfStream(s) => self.far.end_of_stream(s),
            Effect::HangUp(s) => self.far.hang_up(s),
            Effect::Urgent(s) => self.far.urgent(s),
        }
    }

    fn poll(&mut self, _ready: bool, emit: &mut dyn FnMut(Event)) {
        if self.far.owes() {
            self.far.settle();
        }
        if self.far.has_new() {
            self.far.take_up(FAR_PER_TURN, |socket| emit(Event::Dirty(socket)));
        }
        self.far.check_handed(clock::now);
        let mut wanted = Vec::new();
        self.take_marks(&mut wanted, emit);
        wanted.into_iter().for_each(|socket| self.far.readable(socket));
    }

    fn end_turn(&mut self) -> Option<Instant> {
        self.far.wake_readers(clock::now).into_iter().chain(self.far.lacking_deadline()).min()
    }

    fn pending(&self) -> bool {
        self.far.owes() || self.far.has_new() || self.domains.iter().any(|f| f.dirty.any())
    }

    fn bells(&self, watch: &mut dyn FnMut(&Shared<Doorbell>)) {
        for f in &self.domains {
            watch(&f.bell);
        }
    }

    fn sleeps_on(&mut self, set: &Arc<OwnedFd>) {
        self.set = Some(set.clone());
    }

    fn domain_opened(&mut self, domain: DomainId, arena: &Arena, _fd: OwnedFd, bell: Option<OwnedFd>) {
        self.domains.retain(|f| f.id != domain);
        self.far.add_domain(domain, arena);
        if let (Some(set), Some(bell)) = (&self.set, &bell) {
            let token = epoll::EventData::new_u64(park::EVENTFD);
            let _ = epoll::add(set, bell, token, epoll::EventFlags::IN | epoll::EventFlags::ET);
        }
        self.domains.push(Domain {
            id: domain,
            arena: arena.clone(),
            dirty: arena.dirty(self.transport),
            searched: 0,
            bell: arena.doorbell(self.transport),
            eventfd: bell,
        });
    }

    fn domain_closed(&mut self, domain: DomainId) {
        for f in self.domains.extract_if(.., |f| f.id == domain) {
            // Its programs may still hold the eventfd, and could wake this server for nothing.
            if let (Some(set), Some(bell)) = (&self.set, &f.eventfd) {
                let _ = epoll::delete(set, bell);
            }
        }
        self.far.remove_domain(domain);
    }

    fn control(&mut self, message: ToServer, fds: Vec<OwnedFd>, _emit: &mut dyn FnMut(Event)) {
        match message {
            ToServer::Far { domain, slots, .. } => {
                let Some(f) = self.domains.iter().find(|f| f.id == domain) else { return };
                // What is none was misread on its way, and is asked for again.
                for (slot, fd) in slots.into_iter().zip(fds).filter(|(_, fd)| is_far_end(fd)) {
                    self.far.insert(SocketId { domain, slot }, fd, &f.arena);
                }
            }
            ToServer::DropFar { domain, slot } => self.far.drop_all(SocketId { domain, slot }),
            ToServer::Owner { domain, slot, is_new } => {
                if let Some(bell) = fds.into_iter().next() {
                    self.far.set_owner(SocketId { domain, slot }, bell, is_new);
                }
            }
            _ => {}
        }
    }

    fn lacking(&mut self) -> Vec<SocketId> {
        self.far.lacking(clock::now)
    }

    fn take_calls(&mut self) -> u64 {
        std::mem::take(&mut self.far.calls)
    }
}
