//! One server: its control socket, its surroundings, and its [`Server::step`]. [`super::process`] decides which of a
//! process's servers has its turn.

use super::hosted::{Hosted, counters_of_bytes};
use super::live::Live;
use super::missing::MissingPools;
use super::park::{self, Sleeper};
use super::queues::{Neighbour, make_port};
use super::solitude::{Due, Solitude};
use super::{Domains, Setup, Surroundings, tell};
use crate::protocol::{FromServer, PACKET_MAX, ToServer};
use crate::{Doing, Result, memory, protocol, scm};
use eft_base::{DomainId, Instant, SocketId, protection};
use eft_channel::notify::Doorbell;
use eft_channel::status::Status;
use eft_channel::{PoolView, Shared};
use eft_component::server::counter;
use eft_component::{Component, FromWorld, Server, Step, World};
use eft_cores::member::Place;
use eft_host::clock;
use eft_messages::{ComponentId, Role};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The most messages taken from each peer in one turn.
pub const BUDGET: usize = 128;
/// Messages taken from the supervisor in one turn: one may bring the descriptors of 64 sockets.
const CONTROL_PER_TURN: usize = 8;

/// A server in its process.
struct Running<C: Component, S: Surroundings<C>> {
    peer: ComponentId,
    server: Server<C>,
    live: Live<C, S>,
    control: OwnedFd,
    bell: Shared<Doorbell>,
    bell_seen: u32,
    /// Present until the process's parking has taken it.
    eventfd: Option<OwnedFd>,
    /// Where it is to run first.
    wanted: Place,
    /// Where it runs.
    at: Place,
    domains: Domains,
    missing: MissingPools,
    /// The other servers of this process.
    company: Vec<ComponentId>,
    deadline: Option<Instant>,
    stop: bool,
    buffer: Vec<u8>,
    /// Domains that it has mapped before it was ready, of which nobody hears before that: it would wake the supervisor.
    mapped: Vec<DomainId>,
    is_ready: bool,
    solitude: Solitude,
}

/// Makes a server of a component; [`super::run`] runs it.
pub fn host<C: Component + 'static, S: Surroundings<C> + 'static>(
    setup: Setup,
    component: C,
    surroundings: S,
) -> Box<dyn Hosted> {
    let Setup { identity, control, status, bell, eventfd, .. } = setup;
    status.set_alone(false);
    Box::new(Running {
        peer: identity.peer,
        server: Server::new(component, status, identity.seed),
        live: Live::new(surroundings),
        control,
        // The supervisor may have sent something, and rung, before the bell was read for the first time: the first turn
        // reads the control socket in any case.
        bell_seen: bell.value().wrapping_sub(1),
        bell,
        eventfd: Some(eventfd),
        wanted: Place { cpu: identity.cpu, dedicated: identity.dedicated },
        at: Place { cpu: None, dedicated: identity.dedicated },
        domains: Domains::default(),
        missing: MissingPools::default(),
        company: Vec::new(),
        deadline: None,
        stop: false,
        buffer: vec![0; PACKET_MAX],
        mapped: Vec::new(),
        is_ready: false,
        solitude: Solitude::default(),
    })
}

impl<C: Component, S: Surroundings<C>> Hosted for Running<C, S> {
    fn peer(&self) -> ComponentId {
        self.peer
    }

