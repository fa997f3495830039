//! The one loop: takes a batch, runs the engine, publishes, says when it wants to run again.
//!
//! Live, a thread calls [`Server::step`] with a real clock and parks between turns; simulated, a
//! seeded schedule calls it. The channel code under it is the same.

mod publish;
mod quiet;

pub use crate::frame_counters::{FRAME_COUNTERS, counter};

use crate::component::{Component, Context, Occasion};
use crate::fault::{Armed, Fault};
use crate::suspicion::Suspicion;
use crate::{Outbox, World};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use eft_base::{Instant, Random, protection};
use eft_channel::account::{Marks, Phase, QueueAccount};
use eft_channel::notify::{Doorbell, Ringer, StateWord};
use eft_channel::queue::Seen;
use eft_channel::status::Status;
use eft_channel::{Consumer, Memory, Producer, Shared};
use eft_messages::{ComponentId, Encoded};

/// Both directions of an edge, as one side sees it.
pub struct Port {
    pub peer: ComponentId,
    pub consumer: Consumer,
    pub producer: Producer,
    /// Our bell at the peer: lies in our queue segment.
    pub doorbell: Shared<Doorbell>,
    /// How the peer sleeps: lies in its status page.
    pub peer_state: Shared<StateWord>,
    /// The peer's bell at us, to sleep on.
    pub incoming: Shared<Doorbell>,
    /// The peer runs in the same thread: it checks its queues before that thread sleeps, so it need not be woken.
    pub same_thread: bool,
}

/// How much a turn takes at most. Live, a number for all alike.
pub trait Budget {
    fn messages(&self, from: ComponentId) -> usize;
    /// Of devices.
    fn polled(&self) -> usize;
}

impl Budget for usize {
    fn messages(&self, _from: ComponentId) -> usize {
        *self
    }

    fn polled(&self) -> usize {
        *self
    }
}

impl<B: Budget + ?Sized> Budget for &B {
    fn messages(&self, from: ComponentId) -> usize {
        (**self).messages(from)
    }

    fn polled(&self) -> usize {
        (**self).polled()
    }
}

/// What a turn comprises.
enum Extent {
    /// Messages, devices and deadlines.
    All,
    /// Messages alone.
    Messages,
    /// Also what lies behind a line that is not a message.
    Rest,
}

struct Connected {
    port: Port,
    ringer: Ringer,
    /// Messages that did not fit. Engines check for room first, so this stays short.
    backlog: VecDeque<Encoded>,
    /// Something urgent was pushed since the last ring.
    unrung: bool,
    /// Receipts pushed since the last ring.
    quiet: usize,
    /// What the peer's bell showed when all was taken that it had rung for.
    heard: u32,
    /// The account of the queue toward us.
    queue: QueueAccount,
    suspicion: Suspicion,
}

impl Connected {
    fn has_message(&self) -> bool {
        self.port.consumer.has_message() && !self.suspicion.nonsense || !self.backlog.is_empty()
    }
}

/// Receipts that may wait for a sleeping peer, and how long: both far below what would run a pool or
/// a send ring dry.
const QUIET_MAX: usize = 32;
const QUIET_TIME: Duration = Duration::from_micros(500);

/// Lateness from which a server reports that it gets too little time: above what timers and wakes take on an idle machine,
/// below a time slice of another thread.
const LATE: Duration = Duration::from_millis(2);

/// What a turn did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Messages, events and device work handled.
    pub work: usize,
    /// When to run again at the latest.
    pub deadline: Option<Instant>,
}

/// A component in its loop.
pub struct Server<C: Component> {
    component: C,
    ports: Vec<Connected>,
    out: Outbox<C::Out>,
    pub memory: Memory,
    status: Status,
    random: Random,
    /// Something happened outside `step` (an event, a rebirth): flush in the next one.
    touched: bool,
    /// When receipts that woke no peer are rung after all.
    quiet_until: Option<Instant>,
    /// The account in the status page was opened by this server.
    accounting: bool,
    /// When the last turn began, and when the next one was due.
    last_turn: Instant,
    due: Option<Instant>,
    receiver_behind: bool,
    fault: Option<Box<Armed>>,
}

impl<C: Component> Server<C> {
    pub fn new(component: C, status: Status, seed: u64) -> Self {
        Server {
            component,
            ports: Vec::new(),
            out: Outbox::new(),
            memory: Memory::new(),
            status,
            random: Random::new(seed),
            touched: false,
            quiet_until: None,
            accounting: false,
            last_turn: Instant(0),
            due: None,
            receiver_behind: false,
            fault: None,
        }
    }

