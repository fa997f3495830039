//! One run: how many instances of tcp, a load, a seed, and the outcome.

use std::time::Duration;

use eft_base::{Endpoint, SocketId};
use eft_channel::socket::{Geometry, Opt, flag};
use eft_harness::Plan;
use eft_messages::Role;

use super::costs::Segments;
use super::host::Host;
use super::load::Load;
use super::programs::Programs;
use super::traffic::{Connections, Crossed, Event, World, sent_again};
use crate::batch::Profile;
use crate::batch::calibrated::{Ablation, profile};
use crate::batch::machine::Machine;
use crate::batch::run::Span;
use crate::batch::servers::{SERVERS, Server, TCPS};
use crate::calibration::{Calibration, CalibrationError};
use crate::hardware::{Clock, PS_PER_MS};
use crate::link::Conditions;
use crate::simulation::{Settings, Simulation, address};
use crate::sizes::Sizes;
use crate::stack::Stack;
use crate::timed::check::as_engines;
use crate::timed::peer::Peer;
use crate::timed::run::{SLOW_START_PS, device};
use crate::timed::servers::Servers;
use crate::timed::world::Rest;
use crate::timed::world::Workload;

/// The side that serves, which is the modelled one.
const SERVER: usize = 1;
const HOST: usize = 0;
/// The program of the stack listens here.
pub const PORT: u16 = 5001;
/// So many connect at a time: more than a listener has room for at one instance would try again for seconds.
const AT_ONCE: usize = 64;
/// Messages of a queue between two servers.
const QUEUE: usize = 1024;

/// A setting of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub instances: usize,
    pub load: Load,
    /// Devices cut large segments into packets, and hand large ones over; else there are packets alone.
    pub has_offload: bool,
}

/// A machine with as many cores as there are servers, the load's size, and how long it is.
#[derive(Clone, Debug)]
pub struct Experiment {
    profile: Profile,
    segments: Segments,
    frames: usize,
    clock: Clock,
    pub span: Span,
}

/// Shares are parts per million.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub point: Point,
    /// Payload that the receiving programs read.
    pub kbps: u64,
    /// Answers of a second.
    pub answers: u64,
    /// The time that each server worked, without empty polls: instances of tcp, ip, the driver.
    pub tcp_ppm: Vec<u64>,
    pub ip_ppm: u64,
    pub driver_ppm: u64,
    /// The time that the link was used, in the direction with more traffic, and the payload of a segment there, as tcp has it.
    pub link_ppm: u64,
    pub segment_bytes: u64,
    /// Connections of each instance.
    pub connections: Vec<u64>,
    /// Segments that either side sent again.
    pub sent_again: u64,
}

/// Whoever works for so much of the time bounds the stack.
const FULL_PPM: u64 = 950_000;

impl Outcome {
    /// Of the instance that works least, and of the one that works most.
    pub fn tcp_ppm_range(&self) -> (u64, u64) {
        let of = |share: Option<&u64>| share.copied().unwrap_or_default();
        (of(self.tcp_ppm.iter().min()), of(self.tcp_ppm.iter().max()))
    }

    /// What works all the time. If nothing does, messages or buffers are missing: a full queue, or no frame for the driver.
    pub fn bottlenecks(&self) -> Vec<&'static str> {
        let all = [
            ("tcp", self.tcp_ppm_range().1),
            ("ip", self.ip_ppm),
            ("nic", self.driver_ppm),
            ("link", self.link_ppm),
        ];
        all.into_iter().filter(|(_, ppm)| *ppm >= FULL_PPM).map(|(name, _)| name).collect()
    }
}

impl Load {
    fn connections(self) -> usize {
        match self {
            Self::Out | Self::In => 32,
            Self::Requests => 256,
        }
    }
}

/// The counters at one time.
struct Reading {
    bytes: u64,
    answers: u64,
    worked_ps: Vec<u64>,
    crossed: [Crossed; 2],
}

fn name(instance: usize) -> String {
    if instance == 0 { "tcp".into() } else { format!("tcp{instance}") }
}

