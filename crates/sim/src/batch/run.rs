//! One run: a setting, a profile, a seed, and what came of it.

use std::cell::RefCell;
use std::collections::VecDeque;

use eft_base::random::Random;

use super::machine::{Batch, Event, Machine, Tally};
use super::network::Wire;
use super::profile::Profile;
use super::servers::{Message, SERVERS, Server, Target, Turn, serve};
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Acknowledged payload.
    pub kbps: u64,
    /// Of each server's thread, time that it did not sleep, parts per million.
    pub busy_ppm: [u64; SERVERS.len()],
    /// Of tcp's busy time, parts per million.
    pub copying_ppm: u64,
    pub sleeps_per_ms: [u64; SERVERS.len()],
    /// Messages of a batch, thousandths.
    pub batch_milli: [u64; SERVERS.len()],
}

/// Before anything is counted, and while it is.
const WARM_UP_PS: u64 = 5 * PS_PER_MS;
const MEASURED_PS: u64 = 25 * PS_PER_MS;

/// What happens outside of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outside {
    Program { stream: usize },
    WireFree { stream: usize, bytes: u64 },
    Gathered,
    Acknowledged,
}

type Said = Vec<(Target, Message)>;

struct World<'a> {
    profile: &'a Profile,
    machine: Machine<Outside, Said>,
    inbox: [VecDeque<Message>; SERVERS.len()],
    streams: Streams,
    wire: Wire,
    /// Acknowledgements on their way, in the order in which they come.
    coming: VecDeque<Vec<(usize, u64)>>,
    random: Random,
}

impl World<'_> {
    /// Programs and peers are not clockwork: anything from half to one and a half of it.
    fn about(&mut self, time_ps: u64) -> u64 {
        time_ps / 2 + self.random.below(time_ps + 1)
    }

    fn handle(&mut self, event: Event<Outside>) {
        match event {
            Event::Ends { thread, version } => self.ended(thread, version),
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
            Outside::Program { stream } => {
                let to = if self.profile.call.is_some() { Server::Calls } else { Server::Tcp };
                self.deliver(None, to, Message::Write { stream });
            }
            Outside::WireFree { stream, bytes } => {
                // It wakes nobody: the driver hears of it when it looks the next time.
                self.inbox[Server::Driver as usize].push_back(Message::Sent);
                if self.wire.arrive(stream, bytes) {
                    self.after(self.profile.network.gather_ps, Outside::Gathered);
                }
            }
            Outside::Gathered => {
                self.coming.push_back(self.wire.acknowledge());
                self.after(self.profile.network.turnaround_ps, Outside::Acknowledged);
            }
            Outside::Acknowledged => {
                for (stream, bytes) in self.coming.pop_front().unwrap_or_default() {
                    let message = Message::Acknowledgement { stream, bytes };
                    self.inbox[Server::Driver as usize].push_back(message);
                    self.machine.tell_of_frame(&self.profile.costs);
                }
            }
        }
    }

    fn deliver(&mut self, from: Option<Server>, to: Server, message: Message) {
        let inbox = &mut self.inbox[to as usize];
        let was_empty = inbox.is_empty();
        inbox.push_back(message);
        self.machine.tell(&self.profile.costs, from, to, was_empty);
    }

    fn ended(&mut self, thread: usize, version: u64) {
        let Some((from, out)) = self.machine.ended(thread, version) else { return };
        for (to, message) in out {
            match (to, message) {
                (Target::Server(to), _) => self.deliver(Some(from), to, message),
                (Target::Program, Message::Written { stream }) => {
                    self.after(self.profile.program_ps, Outside::Program { stream });
                }
                (Target::Wire, Message::Segment { stream, bytes }) => {
                    let at = self.wire.send(self.machine.now_ps, bytes);
                    self.machine.at(at, Event::World(Outside::WireFree { stream, bytes }));
                }
                _ => {}
            }
        }
        let (profile, streams) = (self.profile, &mut self.streams);
        let inbox = RefCell::new(&mut self.inbox);
        let has_work = |server: Server| !inbox.borrow()[server as usize].is_empty();
        self.machine.go_on(&profile.costs, thread, has_work, |server| {
            let waiting = &mut inbox.borrow_mut()[server as usize];
            let count = waiting.len().min(profile.batch_max);
            let mut turn = Turn::default();
            serve(profile, streams, server, waiting.drain(..count), &mut turn);
            Batch { work: turn.work, copying: turn.copying, messages: count, out: turn.out }
        });
    }
}

/// Deterministic: the same arguments give the same outcome on any machine.
pub fn run(profile: &Profile, setting: &Setting, seed: u64) -> Outcome {
    let seats = setting.seats.map(|seat| (seat.core, seat.thread, seat.clock));
    let mut world = World {
        profile,
        machine: Machine::new(&seats),
        inbox: Default::default(),
        streams: Streams::new(profile.streams),
        wire: Wire::new(profile.network, profile.maximum_segment, profile.streams),
        coming: VecDeque::new(),
        random: Random::new(seed),
    };
    for stream in 0..profile.streams {
        let at = world.random.below(PS_PER_MS);
        world.machine.at(at, Event::World(Outside::Program { stream }));
    }
    let begin = advance(&mut world, WARM_UP_PS);
    let end = advance(&mut world, WARM_UP_PS + MEASURED_PS);
    outcome(&begin, &end)
}

/// What was counted until some moment.
struct Reading {
    bytes: u64,
    busy_ps: [u64; SERVERS.len()],
    tally: [Tally; SERVERS.len()],
}

fn advance(world: &mut World, until_ps: u64) -> Reading {
    while let Some(event) = world.machine.next(until_ps) {
        world.handle(event);
    }
    Reading {
        bytes: world.streams.acknowledged_bytes,
        busy_ps: SERVERS.map(|server| world.machine.busy_ps(server)),
        tally: world.machine.tally,
    }
}

fn outcome(begin: &Reading, end: &Reading) -> Outcome {
    let of = |server: Server, pick: fn(&Tally) -> u64| {
        pick(&end.tally[server as usize]) - pick(&begin.tally[server as usize])
    };
    let busy = |server: Server| end.busy_ps[server as usize] - begin.busy_ps[server as usize];
    let ms = MEASURED_PS / PS_PER_MS;
    Outcome {
        kbps: (end.bytes - begin.bytes) * 8 / ms,
        busy_ppm: SERVERS.map(|server| busy(server) * 1_000_000 / MEASURED_PS),
        copying_ppm: of(Server::Tcp, |t| t.copying_ps) * 1_000_000 / busy(Server::Tcp).max(1),
        sleeps_per_ms: SERVERS.map(|server| of(server, |t| t.sleeps) / ms),
        batch_milli: SERVERS
            .map(|server| of(server, |t| t.messages) * 1000 / of(server, |t| t.batches).max(1)),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
