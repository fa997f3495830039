//! One run: a setting, a profile, a seed, and the outcome.

use std::cell::RefCell;
use std::collections::VecDeque;

use eft_base::random::Random;

use super::inbox::Inbox;
use super::machine::{Batch, Event, Machine, Tally};
use super::network::Wire;
use super::profile::Profile;
use super::servers::{Message, SERVERS, SERVERS_MAX, Server, Target, Turn, serve};
use super::transport::Streams;
use crate::hardware::{Clock, PS_PER_MS};

/// Where a server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    pub core: usize,
    pub thread: usize,
    pub clock: Clock,
}

/// Seats of [`SERVERS`], in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub seats: [Seat; SERVERS.len()],
}

impl Setting {
    /// Without filter: its seat is on an otherwise unused core.
    pub fn of([front, tcp, ip, driver]: [Seat; 4]) -> Self {
        Self { seats: [front, tcp, ip, driver, Seat { core: usize::MAX, thread: 0, clock: front.clock }] }
    }

    /// Some servers share a thread, and take turns on it.
    pub fn shares_cores(&self) -> bool {
        let mut places = self.seats.map(|seat| (seat.core, seat.thread));
        places.sort_unstable();
        places.windows(2).any(|two| two[0] == two[1])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Acknowledged payload.
    pub kbps: u64,
    /// The time that each server's thread was awake, parts per million.
    pub busy_ppm: [u64; SERVERS.len()],
    /// Of tcp's busy time, parts per million.
    pub copying_ppm: u64,
    pub sleeps_per_ms: [u64; SERVERS.len()],
    pub messages_per_ms: [u64; SERVERS.len()],
    /// Messages of a batch, thousandths.
    pub batch_milli: [u64; SERVERS.len()],
    pub bytes_per_segment: u64,
    pub bytes_per_acknowledgement: u64,
}

/// How long a run is, in whole milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Before anything is counted, and while it is.
    pub warm_up_ms: u64,
    pub measured_ms: u64,
}

impl Default for Span {
    fn default() -> Self {
        Self { warm_up_ms: 10, measured_ms: 60 }
    }
}

impl Span {
    pub fn begins_ps(self) -> u64 {
        self.warm_up_ms * PS_PER_MS
    }

    pub fn ends_ps(self) -> u64 {
        (self.warm_up_ms + self.measured_ms) * PS_PER_MS
    }
}

/// What happens outside of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outside {
    Program { stream: usize },
    Arrived { stream: usize, bytes: u64 },
    Gathered,
    Acknowledged,
    Piece { stream: usize, wait: u64 },
}

/// What crossed the wire.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    bytes: u64,
    segments: u64,
    acknowledgements: u64,
}

struct World<'a> {
    profile: &'a Profile,
    sent: Sent,
    machine: Machine<Outside, Turn>,
    inbox: Inbox<Message>,
    streams: Streams,
    wire: Wire,
    /// Acknowledgements on their way, in the order in which they come.
    coming: VecDeque<Vec<(usize, u64)>>,
    random: Random,
    /// Memory of turns that are over, and of the messages that a turn takes.
    spare: Vec<Turn>,
    taken: Vec<Message>,
}

impl World<'_> {
    /// A random time from half to one and a half of `time_ps`: programs and peers are not regular.
    fn about(&mut self, time_ps: u64) -> u64 {
        time_ps / 2 + self.random.below(time_ps + 1)
    }

    fn handle(&mut self, event: Event<Outside>) {
        match event {
            Event::Ends { thread } => self.ended(thread),
            Event::Woken { thread } => self.machine.woken(&self.profile.costs, thread),
            Event::Interrupt => self.machine.interrupt(&self.profile.costs),
            Event::World(outside) => self.happened(outside),
        }
    }

    fn after(&mut self, time_ps: u64, outside: Outside) {
        let at = self.machine.now_ps + self.about(time_ps);
        self.machine.at(at, Event::World(outside));
    }

    fn happened(&mut self, outside: Outside) {
        match outside {
            Outside::Program { stream } if self.profile.call.is_some() => {
                self.deliver(None, Server::Front, Message::Write { stream });
            }
            Outside::Program { stream } => self.fill(stream),
            Outside::Arrived { stream, bytes } => {
                if self.wire.arrive(stream, bytes) {
                    self.after(self.profile.network.gather_ps, Outside::Gathered);
                }
            }
            Outside::Piece { stream, wait } => {
                if self.streams.lose_patience(stream, wait) {
                    self.deliver(None, Server::Tcp, Message::Piece { stream, wait });
                }
            }
            Outside::Gathered => {
                self.coming.push_back(self.wire.acknowledge(|_, _| false));
                self.after(self.profile.network.turnaround_ps, Outside::Acknowledged);
            }
            Outside::Acknowledged => {
                for (stream, bytes) in self.coming.pop_front().unwrap_or_default() {
                    self.sent.acknowledgements += 1;
                    let message = Message::Acknowledgement { stream, bytes };
                    self.inbox.put(Server::Driver, None, message);
                    self.machine.tell_of_frame(&self.profile.costs);
                }
            }
        }
    }

    /// A program writes into its ring, and marks it unless it is marked already.
    fn fill(&mut self, stream: usize) {
        let (put, is_over) = self.streams.write(self.profile, stream);
        let mark = Message::Write { stream };
        if put > 0 && !self.inbox.from_outside(Server::Tcp).contains(&mark) {
            self.deliver(None, Server::Tcp, mark);
        }
        if is_over {
            self.after(self.profile.program_ps, Outside::Program { stream });
        }
    }

    fn deliver(&mut self, from: Option<Server>, to: Server, message: Message) {
        let was_empty = self.inbox.is_empty(to);
        self.inbox.put(to, from, message);
        let wakes = !message.is_receipt() || self.profile.costs.receipts_wake();
        if wakes || !self.machine.sleeps(to) {
            self.machine.tell(&self.profile.costs, from, to, was_empty);
        }
    }

    fn ended(&mut self, thread: usize) {
        let (from, mut turn) = self.machine.ended(thread);
        self.machine.owe(from, turn.owed);
        if from == Server::Tcp {
            self.streams.end_turn();
        }
        for (stream, wait) in turn.waits.drain(..) {
            let at = self.machine.now_ps + self.streams.patience_ps(stream);
            self.machine.at(at, Event::World(Outside::Piece { stream, wait }));
        }
        for (to, message) in turn.out.drain(..) {
            match (to, message) {
                (Target::Server(to), _) => self.deliver(Some(from), to, message),
                // A program that waited for room in its ring gets it at once.
                (Target::Program, Message::Written { stream }) if self.profile.call.is_none() => {
                    self.fill(stream)
                }
                (Target::Program, Message::Written { stream }) => {
                    self.after(self.profile.program_ps, Outside::Program { stream });
                }
                (Target::Wire, Message::Segment { stream, bytes }) => {
                    self.sent.bytes += bytes;
                    self.sent.segments += 1;
                    let at = self.wire.send(self.machine.now_ps, bytes);
                    self.machine.at(at, Event::World(Outside::Arrived { stream, bytes }));
                }
                _ => {}
            }
        }
        self.spare.extend(turn.has_memory().then_some(turn));
        self.go_on(thread);
    }

    fn go_on(&mut self, thread: usize) {
        self.streams.now_ps = self.machine.now_ps;
        let (profile, streams) = (self.profile, &mut self.streams);
        let (spare, taken) = (&mut self.spare, &mut self.taken);
        let inbox = RefCell::new(&mut self.inbox);
        let has_work = |server: Server| !inbox.borrow().is_empty(server);
        self.machine.go_on(&profile.costs, thread, has_work, |server| {
            // A call is a message like others.
            let marks = if profile.call.is_some() { profile.batch_max } else { usize::MAX };
            inbox.borrow_mut().take(server, profile.batch_max, marks, taken);
            let (messages, mut turn) = (taken.len(), spare.pop().unwrap_or_default().anew());
            serve(profile, streams, server, taken.drain(..), &mut turn);
            Batch { work: turn.work, copying: turn.copying, messages, out: turn }
        });
    }
}