/// A stack without filter and udp. The driver has so many buffers for frames that it receives.
fn topology(instances: usize, frames: usize) -> String {
    let tcps: Vec<String> = (0..instances).map(name).collect();
    let servers = ["sockets", "ip", "nic"].map(String::from).into_iter().chain(tcps.iter().cloned());
    let components = servers.map(|name| format!("[[component]]\nname = \"{name}\"\n"));
    let of_tcp = tcps.iter().flat_map(|tcp| [("sockets", tcp.as_str()), (tcp.as_str(), "ip")]);
    let edges = of_tcp
        .chain([("ip", "nic")])
        .map(|(one, other)| format!("[[edge]]\nbetween = [\"{one}\", \"{other}\"]\ncapacity = {QUEUE}\n"));
    components.chain(edges).chain([format!("[memory]\nnic_frames = {frames}\n")]).collect()
}

/// Open sockets of one side's streams.
fn open(simulation: &Simulation, side: usize) -> Vec<SocketId> {
    let domain = &simulation.stacks[side].domain;
    let sockets = simulation.applications[side].streams.iter().map(|stream| stream.socket);
    let is_open = |slot| domain.socket(slot).is_some_and(|page| page.flags() & flag::CONNECTED != 0);
    sockets.filter(|socket| is_open(socket.slot)).collect()
}

/// The instance that has a socket.
fn tcp_of(stack: &Stack, socket: SocketId) -> Option<Server> {
    let owner = stack.domain.socket(socket.slot)?.owner().filter(|owner| owner.role == Role::Tcp)?;
    TCPS.get(usize::from(owner.instance)).copied()
}

impl Experiment {
    /// `link_mbps`: of a link that is not to be the bottleneck. `frames`: the driver's, as `nic_frames` of a topology.
    pub fn new(
        calibration: &Calibration,
        (link_mbps, frames): (u64, usize),
        span: Span,
    ) -> Result<Self, CalibrationError> {
        let mut profile = as_engines(&profile(calibration, "eft", Ablation::default())?);
        profile.network.mbps = link_mbps;
        let segments = Segments::new(calibration, &profile)?;
        let clock = Clock::full(calibration.chip()?.highest.0);
        Ok(Self { profile, segments, frames, clock, span })
    }

    fn profile(&self, point: Point) -> Profile {
        let mut profile = self.profile;
        if !point.has_offload {
            profile.segment_bytes = profile.maximum_segment;
        }
        profile.streams = point.load.connections();
        profile
    }

    /// Two stacks with open connections between them.
    fn connected(&self, profile: &Profile, point: Point, seed: u64) -> Simulation {
        let sockets = profile.streams + 1;
        let settings = Settings {
            conditions: Conditions { delay: Duration::from_micros(5), ..Conditions::default() },
            topology: topology(point.instances, self.frames),
            // Instances have about as many connections each, and none has twice its part.
            geometry: Geometry {
                slots: 2 * sockets + 8 * point.instances,
                send_len: profile.buffer_bytes.next_power_of_two() as usize,
                // The peer's host promises a window beyond what it has acknowledged, whether its programs have read or not.
                receive_len: 2 * profile.window_bytes.next_power_of_two() as usize,
            },
            sizes: Sizes {
                connections: 2 * sockets,
                sockets_per_domain: 2 * sockets,
                listeners_per_domain: 1,
            },
            device: device(profile),
            is_lasting: true,
            ..Settings::default()
        };
        let mut simulation = Simulation::new(seed, settings);
        simulation.applications.iter_mut().for_each(|application| application.by_hand = true);
        simulation.applications[SERVER].listen(PORT, Plan::default());
        let limit = Duration::from_secs(5);
        simulation.run(limit, |s| s.applications[SERVER].listening() == 1);
        let to = Endpoint::new(address(SERVER).address, PORT);
        let mut asked = 0;
        while asked < profile.streams {
            let next = AT_ONCE.min(profile.streams - asked);
            (0..next).for_each(|_| simulation.applications[HOST].connect(to, Plan::default()));
            asked += next;
            simulation.run(limit, |s| [HOST, SERVER].into_iter().all(|side| open(s, side).len() == asked));
        }
        simulation.run_for(Duration::from_millis(1));
        for (side, stack) in simulation.stacks.iter().enumerate() {
            let pages = open(&simulation, side).into_iter().filter_map(|s| stack.domain.socket(s.slot));
            pages.for_each(|page| {
                page.set_option(Opt::SendBuffer, profile.buffer_bytes as u32);
                page.set_option(Opt::NoDelay, u32::from(point.load == Load::Requests));
            });
        }
        simulation
    }