    fn sleeper(&mut self) -> Result<Sleeper<'_>> {
        let eventfd =
            self.eventfd.take().ok_or_else(|| crate::Error::Protocol("the eventfd is taken".into()))?;
        Ok(Sleeper {
            status: self.server.status().clone(),
            eventfd,
            control: self.control.as_fd(),
            descriptors: self.live.surroundings.descriptors(),
            bytes: counters_of_bytes(C::COUNTERS),
        })
    }

    fn sleeps_on(&mut self, set: &Arc<OwnedFd>) {
        self.live.surroundings.sleeps_on(set);
    }

    fn settle(&mut self) {
        match park::place(self.wanted.cpu) {
            Ok(()) => self.at = self.wanted,
            // It is better to run somewhere than not at all.
            Err(reason) => {
                let placed =
                    FromServer::Placed { ticket: 0, place: self.at, refusal: Some(reason.to_string()) };
                tell(&self.control, &placed, &[]);
            }
        }
    }

    fn begin(&mut self, company: &[ComponentId], landlock: bool) -> Result<()> {
        self.company = company.to_vec();
        while !self.stop {
            let (n, fds) = scm::receive(&self.control, &mut self.buffer, false).doing("control socket")?;
            let Ok(message) = postcard::from_bytes::<ToServer>(&self.buffer[..n]) else {
                return Err(crate::Error::Protocol(
                    "the supervisor is gone or speaks another version".into(),
                ));
            };
            if matches!(message, ToServer::Run) {
                let landlock = self.live.surroundings.begin(self.server.component())? || landlock;
                tell(&self.control, &FromServer::Ready { landlock }, &[]);
                self.is_ready = true;
                for domain in std::mem::take(&mut self.mapped) {
                    tell(&self.control, &FromServer::HasDomain { domain }, &[]);
                }
                return Ok(());
            }
            self.handle(message, fds)?;
        }
        Ok(())
    }

    fn hear(&mut self, is_readable: bool) -> Result<()> {
        if self.solitude.has_begun() {
            self.leave(clock::now())?;
        }
        let rung = self.bell.value();
        if rung == self.bell_seen && !is_readable {
            return Ok(());
        }
        // Until all is taken, it is as if it had just rung.
        let took_all = self.take_control()?;
        self.bell_seen = if took_all { rung } else { rung.wrapping_sub(1) };
        Ok(())
    }

    fn turn(&mut self, ready: bool, budget: usize) -> usize {
        let events = self.take_events(ready);
        let step = self.server.step(&mut self.live, budget);
        self.has_stepped(&step);
        step.work + events
    }

    fn answer(&mut self, budget: usize) {
        let step = self.server.answer(&mut self.live, budget);
        self.has_stepped(&step);
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline.into_iter().chain(self.solitude.deadline()).min()
    }

    fn has_urgent_message(&self) -> bool {
        self.server.has_urgent_message()
    }

    fn has_urgent_work(&self) -> bool {
        self.server.has_urgent_message()
            || self.live.surroundings.pending()
            || self.bell.value() != self.bell_seen
    }

    fn has_work(&self) -> bool {
        self.has_urgent_work() || self.server.has_message()
    }

    fn bells(&self, watch: &mut dyn FnMut(&Shared<Doorbell>)) {
        watch(&self.bell);
        self.server.bells().for_each(&mut *watch);
        self.live.surroundings.bells(watch);
    }

    fn wants_device(&self) -> bool {
        self.server.component().wants_device()
    }

    fn is_dedicated(&self) -> bool {
        self.at.dedicated
    }

    fn status(&self) -> &Status {
        self.server.status()
    }

    fn tell_of_change(&self) {
        tell(&self.control, &FromServer::Altered, &[]);
    }

    fn hears_of_the_end(&self) -> bool {
        self.live.neighbours.values().any(|neighbour| neighbour.status.is_alone())
    }

    fn is_alone(&self) -> bool {
        self.solitude.has_begun()
    }

    fn has_ended(&self) -> bool {
        self.stop
    }

    fn end(&mut self) {
        let Some(event) = C::Event::end() else { return };
        self.take_events(true);
        self.server.event(clock::now(), event);
        loop {
            self.server.step(&mut self.live, BUDGET);
            if self.take_events(true) == 0 {
                return;
            }
        }
    }
}

impl<C: Component, S: Surroundings<C>> Running<C, S> {
    fn take_events(&mut self, ready: bool) -> usize {
        let now = self.live.now();
        let server = &mut self.server;
        let mut events = 0;
        self.live.surroundings.poll(ready, &mut |event| {
            events += 1;
            server.event(now, event);
        });
        events
    }

    fn has_stepped(&mut self, step: &Step) {
        for SocketId { domain, slot } in self.live.surroundings.lacking() {
            tell(&self.control, &FromServer::Lacks { domain, slot }, &[]);
        }
        if let Some(id) = self.missing.look(&self.server.memory, self.live.now) {
            tell(&self.control, &FromServer::LacksPool { id }, &[]);
        }
        let again = self.live.surroundings.end_turn();
        let calls = self.live.surroundings.take_calls();
        for (peer, queue) in self.live.accused.drain(..) {
            tell(&self.control, &FromServer::AccuseQueue { peer, queue }, &[]);
        }
        if calls > 0 {
            self.server.status().add(counter::DESCRIPTOR_CALLS, calls);
        }
        self.deadline = step.deadline.into_iter().chain(again).min();
    }