/// Deterministic: the same arguments give the same outcome on any machine.
pub fn run(profile: &Profile, setting: &Setting, seed: u64) -> Outcome {
    run_for(profile, setting, seed, Span::default())
}

/// The same for another time.
pub fn run_for(profile: &Profile, setting: &Setting, seed: u64, span: Span) -> Outcome {
    let seats = setting.seats.map(|seat| (seat.core, seat.thread, seat.clock));
    let mut world = World {
        profile,
        machine: Machine::new(&seats, profile.polling),
        inbox: Inbox::default(),
        sent: Sent::default(),
        streams: Streams::new(profile),
        wire: Wire::new(profile.network, profile.maximum_segment, profile.streams),
        coming: VecDeque::new(),
        random: Random::new(seed),
        spare: Vec::new(),
        taken: Vec::new(),
    };
    for stream in 0..profile.streams {
        let at = world.random.below(PS_PER_MS);
        world.machine.at(at, Event::World(Outside::Program { stream }));
    }
    let begin = advance(&mut world, span.begins_ps());
    let end = advance(&mut world, span.ends_ps());
    outcome(&begin, &end, span.measured_ms)
}

/// The counters at one time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    pub bytes: u64,
    /// Handed to the wire.
    pub sent_bytes: u64,
    pub segments: u64,
    pub acknowledgements: u64,
    pub busy_ps: [u64; SERVERS.len()],
    pub tally: [Tally; SERVERS_MAX],
}

fn advance(world: &mut World, until_ps: u64) -> Reading {
    while let Some(event) = world.machine.next(until_ps) {
        world.handle(event);
    }
    Reading {
        bytes: world.streams.acknowledged_bytes,
        sent_bytes: world.sent.bytes,
        segments: world.sent.segments,
        acknowledgements: world.sent.acknowledgements,
        busy_ps: SERVERS.map(|server| world.machine.busy_ps(server)),
        tally: world.machine.tally,
    }
}

pub fn outcome(begin: &Reading, end: &Reading, ms: u64) -> Outcome {
    let of = |server: Server, pick: fn(&Tally) -> u64| {
        pick(&end.tally[server as usize]) - pick(&begin.tally[server as usize])
    };
    let busy = |server: Server| end.busy_ps[server as usize] - begin.busy_ps[server as usize];
    let sent_bytes = end.sent_bytes - begin.sent_bytes;
    Outcome {
        kbps: (end.bytes - begin.bytes) * 8 / ms,
        busy_ppm: SERVERS.map(|server| busy(server) * 1_000_000 / (ms * PS_PER_MS)),
        copying_ppm: of(Server::Tcp, |t| t.copying_ps) * 1_000_000 / busy(Server::Tcp).max(1),
        sleeps_per_ms: SERVERS.map(|server| of(server, |t| t.sleeps) / ms),
        messages_per_ms: SERVERS.map(|server| of(server, |t| t.messages) / ms),
        batch_milli: SERVERS
            .map(|server| of(server, |t| t.messages) * 1000 / of(server, |t| t.batches).max(1)),
        bytes_per_segment: sent_bytes / (end.segments - begin.segments).max(1),
        bytes_per_acknowledgement: sent_bytes / (end.acknowledgements - begin.acknowledgements).max(1),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
