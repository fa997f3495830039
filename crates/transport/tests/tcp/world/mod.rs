//! Two engines, a network between them, and virtual time. Everything follows from the seed.

mod conditions;
mod network;
mod side;

pub use conditions::Conditions;
pub use network::Packet;
pub use side::Side;

use crate::app::App;
use eft_base::{Instant, Random, RequestId, SocketId};
use eft_component::Component;
use eft_component::transport::{Effect, Event};
use eft_harness::Route;
use eft_messages::ComponentId;
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_messages::transport::{IpToTransport, TransportToIp};
use eft_transport::tcp::block::{Block, Cold};
use eft_transport::{In, Out};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// A test that needs more events than this goes in circles.
const EVENTS_MAX: u64 = 5_000_000;
const CRASHES_MAX: u64 = 100;
/// Places in the queue to sockets.
const SOCKETS_ROOM: usize = 100;

pub enum Happening {
    Packet(usize, Packet),
    Sent(usize, u64, RequestId),
    /// Time is to pass until then.
    Nothing,
}

struct Entry {
    at: Instant,
    order: u64,
    what: Happening,
}

impl PartialEq for Entry {
    fn eq(&self, o: &Self) -> bool {
        (self.at, self.order) == (o.at, o.order)
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, o: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for Entry {
    fn cmp(&self, o: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(o.at, o.order))
    }
}

/// What an application is told.
pub enum Notice {
    /// What was asked, the error, the socket.
    Reply(SocketsToTransport, i32, SocketId, u32),
    Effect(Effect),
}

pub struct World {
    pub now: Instant,
    pub conditions: Conditions,
    pub random: Random,
    pub sides: [Side; 2],
    heap: BinaryHeap<Reverse<Entry>>,
    order: u64,
    pub seed: u64,
    /// Packets as they left, if they are captured.
    pub capture: Option<Vec<(Instant, usize, Packet)>>,
    pub events: u64,
    pub crashes: u64,
    pub ip_crashes: u64,
    /// Packets may be larger than the MTU: ip would refuse them.
    pub lenient: bool,
    /// While set, packets to this side are swallowed.
    pub blackhole: [bool; 2],
}

impl World {
    pub fn new(seed: u64, conditions: Conditions) -> World {
        World {
            now: Instant::from_millis(1_000),
            conditions,
            random: Random::new(seed),
            sides: [Side::new(0, seed, &conditions), Side::new(1, seed, &conditions)],
            heap: BinaryHeap::new(),
            order: 0,
            seed,
            capture: None,
            events: 0,
            crashes: 0,
            ip_crashes: 0,
            lenient: false,
            blackhole: [false; 2],
        }
    }

    pub fn schedule(&mut self, after: Duration, what: Happening) {
        self.order += 1;
        self.heap.push(Reverse(Entry { at: self.now + after, order: self.order, what }));
    }

    /// A side whose host has the time and the room of now.
    pub fn at(&mut self, side: usize) -> &mut Side {
        let s = &mut self.sides[side];
        s.host.now = self.now;
        s.host.set_queue(ComponentId::IP, self.conditions.room, self.conditions.room);
        s.host.set_queue(ComponentId::SOCKETS, SOCKETS_ROOM, SOCKETS_ROOM);
        s
    }

    /// A request of sockets; the answer goes to the application.
    pub fn request(&mut self, side: usize, make: impl FnOnce(RequestId) -> SocketsToTransport) -> RequestId {
        let id = self.at(side).ask(make);
        self.turn(side);
        id
    }

    pub fn dirty(&mut self, side: usize, socket: SocketId) {
        self.at(side).event(Event::Dirty(socket));
        self.turn(side);
    }

    /// The rest of a server's turn: deadlines, flush, and what follows from the outputs.
    pub fn turn(&mut self, side: usize) {
        let s = self.at(side);
        let before = s.host.status.progress();
        s.end_turn();
        s.longest_turn = s.longest_turn.max(s.host.status.progress() - before);
        if s.died {
            return self.crash(side);
        }
        self.collect(side);
    }

    fn collect(&mut self, side: usize) {
        let items: Vec<Out> = self.sides[side].host.out.drain().collect();
        let mut notices = Vec::new();
        let life = self.sides[side].life;
        for item in items {
            if self.sides[side].life != life {
                // It died in the rest of its turn. Its unpublished outputs are lost with its memory,
                // which is allowed.
                break;
            }
            match item {
                Out::Ip(m) => self.receive_at_ip(side, m),
                Out::Sockets(reply) => {
                    let TransportToSockets::Reply { errno, socket, taken, .. } = reply;
                    if let Some(asked) = self.sides[side].answered(&reply) {
                        notices.push(Notice::Reply(asked, errno, socket, taken));
                    }
                }
                Out::Effect(e) => notices.push(Notice::Effect(e)),
            }
        }
        for notice in notices {
            App::notice(self, side, notice);
        }
    }