    /// Takes a few messages. True: there are no more.
    fn take_control(&mut self) -> Result<bool> {
        for _ in 0..CONTROL_PER_TURN {
            match scm::receive(&self.control, &mut self.buffer, true) {
                // It was told to end before.
                Ok((0, _)) if self.stop => return Ok(true),
                // To be alone ends every connection, so a misread packet must not be taken for that.
                Ok((0, _)) if !scm::is_over(&self.control) => {}
                Ok((0, _)) => {
                    let now = clock::now();
                    self.stop = !self.solitude.begin(now);
                    return self.leave(now).map(|()| true);
                }
                Ok((n, fds)) => {
                    if let Ok(message) = postcard::from_bytes::<ToServer>(&self.buffer[..n]) {
                        self.handle(message, fds)?;
                    }
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(true),
                Err(e) => return Err(e).doing("control socket"),
            }
        }
        Ok(false)
    }

    /// Does what is due of a server that nobody can start again: peers of connections are told, and so are neighbours, who may
    /// look later.
    fn leave(&mut self, now: Instant) -> Result<()> {
        match self.solitude.due(now) {
            Due::Nothing => {}
            Due::Word { farewell } => {
                self.server.status().set_alone(true);
                if farewell && self.peer.role == Role::Tcp {
                    self.handle(protocol::farewell(), Vec::new())?;
                }
                self.server.wake_peers(&mut self.live);
            }
            Due::End => self.stop = true,
        }
        Ok(())
    }

    /// Moves, or stays and says why: a server must survive that a CPU vanishes.
    fn move_to(&mut self, place: Place, ticket: u64) {
        let refusal = match park::place(place.cpu) {
            Ok(()) => {
                self.at = place;
                None
            }
            Err(reason) => Some(reason.to_string()),
        };
        tell(&self.control, &FromServer::Placed { ticket, place: self.at, refusal }, &[]);
    }

    fn handle(&mut self, message: ToServer, fds: Vec<OwnedFd>) -> Result<()> {
        let mut fds = fds.into_iter();
        let mut next = || fds.next().ok_or_else(|| crate::Error::Protocol("a descriptor is missing".into()));
        match message {
            ToServer::Pool { id, slot_size } => {
                let segment = memory::map(&next()?, false)?;
                let slots = segment.len() / slot_size.max(1);
                self.server.memory.insert(id, PoolView::new(segment, 0, slot_size, slots));
            }
            ToServer::DropPool { id } => {
                // A domain's goes with the domain.
                if !self.domains.uses(id) {
                    self.server.memory.remove(id);
                }
            }
            ToServer::Connect { peer } => {
                // What a predecessor had already said still counts. A newborn has heard nobody yet.
                if self.live.neighbours.contains_key(&peer) {
                    self.server.take_rest(&mut self.live);
                }
                let ours = memory::map(&next()?, true)?;
                let theirs = next()?;
                let queue = memory::number(&theirs)?;
                let theirs = memory::map(&theirs, false)?;
                let their_position = memory::map(&next()?, false)?;
                let our_position = memory::map(&next()?, true)?;
                let status = memory::map(&next()?, false)?;
                let status =
                    Status::new(status).map_err(|_| crate::Error::Protocol("bad status page".into()))?;
                let mut port = make_port(peer, &ours, &theirs, &their_position, &our_position, &status)?;
                self.live.neighbours.insert(peer, Neighbour { eventfd: next()?, queue, status });
                port.same_thread = self.company.contains(&peer);
                self.server.connect(&mut self.live, port);
            }
            ToServer::Disconnect { peer } => {
                self.server.take_rest(&mut self.live);
                self.server.disconnect(peer);
                // The supervisor has acted on the accusation.
                self.live.accused.retain(|(accused, _)| *accused != peer);
                self.live.neighbours.remove(&peer);
            }
            ToServer::Domain { domain, pool, shape, writable } => {
                let fd = next()?;
                let arena = self.domains.open(domain, pool, shape, &fd, writable)?;
                self.server.memory.insert(pool, arena.view());
                self.live.surroundings.domain_opened(domain, &arena, fd, next().ok());
                if writable && let Some(event) = C::Event::domain_opened(domain, pool, arena) {
                    self.server.event(clock::now(), event);
                }
                match self.is_ready {
                    true => tell(&self.control, &FromServer::HasDomain { domain }, &[]),
                    false => self.mapped.push(domain),
                }
            }
            ToServer::DomainClosed { domain } => {
                if let Some(pool) = self.domains.close(domain) {
                    self.server.memory.remove(pool);
                }
                self.live.surroundings.domain_closed(domain);
            }
            ToServer::Configure { key, value } => {
                protection::heed(&key, &value);
                self.live.surroundings.configure(&key, &value);
                if let Some(event) = C::Event::configure(key, value) {
                    self.server.event(clock::now(), event);
                }
            }
            ToServer::Place { place, ticket } => self.move_to(place, ticket),
            ToServer::Stop => self.stop = true,
            ToServer::Kept => self.solitude.is_kept(),
            ToServer::Inject { fault, skip } => self.server.inject(fault, skip),
            other => {
                let server = &mut self.server;
                let now = clock::now();
                self.live.surroundings.control(other, fds.collect(), &mut |event| server.event(now, event));
            }
        }
        Ok(())
    }
}
