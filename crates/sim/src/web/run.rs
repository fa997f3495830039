//! One run: a setting, a web server, a seed, and the outcome.

use std::cell::RefCell;

use eft_base::random::Random;

use super::clients::{Clients, Frame};
use super::profile::{Group, System, Web};
use super::servers::serve;
use super::turn::{Control, Message, Of, State, Target, Turn};
use crate::batch::inbox::Inbox;
use crate::batch::machine::{Batch, Event, Machine};
use crate::batch::network::Wire;
use crate::batch::run::{Reading, Span};
use crate::batch::servers::{SERVERS, Server};
use crate::batch::{Setting, run as batch};
use crate::hardware::PS_PER_MS;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Answers a second, computed from the received bytes, thousandths.
    pub answers_milli: u64,
    /// That have ended.
    pub connections: u64,
    pub groups: Vec<OfGroup>,
    /// Of the servers, with received bytes for a rate.
    pub stack: batch::Outcome,
}

/// What a group of clients got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfGroup {
    pub kbps: u64,
    /// As of all.
    pub answers_milli: u64,
}

const WARM_UP_MS: u64 = 10;
/// As long as some large answers take.
const MEASURED_MS: u64 = 25;
const MEASURED_LARGE_MS: u64 = 100;
const LARGE_BYTES: u64 = 1 << 19;

/// What happens outside of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outside {
    /// A client's pause is over.
    Client {
        stream: usize,
    },
    /// At the stack's device.
    Frame {
        stream: usize,
        frame: Frame,
    },
    /// At the clients' host.
    Data {
        stream: usize,
        bytes: u64,
    },
    Control {
        stream: usize,
        control: Control,
    },
    /// That host takes what has arrived.
    Look,
    Piece {
        stream: usize,
        wait: u64,
    },
}

/// What has arrived at the clients' host.
enum Arrival {
    Data(u64),
    Control(Control),
}

struct World<'a> {
    web: &'a Web,
    machine: Machine<Outside, Turn>,
    inbox: Inbox<Of>,
    state: State,
    clients: Clients,
    wire: Wire,
    /// What the clients' host has not looked at, and when it looked last.
    arrived: Vec<(usize, Arrival)>,
    looked_ps: u64,
    sent_bytes: u64,
    sent_segments: u64,
    received_frames: u64,
    /// Of each connection: its frames come in the order in which they were sent.
    last_frame_ps: Vec<u64>,
    random: Random,
    /// Memory of turns that are over, and of the messages that a turn takes.
    spare: Vec<Turn>,
    taken: Vec<Of>,
}