    /// Cores, threads and clocks: instances of tcp, ip and the driver have a core each, and the others, which are not there, one.
    fn seats(&self, instances: usize) -> Vec<(usize, usize, Clock)> {
        let unused = |server: Server| matches!(server, Server::Front | Server::Filter);
        let core = |server: Server| if unused(server) { usize::MAX } else { server as usize };
        let servers = SERVERS.into_iter().chain(TCPS[..instances].iter().skip(1).copied());
        servers.map(|server| (core(server), 0, self.clock)).collect()
    }

    fn world<'a>(&'a self, profile: &'a Profile, point: Point, seed: u64) -> World<'a> {
        let simulation = self.connected(profile, point, seed);
        let [hosts, served] = [HOST, SERVER].map(|side| open(&simulation, side));
        let base = simulation.now;
        let [host_end, end] = simulation.link.ends.clone();
        let [host_stack, stack] = simulation.stacks;
        let scale = served.first().and_then(|s| stack.domain.socket(s.slot));
        let scale = scale.map_or(0, |page| page.info().send_scale);
        let of_tcps: Vec<(SocketId, Server)> =
            served.iter().filter_map(|socket| Some((*socket, tcp_of(&stack, *socket)?))).collect();
        let programs = Programs::new(point.load, profile.write_bytes, &of_tcps);
        let peer = Peer::new(host_stack, host_end, Vec::new(), (profile.window_bytes, scale));
        let host = Host::new(point.load, peer, &hosts);
        let of = (Servers::new(stack, base), end);
        let load = Connections::new((profile, &self.segments), programs, host);
        let rest = Rest::new(profile, of, load, seed);
        let machine = Machine::new(&self.seats(point.instances), profile.polling);
        let mut world = World { machine, rest };
        for connection in 0..profile.streams {
            let outside = match point.load {
                Load::Out => Event::Program { connection },
                Load::In | Load::Requests => Event::Begins { connection },
            };
            world.after(PS_PER_MS, outside);
        }
        world
    }

    /// Deterministic: the same arguments give the same outcome on any machine.
    pub fn run(&self, point: Point, seed: u64) -> Outcome {
        let profile = self.profile(point);
        let mut world = self.world(&profile, point, seed);
        let begin = advance(&mut world, point, SLOW_START_PS + self.span.begins_ps());
        let end = advance(&mut world, point, SLOW_START_PS + self.span.ends_ps());
        self.outcome(&world, point, (&begin, &end))
    }

    fn outcome(&self, world: &World, point: Point, (begin, end): (&Reading, &Reading)) -> Outcome {
        let ms = self.span.measured_ms;
        let worked = end.worked_ps.iter().zip(&begin.worked_ps).map(|(end, begin)| end - begin);
        let mut shares = worked.map(|ps| ps * 1_000_000 / (ms * PS_PER_MS));
        let [ip_ppm, driver_ppm] = [0, 1].map(|_| shares.next().unwrap_or_default());
        let on_wires = [0, 1].map(|way| end.crossed[way].since(begin.crossed[way]));
        let wire = on_wires.into_iter().max_by_key(|crossed| crossed.ps).unwrap_or_default();
        Outcome {
            point,
            kbps: (end.bytes - begin.bytes) * 8 / ms,
            answers: (end.answers - begin.answers) * 1000 / ms,
            tcp_ppm: shares.collect(),
            ip_ppm,
            driver_ppm,
            link_ppm: wire.ps * 1_000_000 / (ms * PS_PER_MS),
            segment_bytes: wire.bytes / wire.segments.max(1),
            connections: world.rest.load.programs.spread(point.instances),
            sent_again: sent_again(world),
        }
    }
}

fn advance(world: &mut World, point: Point, until_ps: u64) -> Reading {
    world.advance(until_ps);
    world.machine.account_all();
    let servers = [Server::Ip, Server::Driver].into_iter().chain(TCPS[..point.instances].iter().copied());
    let load = &world.rest.load;
    Reading {
        bytes: load.delivered(&world.rest.servers.stack),
        answers: load.host.answers,
        worked_ps: servers.map(|server| world.machine.tally[server as usize].awake_ps).collect(),
        crossed: load.crossed,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
