//! One server, live: set-up by the supervisor, then the loop until it ends.
//!
//! The loop: control messages if the supervisor rang, news from the surroundings (applications), one
//! [`Server::step`], and a sleep when there was nothing to do. All decisions are the engine's.

mod applications;
mod cores;
mod park;
mod setup;
mod surroundings;
mod transport;

pub use applications::Applications;
pub use cores::CoresSurroundings;
pub use setup::{Setup, Versions};
pub use surroundings::{Answering, Families, Plain, Surroundings};
pub use transport::TransportSurroundings;

use crate::protocol::{FromServer, PACKET_MAX, ToServer};
use crate::{Doing, Result, futex, memory, scm};
use eft_base::Instant;
use eft_channel::notify::{Doorbell, Wake};
use eft_channel::queue::{Inspection, Line, Position};
use eft_channel::status::Status;
use eft_channel::{Consumer, PoolView, Producer, Segment, Shared};
use eft_component::server::counter;
use eft_component::{Component, FromWorld, Port, Server, World};
use eft_cores::member::Place;
use eft_host::clock;
use eft_messages::ComponentId;
use park::Parking;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};

/// Messages taken from each peer in one turn.
const BUDGET: usize = 128;

/// Where the doorbell lies in a queue segment, and where its lines begin.
pub const QUEUE_LINES: usize = 4096;

/// What the server loop needs from Linux.
struct Live<C, S> {
    surroundings: S,
    component: PhantomData<C>,
    eventfds: HashMap<ComponentId, OwnedFd>,
    now: Instant,
    /// Neighbours that the supervisor is to be told of.
    accused: Vec<ComponentId>,
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
                if let Some(fd) = self.eventfds.get(&peer) {
                    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
                }
            }
        }
    }

    fn perform(&mut self, effect: C::Effect) {
        self.surroundings.perform(effect);
    }

    fn accuse(&mut self, peer: ComponentId) {
        self.accused.push(peer);
    }
}

/// A server in its process.
struct Running<C: Component, S: Surroundings<C>> {
    server: Server<C>,
    live: Live<C, S>,
    control: OwnedFd,
    bell: Shared<Doorbell>,
    bell_seen: u32,
    parking: Parking,
    /// Where it runs.
    at: Place,
    families: Families,
    /// In force.
    landlock: bool,
    stop: bool,
    buffer: Vec<u8>,
}

/// Runs a component until the supervisor stops it.
pub fn run<C: Component, S: Surroundings<C>>(setup: Setup, component: C, surroundings: S) -> Result<()> {
    let Setup { identity, control, status, bell, eventfd, .. } = setup;
    let parking =
        Parking::new(status.clone(), eventfd, &control, identity.dedicated, &surroundings.descriptors())?;
    let refused = park::place(identity.cpu).err();
    let at = Place { cpu: identity.cpu.filter(|_| refused.is_none()), dedicated: identity.dedicated };
    if let Some(reason) = refused {
        // A server that runs somewhere is better than none.
        tell(&control, &FromServer::Placed { ticket: 0, place: at, refusal: Some(reason.0) }, &[]);
    }
    let mut surroundings = surroundings;
    let landlock = surroundings.confine()?;
    let mut running = Running {
        server: Server::new(component, status, identity.seed),
        live: Live {
            surroundings,
            component: PhantomData,
            eventfds: HashMap::new(),
            now: clock::now(),
            accused: Vec::new(),
        },
        control,
        // Something may have been sent, and rung for, before we looked at the bell for the first time:
        // the first turn looks at the control socket in any case.
        bell_seen: bell.value().wrapping_sub(1),
        bell,
        parking,
        at,
        families: Families::default(),
        landlock,
        stop: false,
        buffer: vec![0; PACKET_MAX],
    };
    running.wait_for_run()?;
    running.run()?;
    running.end();
    Ok(())
}

