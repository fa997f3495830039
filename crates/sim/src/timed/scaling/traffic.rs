//! The connections of a stack with several instances of tcp as a workload.

use std::collections::VecDeque;

use eft_messages::{ComponentId, Role};

use super::costs::{Segments, Sent};
use super::host::Host;
use super::load::{Load, REQUEST_BYTES};
use super::programs::Programs;
use crate::batch::Profile;
use crate::batch::network::Wire;
use crate::batch::servers::Server;
use crate::device::WireFrame;
use crate::hardware::Work;
use crate::stack::Stack;
use crate::timed::charge::{component, times};
use crate::timed::frame::payload;
use crate::timed::peer::Peer;
use crate::timed::world::{Turn, Workload, World as Timed};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A program of the stack acts.
    Program { connection: usize },
    /// One of the peer's host begins.
    Begins { connection: usize },
    /// The oldest frame of that host is at the stack's device.
    Frame,
}

/// Payload, segments that had some, and how long all segments had the wire.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crossed {
    pub bytes: u64,
    pub segments: u64,
    pub ps: u64,
}

impl Crossed {
    fn count(&mut self, bytes: u64, ps: u64) {
        self.ps += ps;
        self.bytes += bytes;
        self.segments += u64::from(bytes > 0);
    }

    pub fn since(self, before: Crossed) -> Crossed {
        Crossed {
            bytes: self.bytes - before.bytes,
            segments: self.segments - before.segments,
            ps: self.ps - before.ps,
        }
    }
}

pub struct Connections<'a> {
    segments: &'a Segments,
    pub programs: Programs,
    pub host: Host,
    /// From the peer's host, and what is on it.
    wire: Wire,
    coming: VecDeque<WireFrame>,
    /// What has left each wire: to the peer's host, and from it.
    pub crossed: [Crossed; 2],
}

pub type World<'a> = Timed<'a, Connections<'a>>;

impl<'a> Connections<'a> {
    pub fn new((profile, segments): (&'a Profile, &'a Segments), programs: Programs, host: Host) -> Self {
        let wire = Wire::new(profile.network, profile.maximum_segment, 0);
        Self { segments, programs, host, wire, coming: VecDeque::new(), crossed: Default::default() }
    }
}

/// Segments that either side has sent again.
pub fn sent_again(world: &World) -> u64 {
    let of = |stack: &Stack| {
        let tcps = stack.peers().filter(|peer| peer.role == Role::Tcp);
        tcps.map(|tcp| stack.counter(tcp, "retransmitted_segments")).sum::<u64>()
    };
    of(&world.rest.servers.stack) + of(&world.rest.load.host.peer.stack)
}

impl Workload for Connections<'_> {
    type Event = Event;
    /// Changes of programs.
    type Taken = usize;

    fn peer(&self) -> &Peer {
        &self.host.peer
    }

    fn peer_mut(&mut self) -> &mut Peer {
        &mut self.host.peer
    }

    fn has_work(&self, server: Server) -> bool {
        self.programs.unseen(server).0 > 0
    }

    /// All that programs have changed, and what the payload costs.
    fn begin(&self, profile: &Profile, stack: &Stack, server: Server, turn: &mut Turn<Self>) {
        let (changes, pages) = self.programs.unseen(server);
        let tcp = component(server).filter(|_| server.kind() == Server::Tcp);
        let budget = profile.batch_max;
        turn.work += tcp.map_or(Work::default(), |tcp| self.segments.received(stack, tcp, budget));
        turn.work += times(profile.write, pages as u64);
        turn.messages += pages;
        turn.out.programs = changes;
    }

    fn show(&mut self, stack: &Stack, server: Server, changes: &usize) {
        self.programs.show(stack, server, *changes);
    }

    fn sent(&self, profile: &Profile, stack: &Stack, tcp: ComponentId, behind: usize) -> Work {
        self.segments.sent(profile, Sent::waiting(stack, tcp, behind))
    }

    /// Tells programs of what has come, and of room.
    fn hear(world: &mut Timed<Self>) {
        let effects = std::mem::take(&mut world.rest.servers.stack.effects);
        for connection in world.rest.load.programs.hear(&world.rest.servers.stack, &effects) {
            world.after(world.rest.profile.program_ps, Event::Program { connection });
        }
    }

    fn delivered(&self, _stack: &Stack) -> u64 {
        match self.host.load {
            Load::In => self.programs.read_bytes,
            Load::Out => self.host.read_bytes,
            Load::Requests => self.host.answers * REQUEST_BYTES,
        }
    }

    fn happened(world: &mut Timed<Self>, event: Event) {
        match event {
            Event::Program { connection } => {
                let before = world.backlog();
                if world.rest.load.programs.act(&mut world.rest.servers.stack, connection) {
                    world.after(world.rest.profile.program_ps, event);
                }
                world.tell(None, &before);
            }
            Event::Begins { connection } => {
                world.rest.load.host.begin(connection);
                world.run_peer();
            }
            Event::Frame => {
                let load = &mut world.rest.load;
                let frame = load.coming.pop_front();
                let bytes = frame.as_ref().map_or(0, payload);
                load.crossed[1].count(bytes, load.wire.takes_ps(bytes));
                world.receive(frame);
            }
        }
    }

    fn crossed(&mut self, payload: u64) {
        // Both wires are alike.
        self.crossed[0].count(payload, self.wire.takes_ps(payload));
    }

    /// The host's frames come one after the other, as fast as the link is.
    fn run_peer(world: &mut Timed<Self>) {
        let (now, now_ps) = (world.now(), world.machine.now_ps);
        let frames = world.rest.load.host.run(now);
        let way =
            if frames.is_empty() { 0 } else { world.rest.about(world.rest.profile.network.turnaround_ps) };
        for frame in frames {
            let load = &mut world.rest.load;
            let at = load.wire.send(now_ps + way, payload(&frame));
            load.coming.push_back(frame);
            world.at(at, Event::Frame);
        }
    }
}