    fn receive_at_ip(&mut self, side: usize, message: TransportToIp) {
        match message {
            TransportToIp::Done { packet } | TransportToIp::Refuse { packet } => {
                assert!(self.sides[side].take_back(packet), "seed {}: packet given back twice", self.seed);
            }
            TransportToIp::Route { request, source, .. } => {
                let route = Route {
                    errno: 0,
                    own: self.sides[side].address,
                    mtu: self.conditions.mtu,
                    segment_max: self.conditions.segment_max,
                    local: self.conditions.local,
                    mss: self.conditions.mss,
                    initial_segments: self.conditions.initial_segments,
                };
                self.at(side).answer_route(request, source, route);
                self.turn(side);
            }
            TransportToIp::Group { .. } => panic!("streams go to no group"),
            TransportToIp::Send { request, descriptor } => {
                self.transmit(side, descriptor);
                let life = self.sides[side].life;
                self.sides[side].unanswered_sends.push(request);
                let delay = Duration::from_micros(self.random.below(30));
                self.schedule(delay, Happening::Sent(side, life, request));
            }
        }
    }

    /// Lets the next thing happen. False if nothing ever will.
    pub fn step(&mut self) -> bool {
        let next_timer = (0..2).filter_map(|i| Some((self.sides[i].host.engine.deadline()?, i))).min();
        let next_event = self.heap.peek().map(|Reverse(e)| e.at);
        self.events += 1;
        match (next_timer, next_event) {
            (None, None) => return false,
            (Some((at, side)), event) if event.is_none_or(|e| at < e) => {
                self.now = self.now.max(at);
                self.turn(side);
                self.perhaps_crash(side);
            }
            _ => {
                let Some(Reverse(entry)) = self.heap.pop() else {
                    return false;
                };
                self.now = self.now.max(entry.at);
                self.happen(entry.what);
            }
        }
        true
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Packet(side, packet) => {
                self.deliver(side, &packet);
                // Several packets of one batch, now and then.
                while self.random.below(3) == 0 && self.next_is_packet_for(side) {
                    let Some(Reverse(entry)) = self.heap.pop() else {
                        break;
                    };
                    self.now = self.now.max(entry.at);
                    if let Happening::Packet(_, packet) = entry.what {
                        self.deliver(side, &packet);
                    }
                }
                // The engine may die with its outputs unpublished.
                if !self.perhaps_crash(side) {
                    self.turn(side);
                }
                self.perhaps_crash(side);
            }
            Happening::Sent(side, life, request) => {
                let s = &mut self.sides[side];
                if s.life == life && s.unanswered_sends.contains(&request) {
                    s.unanswered_sends.retain(|r| *r != request);
                    let message = IpToTransport::Sent { request, errno: 0 };
                    self.at(side).receive(ComponentId::IP, In::Ip(message));
                    self.turn(side);
                }
                self.perhaps_crash(side);
            }
            Happening::Nothing => {}
        }
    }

    fn next_is_packet_for(&self, side: usize) -> bool {
        matches!(self.heap.peek(), Some(Reverse(Entry { what: Happening::Packet(s, _), .. })) if *s == side)
    }

    fn perhaps_crash(&mut self, side: usize) -> bool {
        if self.ip_crashes < CRASHES_MAX && self.random.chance(self.conditions.ip_crash) {
            self.ip_crashes += 1;
            // ip forgets its requests, and gets them again.
            self.sides[side].unanswered_sends.clear();
            self.at(side).with(|tcp, cx, out| tcp.peer_reborn(cx, ComponentId::IP, out));
            self.turn(side);
        }
        // Each life begins by sending again: without a limit that would be an avalanche.
        if self.crashes >= CRASHES_MAX || !self.random.chance(self.conditions.crash) {
            return false;
        }
        self.crash(side);
        true
    }

    /// Kills an engine, changes a block as a fault of its own would have, and starts its successor.
    pub fn forge(&mut self, side: usize, block: u32, change: impl FnOnce(&mut Block, &mut Cold)) {
        let s = &self.sides[side];
        eft_transport::tcp::forge(&s.durable, &s.config, block, change);
        self.crash(side);
    }

    /// Kills an engine and starts its successor.
    pub fn crash(&mut self, side: usize) {
        self.crashes += 1;
        let s = self.at(side);
        // Each life is longer: one that always ended at the same segment would never get past it.
        s.fuse += s.fuse.div_ceil(2);
        s.unanswered_sends.clear();
        s.restart();
        self.turn(side);
    }

    /// Runs until `done` or until so much virtual time has passed; says whether `done`.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&World) -> bool) -> bool {
        let end = self.now + limit;
        while !done(self) {
            if self.now >= end || !self.step() {
                return done(self);
            }
            assert!(self.events < EVENTS_MAX, "seed {}: no end at {:?}", self.seed, self.now);
        }
        true
    }

    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        self.schedule(time, Happening::Nothing);
        while self.now < end && self.step() {}
    }
}
