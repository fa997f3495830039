//! One run: a web server, a setting, a seed, and the outcome.

use std::time::Duration;

use eft_base::{Cidr, Endpoint, Instant, SocketId};
use eft_channel::socket::{Geometry, Opt, flag};
use eft_control::network::{Interface, Metrics, Network, Route};

use super::audience::Audience;
use super::clients::Clients;
use super::exchanges::Exchanges;
use super::load::{Event, Serving, World};
use super::program::Program;
use crate::batch::machine::Machine;
use crate::batch::run::{Reading, Span};
use crate::batch::servers::SERVERS;
use crate::batch::{Profile, Setting};
use crate::hardware::PS_PER_MS;
use crate::link::Conditions;
use crate::simulation::{Settings, Simulation, address};
use crate::sizes::Sizes;
use crate::timed::peer::Peer;
use crate::timed::run::{OLD_TCP, device, topology};
use crate::timed::servers::Servers;
use crate::timed::world::Rest;
use crate::web::Web;
use crate::web::run::{Counts, Outcome, outcome};

/// The side that serves, which is the modelled one.
const SERVER: usize = 1;
const CLIENTS: usize = 0;
const PORT: u16 = 80;

/// Connections of which tcp remembers the end for a minute: as many as the stack as it ships has room for, which no run fills.
/// The clients close first, so it is their tcp that has them.
const SIZES: Sizes = Sizes { connections: 16_384, sockets_per_domain: 4096, listeners_per_domain: 8 };

/// Segments with which a connection begins.
pub fn initial_segments(profile: &Profile) -> u64 {
    (profile.initial_window_bytes / profile.maximum_segment).max(1)
}

/// The modelled stack's network: of the default one, with the initial window of its time.
fn network(profile: &Profile) -> Network {
    let metrics = Metrics { initcwnd: Some(initial_segments(profile) as u16), ..Metrics::default() };
    let peer = Cidr { address: address(CLIENTS).address, prefix_len: 32 };
    let (name, interface) = ("eft0".to_string(), Some("eft0".to_string()));
    Network {
        interfaces: vec![Interface { name, addresses: vec![address(SERVER)], auto: Vec::new() }],
        routes: vec![Route { destination: peer, gateway: None, interface, metric: 0, metrics }],
        neighbours: Vec::new(),
    }
}

/// Two stacks, one with a listener; a connection that does nothing has shown the way between them.
fn listening(profile: &Profile, seed: u64) -> Simulation {
    let settings = Settings {
        conditions: Conditions { delay: Duration::from_micros(5), ..Conditions::default() },
        topology: topology(profile),
        transport: if profile.modern_tcp { Vec::new() } else { OLD_TCP.to_vec() },
        sizes: SIZES,
        geometry: Geometry {
            slots: 4 * profile.streams + 32,
            // A ring begins with a quarter of this, and the options below keep to the exact number.
            send_len: 4 * profile.buffer_bytes.next_power_of_two() as usize,
            // The clients' host promises a window beyond what it has acknowledged, whether its programs have read or not.
            receive_len: 2 * profile.window_bytes.next_power_of_two() as usize,
        },
        device: device(profile),
        is_lasting: true,
        ..Settings::default()
    };
    let mut simulation = Simulation::new(seed, settings);
    simulation.applications.iter_mut().for_each(|application| application.by_hand = true);
    let now = simulation.now;
    simulation.stacks[SERVER].put_in_force(now, &network(profile), Vec::new());
    simulation.serve(0, 0, 0);
    simulation.stream(1, 0, 0);
    simulation.run(Duration::from_secs(5), |s| {
        let is_open = |side: usize| {
            let stream = s.applications[side].streams.first();
            let page = stream.and_then(|stream| s.stacks[side].domain.socket(stream.socket.slot));
            page.is_some_and(|page| page.flags() & flag::CONNECTED != 0)
        };
        is_open(SERVER) && is_open(CLIENTS)
    });
    simulation.run_for(Duration::from_millis(1));
    simulation
}

/// The scale in which the clients' host says its window.
fn scale(simulation: &Simulation) -> u8 {
    let stream = simulation.applications[SERVER].streams.first();
    let page = stream.and_then(|stream| simulation.stacks[SERVER].domain.socket(stream.socket.slot));
    page.map_or(0, |page| page.info().send_scale)
}

/// A world at time 0, with clients that begin in its first millisecond.
pub fn world<'a>(web: &'a Web, setting: &Setting, seed: u64) -> World<'a> {
    let exchanges = Exchanges::default();
    let asked = exchanges.clone();
    let clients = |host: Peer, to: Endpoint, _: Instant| Clients::new(web, (host, to), asked);
    let mut world = world_of(web, setting, seed, exchanges, clients);
    for client in 0..web.stack.streams {
        let at = world.rest.about(PS_PER_MS);
        world.at(at, Event::Client { client });
    }
    world
}

/// The same with clients on the given host that connect to the given end; the instant is that of time 0.
pub fn world_of<'a, C>(
    web: &'a Web,
    setting: &Setting,
    seed: u64,
    exchanges: Exchanges,
    clients: impl FnOnce(Peer, Endpoint, Instant) -> C,
) -> World<'a, C>
where
    C: Audience,
{
    let profile = &web.stack;
    let simulation = listening(profile, seed);
    let scale = scale(&simulation);
    let listener = simulation.applications[SERVER].listener().unwrap_or_default();
    let base: Instant = simulation.now;
    let [clients_end, end] = simulation.link.ends.clone();
    let [clients_stack, stack] = simulation.stacks;
    prepare(&stack, listener, profile);
    let peer = Peer::new(clients_stack, clients_end, Vec::new(), (profile.window_bytes, scale));
    let clients = clients(peer, Endpoint::new(address(SERVER).address, PORT), base);
    let load = Serving::new(web, Program::new(web, listener, exchanges), clients);
    let rest = Rest::new(profile, (Servers::new(stack, base), end), load, seed);
    let seats = setting.seats.map(|seat| (seat.core, seat.thread, seat.clock));
    World { machine: Machine::new(&seats, profile.polling), rest }
}

/// What connections inherit from their listener.
fn prepare(stack: &crate::stack::Stack, listener: SocketId, profile: &Profile) {
    if let Some(page) = stack.domain.socket(listener.slot) {
        page.set_option(Opt::SendBuffer, profile.buffer_bytes as u32);
        page.set_option(Opt::NoDelay, u32::from(!profile.nagle));
    }
}

/// Deterministic: the same arguments give the same outcome on any machine. The first seat is the program's.
pub fn run_for(web: &Web, setting: &Setting, seed: u64, span: Span) -> Outcome {
    let mut world = world(web, setting, seed);
    let begin = advance(&mut world, span.begins_ps());
    let end = advance(&mut world, span.ends_ps());
    outcome(web, &begin, &end, span.measured_ms)
}

fn advance(world: &mut World, until_ps: u64) -> Counts {
    world.advance(until_ps);
    Counts {
        connections: world.rest.load.clients.connections,
        bytes: world.rest.load.clients.bytes.clone(),
        stack: Reading {
            bytes: world.rest.load.clients.bytes.iter().sum(),
            sent_bytes: world.rest.sent_bytes,
            segments: world.rest.sent_segments,
            acknowledgements: world.rest.received_frames,
            busy_ps: SERVERS.map(|server| world.machine.busy_ps(server)),
            tally: world.machine.tally,
        },
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
