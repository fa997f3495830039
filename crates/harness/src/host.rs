//! An engine with its surroundings: memory, time, counters, an outbox.

use eft_base::{Instant, Random};
use eft_channel::Memory;
use eft_channel::status::Status;
use eft_component::server::FRAME_COUNTERS;
use eft_component::{Component, Context, Occasion, Outbox};
use eft_messages::{ComponentId, Encoded};
use std::time::Duration;

/// The most turns of one [`Host::pass`].
const TURNS_MAX: usize = 64;

/// One engine, called as the server loop calls it.
pub struct Host<C: Component> {
    pub engine: C,
    pub memory: Memory,
    pub status: Status,
    pub random: Random,
    pub now: Instant,
    pub out: Outbox<C::Out>,
    queues: Vec<Queue>,
}

/// The queue to one neighbour.
struct Queue {
    to: ComponentId,
    /// Free places after each turn.
    room: usize,
    capacity: usize,
}

/// Places of a queue, unless a test sets another number.
const CAPACITY: usize = 1024;

impl<C: Component> Host<C> {
    pub fn new(engine: C, memory: Memory, peers: &[ComponentId], random: Random) -> Host<C> {
        let mut host = Host {
            engine,
            memory,
            status: Status::heap(),
            random,
            now: Instant::from_millis(1000),
            out: Outbox::new(),
            queues: Vec::new(),
        };
        host.connect(peers);
        host
    }

    /// Connects these neighbours for the first time, and tells the engine.
    pub fn connect(&mut self, peers: &[ComponentId]) {
        self.set_peers(peers);
        for peer in peers {
            self.reborn(*peer);
        }
    }

    /// Sets the neighbours without telling the engine.
    pub fn set_peers(&mut self, peers: &[ComponentId]) {
        self.queues = peers.iter().map(|to| Queue { to: *to, room: CAPACITY, capacity: CAPACITY }).collect();
        self.refresh();
    }

    pub fn peers(&self) -> Vec<ComponentId> {
        self.queues.iter().map(|q| q.to).collect()
    }

    /// Sets the free places of every queue from now on.
    pub fn set_room(&mut self, room: usize) {
        self.queues.iter_mut().for_each(|q| q.room = room);
        self.refresh();
    }

    /// The same for one queue, of `capacity` places in all.
    pub fn set_queue(&mut self, to: ComponentId, room: usize, capacity: usize) {
        self.queues.retain(|q| q.to != to);
        self.queues.push(Queue { to, room, capacity });
        self.refresh();
    }

    /// The neighbours have taken their messages: the queues have room again.
    pub fn refresh(&mut self) {
        for q in &self.queues {
            self.out.set_room(q.to, q.room, q.capacity);
        }
    }

    /// Starts another life: the last one's unsent messages are lost. Returns its engine.
    pub fn replace(&mut self, engine: C) -> C {
        let last = std::mem::replace(&mut self.engine, engine);
        self.out = Outbox::new();
        self.refresh();
        last
    }

    pub fn with<R>(&mut self, f: impl FnOnce(&mut C, &mut Context, &mut Outbox<C::Out>) -> R) -> R {
        let mut cx =
            Context { now: self.now, random: &mut self.random, memory: &self.memory, status: &self.status };
        f(&mut self.engine, &mut cx, &mut self.out)
    }

    pub fn receive(&mut self, from: ComponentId, message: C::In) {
        self.with(|e, cx, out| e.receive(cx, from, message, out));
        self.turn();
    }

    /// Handles an encoded message as the server loop does: one that does not decode is dropped.
    pub fn line(&mut self, from: ComponentId, line: &Encoded) {
        match C::decode(from, line) {
            Some(message) => {
                self.engine.begin(Occasion::Message { from, line });
                self.receive(from, message)
            }
            None => self.turn(),
        }
    }

    pub fn event(&mut self, event: C::Event) {
        self.engine.begin(Occasion::Event(&event));
        self.with(|e, cx, out| e.event(cx, event, out));
        self.turn();
    }

    pub fn reborn(&mut self, peer: ComponentId) {
        self.engine.begin(Occasion::Reborn(peer));
        self.with(|e, cx, out| e.peer_reborn(cx, peer, out));
        self.turn();
    }

    /// The value of a counter, by its name.
    pub fn counter(&self, name: &str) -> u64 {
        let index = C::COUNTERS.iter().position(|n| *n == name);
        let index = index.unwrap_or_else(|| panic!("no counter {name}"));
        self.status.get(FRAME_COUNTERS.len() + index)
    }

    pub fn poll(&mut self) {
        self.with(|e, cx, out| e.poll(cx, 64, out));
        self.turn();
    }

    /// The rest of a turn of the server loop.
    pub fn turn(&mut self) {
        self.with(|e, cx, out| {
            if e.deadline().is_some_and(|d| d <= cx.now) {
                e.begin(Occasion::Expire);
                e.expire(cx, out);
            }
            e.begin(Occasion::Flush);
            e.flush(cx, out);
            e.commit(cx);
        });
    }

    /// Lets time pass, from deadline to deadline.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..TURNS_MAX {
            let Some(next) = self.engine.deadline().filter(|d| *d <= end) else {
                break;
            };
            self.now = self.now.max(next);
            self.turn();
        }
        self.now = end;
    }

    /// Takes the messages that were sent, and makes room for more.
    pub fn take(&mut self) -> Vec<C::Out> {
        let all = self.out.drain().collect();
        self.refresh();
        all
    }
}
