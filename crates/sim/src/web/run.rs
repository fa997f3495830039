//! One run: a setting, a web server, a seed, and the outcome.

use std::cell::RefCell;

use eft_base::random::Random;

use super::clients::{Clients, Frame};
use super::profile::{System, Web};
use super::program::Program;
use super::servers::serve;
use super::turn::{Control, Message, Of, State, Target};
use crate::batch::Setting;
use crate::batch::inbox::Inbox;
use crate::batch::machine::{Batch, Event, Machine};
use crate::batch::network::Wire;
use crate::batch::servers::{SERVERS, Server, Waits};
use crate::batch::transport::Streams;
use crate::hardware::PS_PER_MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Answers a second, computed from the received bytes, thousandths.
    pub answers_milli: u64,
    pub kbps: u64,
    pub connections: u64,
    pub busy_ppm: [u64; SERVERS.len()],
    pub sleeps_per_ms: [u64; SERVERS.len()],
}

const WARM_UP_PS: u64 = 10 * PS_PER_MS;
/// As long as some large answers take.
const MEASURED_PS: u64 = 25 * PS_PER_MS;
const MEASURED_LARGE_PS: u64 = 100 * PS_PER_MS;
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
    /// At the client.
    Data {
        stream: usize,
        bytes: u64,
    },
    Control {
        stream: usize,
        control: Control,
    },
    Gathered,
    Piece {
        stream: usize,
        wait: u64,
    },
}

#[derive(Debug, Default)]
struct Said {
    messages: Vec<(Target, Of)>,
    waits: Waits,
}

struct World<'a> {
    web: &'a Web,
    machine: Machine<Outside, Said>,
    inbox: Inbox<Of>,
    state: State,
    clients: Clients,
    wire: Wire,
    /// Of each connection: its frames come in the order in which they were sent.
    last_frame_ps: Vec<u64>,
    random: Random,
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
            Event::Ends { thread, version } => self.ended(thread, version),
            Event::Woken { thread } => self.machine.woken(&self.web.stack.costs, thread),
            Event::Interrupt => self.machine.interrupt(&self.web.stack.costs),
            Event::World(outside) => self.happened(outside),
        }
    }

    fn happened(&mut self, outside: Outside) {
        match outside {
            Outside::Client { stream } => {
                let frame = self.clients.act(self.web, stream, self.wire.take(stream));
                self.send(stream, frame);
            }
            Outside::Frame { stream, frame } => {
                self.inbox.put(Server::Driver, None, (stream, Message::Frame(frame)));
                self.machine.tell_of_frame(&self.web.stack.costs);
            }
            Outside::Data { stream, bytes } => self.receive(stream, bytes),
            Outside::Control { stream, control } => self.control(stream, control),
            Outside::Gathered => {
                for (stream, bytes) in self.wire.acknowledge() {
                    self.send(stream, Frame::Acknowledgement(bytes));
                }
            }
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

    fn receive(&mut self, stream: usize, bytes: u64) {
        if self.wire.arrive(stream, bytes) {
            self.after(self.web.stack.network.gather_ps, Outside::Gathered);
        }
        if self.clients.receive(self.web, stream, bytes) {
            self.after(self.web.client_ps, Outside::Client { stream });
        }
    }

    fn control(&mut self, stream: usize, control: Control) {
        match control {
            Control::SynAck => {
                self.clients.connected(stream);
                self.send(stream, Frame::Established);
            }
            Control::FinAck => return,
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

    fn ended(&mut self, thread: usize, version: u64) {
        let Some((from, said)) = self.machine.ended(thread, version) else { return };
        // In a kernel tcp's work is done wherever a frame comes or a call is made.
        if from == Server::Tcp || self.web.system != System::Servers {
            self.state.streams.end_turn();
        }
        for (stream, wait) in said.waits {
            let at = self.machine.now_ps + self.state.streams.patience_ps(stream);
            self.machine.at(at, Event::World(Outside::Piece { stream, wait }));
        }
        for (to, (stream, message)) in said.messages {
            match (to, message) {
                (Target::Server(to), _) => self.deliver(Some(from), to, (stream, message)),
                (Target::Wire, Message::Segment(bytes)) => {
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
        self.go_on(thread);
    }

    fn go_on(&mut self, thread: usize) {
        self.state.streams.now_ps = self.machine.now_ps;
        let (web, state) = (self.web, &mut self.state);
        let inbox = RefCell::new(&mut self.inbox);
        let has_work = |server: Server| !inbox.borrow().is_empty(server);
        self.machine.go_on(&web.stack.costs, thread, has_work, |server| {
            let is_write = |(_, message): &Of| matches!(message, Message::Written);
            let taken = inbox.borrow_mut().take(server, web.stack.batch_max, usize::MAX, is_write);
            let messages = taken.len();
            let turn = serve(web, state, server, taken);
            let out = Said { messages: turn.out, waits: turn.waits };
            Batch { work: turn.work, copying: turn.copying, messages, out }
        });
    }
}

/// Deterministic: the same arguments give the same outcome on any machine. The first seat is the program's.
pub fn run(web: &Web, setting: &Setting, seed: u64) -> Outcome {
    let stack = &web.stack;
    let mut world = World {
        web,
        machine: Machine::new(&setting.seats.map(|seat| (seat.core, seat.thread, seat.clock)), stack.polling),
        inbox: Inbox::default(),
        state: State { streams: Streams::new(stack), program: Program::new(stack.streams) },
        clients: Clients::new(stack.streams),
        wire: Wire::new(stack.network, stack.maximum_segment, stack.streams),
        last_frame_ps: vec![0; stack.streams],
        random: Random::new(seed),
    };
    for stream in 0..stack.streams {
        let at = world.random.below(PS_PER_MS);
        world.machine.at(at, Event::World(Outside::Client { stream }));
    }
    let measured_ps = if web.answer_bytes >= LARGE_BYTES { MEASURED_LARGE_PS } else { MEASURED_PS };
    let begin = advance(&mut world, WARM_UP_PS);
    let end = advance(&mut world, WARM_UP_PS + measured_ps);
    let bytes = end.bytes - begin.bytes;
    let ms = measured_ps / PS_PER_MS;
    let difference = |all: [u64; SERVERS.len()], before: [u64; SERVERS.len()]| {
        SERVERS.map(|server| all[server as usize] - before[server as usize])
    };
    Outcome {
        answers_milli: bytes * 1_000_000 / web.answer_bytes / ms,
        kbps: bytes * 8 / ms,
        connections: end.connections - begin.connections,
        busy_ppm: difference(end.busy_ps, begin.busy_ps).map(|ps| ps * 1_000_000 / measured_ps),
        sleeps_per_ms: difference(end.sleeps, begin.sleeps).map(|count| count / ms),
    }
}

/// The counters at one time.
struct Reading {
    bytes: u64,
    connections: u64,
    busy_ps: [u64; SERVERS.len()],
    sleeps: [u64; SERVERS.len()],
}

fn advance(world: &mut World, until_ps: u64) -> Reading {
    while let Some(event) = world.machine.next(until_ps) {
        world.handle(event);
    }
    Reading {
        bytes: world.clients.bytes,
        connections: world.clients.connections,
        busy_ps: SERVERS.map(|server| world.machine.busy_ps(server)),
        sleeps: SERVERS.map(|server| world.machine.tally[server as usize].sleeps),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