    /// Lets `skip` messages pass and breaks the next one. A fault that was armed before and has not struck is forgotten; while
    /// a message is held back, no new fault is armed.
    pub fn inject(&mut self, fault: Fault, skip: u32) {
        if self.fault.as_ref().is_some_and(|armed| armed.deadline().is_some()) {
            return;
        }
        self.fault = Some(Box::new(Armed::new(fault, skip, self.random.next_u64())));
    }

    /// Forgets a fault that has not struck.
    pub fn disarm(&mut self) {
        self.fault.take_if(|armed| armed.deadline().is_none());
    }

    /// The first call of a server opens its account.
    fn account_from(&mut self, now: Instant) {
        if !self.accounting {
            self.accounting = true;
            self.last_turn = now;
            self.status.account().open(now);
        }
    }

    pub fn component(&self) -> &C {
        &self.component
    }

    pub fn component_mut(&mut self) -> &mut C {
        &mut self.component
    }

    pub fn status(&self) -> &Status {
        &self.status
    }

    /// The engine alone. It does not survive a simulated crash; the arena does.
    pub fn into_component(self) -> C {
        self.component
    }

    /// Connects a peer, replacing its dead predecessor, and tells the engine.
    pub fn connect(&mut self, world: &mut impl World<Effect = C::Effect>, port: Port) {
        let peer = port.peer;
        let now = world.now();
        self.account_from(now);
        let connected = Connected {
            queue: self.status.account().queue(peer.code(), port.consumer.capacity()),
            heard: port.incoming.value().wrapping_sub(1),
            port,
            ringer: Ringer::default(),
            backlog: VecDeque::new(),
            unrung: false,
            quiet: 0,
            suspicion: Suspicion::default(),
        };
        match self.ports.iter_mut().find(|c| c.port.peer == peer) {
            Some(old) => *old = connected,
            None => self.ports.push(connected),
        }
        self.status.add(counter::PEERS_REBORN, 1);
        self.refresh_room();
        let mut cx = Context { now, random: &mut self.random, memory: &self.memory, status: &self.status };
        self.component.begin(Occasion::Reborn(peer));
        self.component.peer_reborn(&mut cx, peer, &mut self.out);
        self.component.commit(&mut cx);
        self.check();
        self.touched = true;
        self.publish(world);
    }

    fn check(&self) {
        if protection::is_on() {
            self.component.check();
        }
    }

    /// A peer died: nothing is sent to it until its successor is connected. What it had already sent
    /// is still delivered first.
    pub fn disconnect(&mut self, peer: ComponentId) {
        self.ports.retain(|c| c.port.peer != peer);
        self.out.remove_peer(peer);
    }

    /// Hands an event to the engine. Its outputs leave with the next [`Server::step`].
    pub fn event(&mut self, now: Instant, event: C::Event) {
        self.account_from(now);
        self.refresh_room();
        let mut cx = Context { now, random: &mut self.random, memory: &self.memory, status: &self.status };
        self.component.begin(Occasion::Event(&event));
        self.component.event(&mut cx, event, &mut self.out);
        self.status.advance();
        self.touched = true;
    }

    /// A peer is dead or has a successor: takes all that it sent, also behind a line that is not a message.
    pub fn take_rest(&mut self, world: &mut impl World<Effect = C::Effect>) {
        self.turn(world, usize::MAX, Extent::Rest);
    }

    /// One turn: at most `budget` messages per peer.
    pub fn step(&mut self, world: &mut impl World<Effect = C::Effect>, budget: impl Budget) -> Step {
        self.turn(world, budget, Extent::All)
    }

    /// A turn for peers' messages alone: a device is not polled again.
    pub fn answer(&mut self, world: &mut impl World<Effect = C::Effect>, budget: usize) -> Step {
        self.turn(world, budget, Extent::Messages)
    }

