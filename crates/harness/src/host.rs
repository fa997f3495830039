//! An engine with what surrounds it: memory, time, counters, an outbox.

use eft_base::{Instant, Random};
use eft_channel::Memory;
use eft_channel::status::Status;
use eft_component::server::FRAME_COUNTERS;
use eft_component::{Component, Context, Occasion, Outbox};
use eft_messages::{ComponentId, Encoded};
use std::time::Duration;

/// Turns that one input may cause before the host gives up waiting for quiet.
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

/// The queue to a neighbour.
struct Queue {
    to: ComponentId,
    /// Places that are free after each turn.
    room: usize,
    capacity: usize,
}

/// Places in a queue unless a test says otherwise.
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

    /// Connects neighbours for the first time.
    pub fn connect(&mut self, peers: &[ComponentId]) {
        self.set_peers(peers);
        for peer in peers {
            self.reborn(*peer);
        }
    }

    /// The engine has these neighbours, and is still to be told.
    pub fn set_peers(&mut self, peers: &[ComponentId]) {
        self.queues = peers.iter().map(|to| Queue { to: *to, room: CAPACITY, capacity: CAPACITY }).collect();
        self.refresh();
    }

    pub fn peers(&self) -> Vec<ComponentId> {
        self.queues.iter().map(|q| q.to).collect()
    }

    /// Places that are free in every queue from now on.
    pub fn set_room(&mut self, room: usize) {
        self.queues.iter_mut().for_each(|q| q.room = room);
        self.refresh();
    }

    /// The same for one queue, which has that many places in all.
    pub fn set_queue(&mut self, to: ComponentId, room: usize, capacity: usize) {
        self.queues.retain(|q| q.to != to);
        self.queues.push(Queue { to, room, capacity });
        self.refresh();
    }

    /// The neighbours have taken what was for them.
    pub fn refresh(&mut self) {
        for q in &self.queues {
            self.out.set_room(q.to, q.room, q.capacity);
        }
    }

    /// Another life: nothing is left of what the last one wanted to say.
    pub fn replace(&mut self, engine: C) {
        self.engine = engine;
        self.out = Outbox::new();
        self.refresh();
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

    /// As the server loop does with a line: what does not decode is dropped.
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

    /// A counter by its name.
    pub fn counter(&self, name: &str) -> u64 {
        let index = C::COUNTERS.iter().position(|n| *n == name);
        let index = index.unwrap_or_else(|| panic!("no counter {name}"));
        self.status.get(FRAME_COUNTERS.len() + index)
    }

    pub fn poll(&mut self) {
        self.with(|e, cx, out| e.poll(cx, 64, out));
        self.turn();
    }

    /// The rest of a server's turn.
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

    /// Lets time pass, deadline by deadline.
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

    /// What left, with room again for more.
    pub fn take(&mut self) -> Vec<C::Out> {
        let all = self.out.drain().collect();
        self.refresh();
        all
    }
}
