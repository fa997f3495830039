//! One run: a setting, a profile, a seed, and what came of it.

use std::collections::VecDeque;

use eft_base::random::Random;

use super::machine::{Event, Machine, Tally};
use super::network::Wire;
use super::profile::Profile;
use super::servers::{Message, SERVERS, Server, Target, serve};
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

struct World<'a> {
    profile: &'a Profile,
    machine: Machine,
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

    fn handle(&mut self, event: Event) {
        match event {
            Event::Ends { thread, version } => self.ended(thread, version),
            Event::Woken { thread } => self.machine.woken(self.profile, thread),
            Event::Interrupt => self.machine.interrupt(self.profile),
            Event::Program { stream } => {
                let to = if self.profile.call.is_some() { Server::Calls } else { Server::Tcp };
                self.machine.deliver(self.profile, None, to, Message::Write { stream });
            }
            Event::WireFree { stream, bytes } => {
                self.machine.deliver_sent(Message::Sent);
                if self.wire.arrive(stream, bytes) {
                    let after = self.about(self.profile.network.gather_ps);
                    self.machine.at(self.machine.now_ps + after, Event::Gathered);
                }
            }
            Event::Gathered => {
                self.coming.push_back(self.wire.acknowledge());
                let after = self.about(self.profile.network.turnaround_ps);
                self.machine.at(self.machine.now_ps + after, Event::Acknowledged);
            }
            Event::Acknowledged => {
                for (stream, bytes) in self.coming.pop_front().unwrap_or_default() {
                    let message = Message::Acknowledgement { stream, bytes };
                    self.machine.deliver_frame(self.profile, message);
                }
            }
        }
    }

    fn ended(&mut self, thread: usize, version: u64) {
        let Some((from, out)) = self.machine.ended(thread, version) else { return };
        for (to, message) in out {
            match (to, message) {
                (Target::Server(to), _) => self.machine.deliver(self.profile, Some(from), to, message),
                (Target::Program, Message::Written { stream }) => {
                    let after = self.about(self.profile.program_ps);
                    self.machine.at(self.machine.now_ps + after, Event::Program { stream });
                }
                (Target::Wire, Message::Segment { stream, bytes }) => {
                    let at = self.wire.send(self.machine.now_ps, bytes);
                    self.machine.at(at, Event::WireFree { stream, bytes });
                }
                _ => {}
            }
        }
        let (profile, streams) = (self.profile, &mut self.streams);
        self.machine.go_on(profile, thread, |server, batch, turn| {
            serve(profile, streams, server, batch.into_iter(), turn);
        });
    }
}

/// Deterministic: the same arguments give the same outcome on any machine.
pub fn run(profile: &Profile, setting: &Setting, seed: u64) -> Outcome {
    let seats = setting.seats.map(|seat| (seat.core, seat.thread, seat.clock));
    let mut world = World {
        profile,
        machine: Machine::new(&seats),
        streams: Streams::new(profile.streams),
        wire: Wire::new(profile.network, profile.maximum_segment, profile.streams),
        coming: VecDeque::new(),
        random: Random::new(seed),
    };
    for stream in 0..profile.streams {
        let at = world.random.below(PS_PER_MS);
        world.machine.at(at, Event::Program { stream });
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