impl World<'_> {
    /// Anything from half to one and a half of a time.
    fn about(&mut self, time_ps: u64) -> u64 {
        time_ps / 2 + self.random.below(time_ps + 1)
    }

    fn after(&mut self, time_ps: u64, outside: Outside) {
        let at = self.machine.now_ps + self.about(time_ps);
        self.machine.at(at, Event::World(outside));
    }

    fn handle(&mut self, event: Event<Outside>) {
        match event {
            Event::Ends { thread } => self.ended(thread),
            Event::Woken { thread } => self.machine.woken(&self.web.stack.costs, thread),
            Event::Interrupt => self.machine.interrupt(&self.web.stack.costs),
            Event::World(outside) => self.happened(outside),
        }
    }

    fn happened(&mut self, outside: Outside) {
        match outside {
            Outside::Client { stream } => {
                let frame = self.clients.act(stream, self.wire.take(stream));
                self.send(stream, frame);
            }
            Outside::Frame { stream, frame } => {
                self.received_frames += 1;
                self.inbox.put(Server::Driver, None, (stream, Message::Frame(frame)));
                self.machine.tell_of_frame(&self.web.stack.costs);
            }
            Outside::Data { stream, bytes } => self.arrive(stream, Arrival::Data(bytes)),
            Outside::Control { stream, control } => self.arrive(stream, Arrival::Control(control)),
            Outside::Look => self.look(),
            Outside::Piece { stream, wait } => {
                if self.state.streams.lose_patience(stream, wait) {
                    let tcp = if self.web.system == System::Servers { Server::Tcp } else { Server::Driver };
                    self.deliver(None, tcp, (stream, Message::Piece(wait)));
                }
            }
        }
    }

    /// A client's frame: it comes after all that this connection sent before.
    fn send(&mut self, stream: usize, frame: Frame) {
        let way = self.web.stack.network.turnaround_ps;
        let at = (self.machine.now_ps + self.about(way)).max(self.last_frame_ps[stream]);
        self.last_frame_ps[stream] = at;
        self.machine.at(at, Event::World(Outside::Frame { stream, frame }));
    }

    /// The first arrival after a pause interrupts at once, others when the device may interrupt again.
    fn arrive(&mut self, stream: usize, arrival: Arrival) {
        if self.arrived.is_empty() {
            let gap = self.about(self.web.stack.network.gather_ps);
            let at = self.machine.now_ps.max(self.looked_ps + gap);
            self.machine.at(at, Event::World(Outside::Look));
        }
        self.arrived.push((stream, arrival));
    }

    fn look(&mut self) {
        self.looked_ps = self.machine.now_ps;
        for (stream, arrival) in std::mem::take(&mut self.arrived) {
            match arrival {
                Arrival::Data(bytes) => self.receive(stream, bytes),
                Arrival::Control(control) => self.control(stream, control),
            }
        }
        let clients = &mut self.clients;
        for (stream, bytes) in self.wire.acknowledge(|stream, count| clients.acknowledges(stream, count)) {
            self.send(stream, Frame::Acknowledgement(bytes));
        }
    }

    fn receive(&mut self, stream: usize, bytes: u64) {
        self.wire.arrive(stream, bytes);
        if self.clients.receive(stream, bytes) {
            self.after(self.web.client_ps, Outside::Client { stream });
        }
    }

    fn control(&mut self, stream: usize, control: Control) {
        match control {
            Control::SynAck => {
                self.clients.connected(stream);
                self.send(stream, Frame::Established);
            }
            Control::Acknowledgement => return,
            Control::Fin => self.send(stream, Frame::Closed),
        }
        self.after(self.web.client_ps, Outside::Client { stream });
    }

    fn deliver(&mut self, from: Option<Server>, to: Server, message: Of) {
        let was_empty = self.inbox.is_empty(to);
        self.inbox.put(to, from, message);
        let wakes = !message.1.is_receipt() || self.web.stack.costs.receipts_wake();
        if wakes || !self.machine.sleeps(to) {
            self.machine.tell(&self.web.stack.costs, from, to, was_empty);
        }
    }

    fn ended(&mut self, thread: usize) {
        let (from, mut turn) = self.machine.ended(thread);
        self.machine.owe(from, turn.owed);
        // In a kernel tcp's work is done wherever a frame comes or a call is made.
        if from == Server::Tcp || self.web.system != System::Servers {
            self.state.streams.end_turn();
        }
        for (stream, wait) in turn.waits.drain(..) {
            let at = self.machine.now_ps + self.state.streams.patience_ps(stream);
            self.machine.at(at, Event::World(Outside::Piece { stream, wait }));
        }
        for (to, (stream, message)) in turn.out.drain(..) {
            match (to, message) {
                (Target::Server(to), _) => self.deliver(Some(from), to, (stream, message)),
                (Target::Wire, Message::Segment(bytes)) => {
                    self.sent_bytes += bytes;
                    self.sent_segments += 1;
                    let at = self.wire.send(self.machine.now_ps, bytes);
                    self.machine.at(at, Event::World(Outside::Data { stream, bytes }));
                }
                (Target::Wire, Message::Control(control)) => {
                    let at = self.wire.send(self.machine.now_ps, 0);
                    self.machine.at(at, Event::World(Outside::Control { stream, control }));
                }
                (Target::Wire, _) => {}
            }
        }
        self.spare.extend(turn.has_memory().then_some(turn));
        self.go_on(thread);
    }

    fn go_on(&mut self, thread: usize) {
        self.state.streams.now_ps = self.machine.now_ps;
        let (web, state) = (self.web, &mut self.state);
        let (spare, taken) = (&mut self.spare, &mut self.taken);
        let inbox = RefCell::new(&mut self.inbox);
        let has_work = |server: Server| !inbox.borrow().is_empty(server);
        self.machine.go_on(&web.stack.costs, thread, has_work, |server| {
            inbox.borrow_mut().take(server, web.stack.batch_max, usize::MAX, taken);
            let (messages, mut turn) = (taken.len(), spare.pop().unwrap_or_default().anew());
            serve(web, state, server, taken.drain(..), &mut turn);
            Batch { work: turn.work, copying: turn.copying, messages, out: turn }
        });
    }
}

