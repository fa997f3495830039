//! One run of tier 1: a setting, a profile, a seed, and the outcome.

use std::time::Duration;

use eft_channel::socket::{Geometry, Opt, flag};
use eft_component::DeviceInfo;

use super::bulk::{Bulk, Event, World};
use super::peer::Peer;
use super::programs::Programs;
use super::servers::Servers;
use super::world::Rest;
use crate::batch::machine::Machine;
use crate::batch::run::{Outcome, Reading, Span, outcome};
use crate::batch::servers::SERVERS;
use crate::batch::{Profile, Setting};
use crate::hardware::PS_PER_MS;
use crate::link::Conditions;
use crate::simulation::{Settings, Simulation};

/// Messages of a queue between two servers: of eft, and for so many that all that the streams' windows hold finds room. How long
/// NewtOS' queues are is not known, and tier 2's have no end; ip drops acknowledgements that find no room.
const QUEUE: usize = 1024;
const LONG_QUEUE: usize = 4096;

/// The servers on the way of packets, the filter among them if the profile has one.
pub fn topology(profile: &Profile) -> String {
    let queue = if profile.modern_tcp { QUEUE } else { LONG_QUEUE };
    let filter = profile.filter.map(|_| "filter");
    let servers = ["sockets", "tcp", "ip", "nic"].into_iter().chain(filter);
    let edges = [("sockets", "tcp"), ("tcp", "ip"), ("ip", "nic")];
    let edges = edges.into_iter().chain(filter.map(|filter| ("ip", filter)));
    let servers = servers.map(|name| format!("[[component]]\nname = \"{name}\"\n"));
    let edges = edges
        .map(|(one, other)| format!("[[edge]]\nbetween = [\"{one}\", \"{other}\"]\ncapacity = {queue}\n"));
    servers.chain(edges).collect()
}

/// Connections have states, and so grants.
const GRANTING: &str = "block all\npass proto { icmp tcp } keep state\n";
/// Verdicts may differ from packet to packet of a connection, so the filter grants nothing.
const QUESTIONING: &str = "pass all\nblock proto tcp flags U/U\n";

/// Congestion control opens the engines' windows later than tier 2 does: so much longer before anything is counted.
pub const SLOW_START_PS: u64 = 15 * PS_PER_MS;

/// What tcp of LwIP's time has not.
pub const OLD_TCP: [(&str, &str); 4] = [
    ("timestamps", "off"),
    ("tail-probes", "off"),
    ("slow-start-after-idle", "off"),
    ("min-tso-segs", "1000"),
];

/// The stacks' device. What merging costs a driver is not counted, and NewtOS' does not do it.
pub fn device(profile: &Profile) -> DeviceInfo {
    let usual = Settings::default().device;
    DeviceInfo { segment_max: profile.segment_bytes as u32, coalesce: false, ..usual }
}

/// Two stacks with open streams between them.
fn connected(profile: &Profile, seed: u64) -> Simulation {
    let settings = Settings {
        conditions: Conditions { delay: Duration::from_micros(5), ..Conditions::default() },
        topology: topology(profile),
        rules: if profile.questions().is_some() { QUESTIONING } else { GRANTING }.into(),
        transport: if profile.modern_tcp { Vec::new() } else { OLD_TCP.to_vec() },
        geometry: Geometry {
            slots: 2 * profile.streams + 8,
            // Rings have lengths of powers of two; the streams keep to the exact number below.
            send_len: profile.buffer_bytes.next_power_of_two() as usize,
            receive_len: profile.window_bytes.next_power_of_two() as usize,
        },
        device: device(profile),
        is_lasting: true,
        ..Settings::default()
    };
    let mut simulation = Simulation::new(seed, settings);
    simulation.applications.iter_mut().for_each(|application| application.by_hand = true);
    simulation.serve(0, 0, 0);
    for _ in 0..profile.streams {
        simulation.stream(1, 0, 0);
    }
    let streams = profile.streams;
    simulation.run(Duration::from_secs(5), |s| {
        let is_open = |side: usize, slot: u32| {
            s.stacks[side].domain.socket(slot).is_some_and(|page| page.flags() & flag::CONNECTED != 0)
        };
        let open = |side: usize| {
            s.applications[side].streams.iter().filter(|o| is_open(side, o.socket.slot)).count()
        };
        open(0) == streams && open(1) == streams
    });
    simulation.run_for(Duration::from_millis(1));
    for stream in &simulation.applications[0].streams {
        if let Some(page) = simulation.stacks[0].domain.socket(stream.socket.slot) {
            page.set_option(Opt::SendBuffer, profile.buffer_bytes as u32);
        }
    }
    simulation
}

/// A world at time 0, with programs that begin to send in its first milliseconds.
pub fn world<'a>(profile: &'a Profile, setting: &Setting, seed: u64) -> World<'a> {
    let simulation = connected(profile, seed);
    let sockets = |side: usize| simulation.applications[side].streams.iter().map(|s| s.socket).collect();
    let (programs, read_by) =
        (Programs::new(sockets(0), profile.write_bytes, profile.call.is_some()), sockets(1));
    let base = simulation.now;
    let ends = simulation.link.ends.clone();
    let [stack, other] = simulation.stacks;
    let [end, other_end] = ends;
    let scale = simulation.applications[0].streams.first().and_then(|s| stack.domain.socket(s.socket.slot));
    let scale = scale.map_or(0, |page| page.info().send_scale);
    let peer = Peer::new(other, other_end, read_by, (profile.window_bytes, scale));
    let seats = setting.seats.map(|seat| (seat.core, seat.thread, seat.clock));
    let of = (Servers::new(stack, base), end);
    let rest = Rest::new(profile, of, Bulk::new(programs, peer), seed);
    let mut world = World { machine: Machine::new(&seats, profile.polling), rest };
    for stream in 0..profile.streams {
        world.after(PS_PER_MS, Event::Program { stream });
    }
    world
}

/// Deterministic: the same arguments give the same outcome on any machine.
pub fn run(profile: &Profile, setting: &Setting, seed: u64, span: Span) -> Outcome {
    let mut world = world(profile, setting, seed);
    let begin = advance(&mut world, SLOW_START_PS + span.begins_ps());
    let end = advance(&mut world, SLOW_START_PS + span.ends_ps());
    outcome(&begin, &end, span.measured_ms)
}

pub fn advance(world: &mut World, until_ps: u64) -> Reading {
    world.advance(until_ps);
    Reading {
        bytes: world.rest.load.programs.acknowledged(&world.rest.servers.stack),
        sent_bytes: world.rest.sent_bytes,
        segments: world.rest.sent_segments,
        acknowledgements: world.rest.received_frames,
        busy_ps: SERVERS.map(|server| world.machine.busy_ps(server)),
        tally: world.machine.tally,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