impl<C: Component, S: Surroundings<C>> Running<C, S> {
    fn wait_for_run(&mut self) -> Result<()> {
        loop {
            let (n, fds) = scm::receive(&self.control, &mut self.buffer, false).doing("control socket")?;
            let Ok(message) = postcard::from_bytes::<ToServer>(&self.buffer[..n]) else {
                return Err(crate::Error("the supervisor is gone or speaks another version".into()));
            };
            if matches!(message, ToServer::Run) {
                self.live.surroundings.begin(self.server.component())?;
                tell(&self.control, &FromServer::Ready { landlock: self.landlock }, &[]);
                return Ok(());
            }
            self.handle(message, fds)?;
            if self.stop {
                return Ok(());
            }
        }
    }

    fn run(&mut self) -> Result<()> {
        while !self.stop {
            let rung = self.bell.value();
            if rung != self.bell_seen || self.parking.control_is_readable() {
                self.bell_seen = rung;
                self.take_control()?;
                if self.stop {
                    // Now, and not after the next sleep, which nobody would end.
                    return Ok(());
                }
            }
            let news = self.take_news();
            let step = self.server.step(&mut self.live, BUDGET);
            let calls = self.live.surroundings.take_calls();
            for peer in self.live.accused.drain(..) {
                tell(&self.control, &FromServer::Accuse { peer }, &[]);
            }
            if calls > 0 {
                self.server.status().add(counter::DESCRIPTOR_CALLS, calls);
            }
            if step.work + news == 0 {
                self.park(step.deadline);
            }
        }
        Ok(())
    }

    fn take_news(&mut self) -> usize {
        let now = self.live.now();
        let server = &mut self.server;
        let mut news = 0;
        self.live.surroundings.poll(&self.parking, &mut |event| {
            news += 1;
            server.event(now, event);
        });
        news
    }

    /// What the engine still wants done is done.
    fn end(&mut self) {
        let Some(event) = C::Event::end() else { return };
        self.take_news();
        self.server.event(clock::now(), event);
        loop {
            self.server.step(&mut self.live, BUDGET);
            if self.take_news() == 0 {
                return;
            }
        }
    }

    /// Announces the sleep, looks once more, sleeps.
    fn park(&mut self, deadline: Option<Instant>) {
        let server = &self.server;
        self.parking.watch_devices(server.component().wants_device());
        let surroundings = &self.live.surroundings;
        let (bell, seen) = (&self.bell, self.bell_seen);
        let slept = self.parking.park(
            deadline,
            |watch| {
                watch(bell);
                server.bells().for_each(&mut *watch);
                surroundings.bells(watch);
            },
            || server.has_message() || surroundings.pending() || bell.value() != seen,
        );
        if slept {
            self.server.status().add(counter::SLEEPS, 1);
        }
    }