/// Deterministic: the same arguments give the same outcome on any machine. The first seat is the program's.
pub fn run(web: &Web, setting: &Setting, seed: u64) -> Outcome {
    let measured_ms = if web.largest_answer() >= LARGE_BYTES { MEASURED_LARGE_MS } else { MEASURED_MS };
    run_for(web, setting, seed, Span { warm_up_ms: WARM_UP_MS, measured_ms })
}

/// The same for another time.
pub fn run_for(web: &Web, setting: &Setting, seed: u64, span: Span) -> Outcome {
    let stack = &web.stack;
    let mut world = World {
        web,
        machine: Machine::new(&setting.seats.map(|seat| (seat.core, seat.thread, seat.clock)), stack.polling),
        inbox: Inbox::default(),
        state: State::new(web),
        clients: Clients::new(web),
        wire: Wire::new(stack.network, stack.maximum_segment, stack.streams),
        arrived: Vec::new(),
        looked_ps: 0,
        sent_bytes: 0,
        sent_segments: 0,
        received_frames: 0,
        last_frame_ps: vec![0; stack.streams],
        random: Random::new(seed),
        spare: Vec::new(),
        taken: Vec::new(),
    };
    for stream in 0..stack.streams {
        let at = world.random.below(PS_PER_MS);
        world.machine.at(at, Event::World(Outside::Client { stream }));
    }
    let begin = advance(&mut world, span.begins_ps());
    let end = advance(&mut world, span.ends_ps());
    outcome(web, &begin, &end, span.measured_ms)
}

/// The counters at one time.
#[derive(Clone, Debug)]
pub struct Counts {
    pub connections: u64,
    /// Received by each group of clients.
    pub bytes: Vec<u64>,
    pub stack: Reading,
}

pub fn outcome(web: &Web, begin: &Counts, end: &Counts, ms: u64) -> Outcome {
    let bytes = end.bytes.iter().zip(&begin.bytes).map(|(end, begin)| end - begin);
    let of_group = |(bytes, group): (u64, &Group)| OfGroup {
        kbps: bytes * 8 / ms,
        answers_milli: bytes * 1_000_000 / group.answer_bytes / ms,
    };
    let groups: Vec<OfGroup> = bytes.zip(&web.groups).map(of_group).collect();
    Outcome {
        answers_milli: groups.iter().map(|group| group.answers_milli).sum(),
        groups,
        connections: end.connections - begin.connections,
        stack: batch::outcome(&begin.stack, &end.stack, ms),
    }
}

fn advance(world: &mut World, until_ps: u64) -> Counts {
    while let Some(event) = world.machine.next(until_ps) {
        world.handle(event);
    }
    Counts {
        connections: world.clients.connections,
        bytes: world.clients.bytes.clone(),
        stack: Reading {
            bytes: world.clients.bytes.iter().sum(),
            sent_bytes: world.sent_bytes,
            segments: world.sent_segments,
            acknowledgements: world.received_frames,
            busy_ps: SERVERS.map(|server| world.machine.busy_ps(server)),
            tally: world.machine.tally,
        },
    }
}

#[cfg(test)]
#[path = "tests.rs"]
pub mod tests;