    fn turn(
        &mut self,
        world: &mut impl World<Effect = C::Effect>,
        budget: impl Budget,
        extent: Extent,
    ) -> Step {
        let to_the_end = matches!(extent, Extent::Rest);
        self.status.account().leave(Phase::Busy);
        let now = world.now();
        self.account_from(now);
        self.status.account().enter(Phase::Busy, now);
        self.refresh_room();
        let mut work = core::mem::take(&mut self.touched) as usize;
        let mut received = 0;
        let mut crowded = false;
        let mut suspect = None;
        self.check();
        for connected in &mut self.ports {
            let peer = connected.port.peer;
            let (mut taken, most) = (0, budget.messages(peer));
            connected.suspicion.nonsense = false;
            let rung = connected.port.incoming.value();
            while taken < most {
                let Some(line) = connected.port.consumer.peek() else {
                    break;
                };
                let Some(message) = C::decode(peer, &line) else {
                    connected.suspicion.nonsense = !to_the_end;
                    suspect = Some(peer);
                    if to_the_end {
                        connected.port.consumer.advance();
                        continue;
                    }
                    break;
                };
                connected.port.consumer.advance();
                taken += 1;
                let mut cx =
                    Context { now, random: &mut self.random, memory: &self.memory, status: &self.status };
                self.component.begin(Occasion::Message { from: peer, line: &line });
                self.component.receive(&mut cx, peer, message, &mut self.out);
                self.status.advance();
            }
            connected.port.consumer.publish();
            if taken < most {
                connected.heard = rung;
            }
            // An impossible position may be the last that it publishes: our queue would stay full.
            let seen = connected.port.producer.seen();
            if connected.port.consumer.is_broken() || seen == Seen::Impossible {
                suspect = Some(peer);
            }
            connected.unrung |= seen == Seen::Back;
            received += taken;
            if taken > 0 || connected.queue.awaits_fall() {
                let left = if taken == most { connected.port.consumer.backlog() } else { 0 };
                crowded |= self.status.account().batch(&mut connected.queue, taken + left, left);
            }
        }
        work += received;
        let mut cx = Context { now, random: &mut self.random, memory: &self.memory, status: &self.status };
        if !matches!(extent, Extent::Messages) {
            self.component.begin(Occasion::Poll);
            work += self.component.poll(&mut cx, budget.polled(), &mut self.out);
        }
        if self.component.deadline().is_some_and(|d| d <= now) {
            self.component.begin(Occasion::Expire);
            self.component.expire(&mut cx, &mut self.out);
            work += 1;
        }
        if work > 0 {
            self.component.begin(Occasion::Flush);
            self.component.flush(&mut cx, &mut self.out);
            self.component.commit(&mut cx);
            self.check();
        }
        if let Some(peer) = suspect {
            self.accuse(world, peer, now);
        }
        if received > 0 {
            self.status.add(counter::MESSAGES_IN, received as u64);
        }
        self.status.add(counter::TURNS, 1);
        self.end_quiet(now);
        self.publish(world);
        self.status.beat();
        let quiet = self.quiet_deadline(now);
        let late = self.fault.as_ref().and_then(|fault| fault.deadline());
        let again = self.ports.iter().filter_map(|c| c.suspicion.deadline());
        let deadline = self.component.deadline().into_iter().chain(quiet).chain(late).chain(again).min();
        self.tell_hints(now, crowded);
        self.due = deadline;
        // Without reading the clock again: the next mark counts the time for this phase.
        self.status.account().reclassify(if work > 0 { Phase::Busy } else { Phase::Polling });
        Step { work, deadline }
    }

    /// Whether a message waits: the last check before sleeping.
    pub fn has_message(&self) -> bool {
        self.touched || self.ports.iter().any(Connected::has_message)
    }

    /// Whether a message waits that is worth a turn. Receipts of the same thread wait for a turn that has other work, or for the
    /// thread to become idle.
    pub fn has_urgent_message(&self) -> bool {
        self.touched
            || self.ports.iter().any(|c| match c.port.same_thread {
                true => c.port.incoming.value() != c.heard || !c.backlog.is_empty(),
                false => c.has_message(),
            })
    }

    /// The bells to sleep on.
    pub fn bells(&self) -> impl Iterator<Item = &Shared<Doorbell>> {
        self.ports.iter().filter(|c| !c.port.same_thread).map(|c| &c.port.incoming)
    }

    fn refresh_room(&mut self) {
        self.receiver_behind = false;
        for c in &mut self.ports {
            let capacity = c.port.producer.capacity();
            let room = if c.backlog.is_empty() { c.port.producer.room(capacity) } else { 0 };
            self.receiver_behind |= capacity - room > Marks::of(capacity).upper;
            self.out.set_room(c.port.peer, room, capacity);
        }
    }
}