    fn take_control(&mut self) -> Result<()> {
        loop {
            match scm::receive(&self.control, &mut self.buffer, true) {
                Ok((0, _)) => {
                    // The supervisor is gone; without it nobody would restart or stop us.
                    self.stop = true;
                    return Ok(());
                }
                Ok((n, fds)) => {
                    if let Ok(message) = postcard::from_bytes::<ToServer>(&self.buffer[..n]) {
                        self.handle(message, fds)?;
                    }
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(e) => return Err(e).doing("control socket"),
            }
        }
    }

    /// Moves, or stays and says why: a CPU that vanished must not cost a server.
    fn move_to(&mut self, place: Place, ticket: u64) {
        let refusal = match park::place(place.cpu) {
            Ok(()) => {
                self.parking.set_dedicated(place.dedicated);
                self.at = place;
                None
            }
            Err(reason) => Some(reason.0),
        };
        tell(&self.control, &FromServer::Placed { ticket, place: self.at, refusal }, &[]);
    }

    fn handle(&mut self, message: ToServer, fds: Vec<OwnedFd>) -> Result<()> {
        let mut fds = fds.into_iter();
        let mut next = || fds.next().ok_or_else(|| crate::Error("a descriptor is missing".into()));
        match message {
            ToServer::Pool { id, slot_size } => {
                let segment = memory::map(&next()?, false)?;
                let slots = segment.len() / slot_size.max(1);
                self.server.memory.insert(id, PoolView { segment, base: 0, slot_size, slots });
            }
            ToServer::DropPool { id } => {
                self.server.memory.remove(id);
            }
            ToServer::Connect { peer } => {
                // What a predecessor had already said still counts.
                self.server.take_rest(&mut self.live);
                let ours = memory::map(&next()?, true)?;
                let theirs = memory::map(&next()?, false)?;
                let their_position = memory::map(&next()?, false)?;
                let our_position = memory::map(&next()?, true)?;
                let status = memory::map(&next()?, false)?;
                self.live.eventfds.insert(peer, next()?);
                let port = make_port(peer, &ours, &theirs, &their_position, &our_position, status)?;
                self.server.connect(&mut self.live, port);
            }
            ToServer::Disconnect { peer } => {
                self.server.take_rest(&mut self.live);
                self.server.disconnect(peer);
                // What was to be done about it is done.
                self.live.accused.retain(|accused| *accused != peer);
                self.live.eventfds.remove(&peer);
            }
            ToServer::Family { family, pool, shape, writable } => {
                let fd = next()?;
                let arena = self.families.open(family, pool, shape, &fd, writable)?;
                self.server.memory.insert(pool, arena.view());
                self.live.surroundings.family_opened(family, &arena, fd);
                if writable && let Some(event) = C::Event::family_opened(family, pool, arena) {
                    self.server.event(clock::now(), event);
                }
                tell(&self.control, &FromServer::HasFamily { family }, &[]);
            }
            ToServer::FamilyClosed { family } => {
                if let Some(pool) = self.families.close(family) {
                    self.server.memory.remove(pool);
                }
                self.live.surroundings.family_closed(family);
            }
            ToServer::Configure { key, value } => {
                if let Some(event) = C::Event::configure(key, value) {
                    self.server.event(clock::now(), event);
                }
            }
            ToServer::Place { place, ticket } => self.move_to(place, ticket),
            ToServer::Stop => self.stop = true,
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

/// The bytes of a queue segment of `capacity` messages.
pub fn queue_len(capacity: usize) -> usize {
    QUEUE_LINES + capacity * size_of::<Line>()
}

fn lines(s: &Segment) -> Result<Shared<[Line]>> {
    // Nobody can choose these sizes but the supervisor, who made and sealed the segments.
    let count = (s.len() - QUEUE_LINES) / size_of::<Line>();
    // SAFETY: Line is made of atomics.
    unsafe { s.shared_slice::<Line>(QUEUE_LINES, count) }
        .map_err(|_| crate::Error("bad queue segment".into()))
}

fn position(s: &Segment) -> Result<Shared<Position>> {
    // SAFETY: Position is one atomic.
    unsafe { s.shared::<Position>(0) }.map_err(|_| crate::Error("bad position segment".into()))
}

/// A queue for who only looks at it.
pub(crate) fn inspect_queue(written: &Segment, taken: &Segment) -> Result<Inspection> {
    Ok(Inspection::new(lines(written)?, position(taken)?))
}

fn make_port(
    peer: ComponentId,
    ours: &Segment,
    theirs: &Segment,
    their_position: &Segment,
    our_position: &Segment,
    status: Segment,
) -> Result<Port> {
    let bad = |_| crate::Error(format!("queue with {peer}: bad segment"));
    // SAFETY: Doorbell is one atomic.
    let bell = |s: &Segment| unsafe { s.shared::<Doorbell>(0) }.map_err(bad);
    Ok(Port {
        peer,
        producer: Producer::new(lines(ours)?, position(their_position)?),
        consumer: Consumer::new(lines(theirs)?, position(our_position)?),
        doorbell: bell(ours)?,
        incoming: bell(theirs)?,
        peer_state: Status::new(status).map_err(bad)?.state(),
    })
}

/// Sends a message to the supervisor; a full queue is waited for, since set-up messages are few.
pub(crate) fn tell(control: &OwnedFd, message: &FromServer, fds: &[&OwnedFd]) {
    let fds: Vec<_> = fds.iter().map(|f| f.as_fd()).collect();
    let _ = scm::send(control, &crate::protocol::encode(message), &fds, false);
}
