//! The web server and its clients as a workload.

use std::collections::BTreeMap;

use eft_base::wire::{TCP_FIN, TCP_SYN};
use eft_messages::transport::IpToTransport;
use eft_messages::{ComponentId, Role};

use super::audience::{Audience, Done};
use super::clients::Clients;
use super::program::{Deed, Program, Seen};
use crate::batch::Profile;
use crate::batch::servers::Server;
use crate::device::WireFrame;
use crate::stack::Stack;
use crate::timed::charge::times;
use crate::timed::frame::source_port;
use crate::timed::peer::Peer;
use crate::timed::world::{Turn, Workload, World as Timed};
use crate::web::Web;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A client's pause is over, or its time has come.
    Client { client: usize },
    /// A frame of the clients' host, by its number, is at the stack's device.
    Frame { number: u64 },
}

/// What a turn takes.
#[derive(Default)]
pub struct Taken {
    /// Of tcp: what the program has changed.
    seen: Seen,
    /// Of the program.
    deeds: Vec<Deed>,
}

/// `C`: who asks.
pub struct Serving<'a, C = Clients> {
    pub web: &'a Web,
    pub program: Program<'a>,
    pub clients: C,
    /// On their way to the stack, by number; and when the last one of each connection arrives, which none overtakes.
    coming: BTreeMap<u64, WireFrame>,
    number: u64,
    last_frame_ps: BTreeMap<u16, u64>,
}

pub type World<'a, C = Clients> = Timed<'a, Serving<'a, C>>;

impl<'a, C> Serving<'a, C> {
    pub fn new(web: &'a Web, program: Program<'a>, clients: C) -> Self {
        let (coming, last_frame_ps) = (BTreeMap::new(), BTreeMap::new());
        Self { web, program, clients, coming, number: 0, last_frame_ps }
    }
}

/// How many of the segments that tcp's turn takes begin or end a connection.
fn ends(stack: &Stack, budget: usize) -> usize {
    let of_ip = stack.waiting(ComponentId::TCP).filter(|(from, _)| from.role == Role::Ip);
    let taken = of_ip.flat_map(|(_, lines)| lines.take(budget));
    let flags = taken.filter_map(|line| match IpToTransport::decode(&line)? {
        IpToTransport::Deliver { packet, header_len, .. } => {
            let mut tcp = [0; 14];
            stack.read(packet.skip(header_len.into()), &mut tcp)?;
            Some(tcp[13])
        }
        _ => None,
    });
    flags.filter(|flags| flags & (TCP_SYN | TCP_FIN) != 0).count()
}

impl<C: Audience> Workload for Serving<'_, C> {
    type Event = Event;
    type Taken = Taken;

    const LOOKS_AT_ONCE: bool = true;

    fn peer(&self) -> &Peer {
        self.clients.peer()
    }

    fn peer_mut(&mut self) -> &mut Peer {
        self.clients.peer_mut()
    }

    fn has_work(&self, server: Server) -> bool {
        match server {
            Server::Front => self.program.has_work(),
            Server::Tcp => self.program.has_changed(),
            _ => false,
        }
    }

    fn begin(&self, profile: &Profile, stack: &Stack, server: Server, turn: &mut Turn<Self>) {
        match server {
            Server::Front => {
                let of_program = self.program.begin(stack, profile.batch_max);
                (turn.work, turn.copying) = (of_program.work, of_program.copying);
                turn.messages = of_program.deeds.len();
                turn.out.programs.deeds = of_program.deeds;
            }
            Server::Tcp => {
                let seen = self.program.unseen();
                turn.work += times(profile.write, seen.pages as u64);
                let ends = seen.closes + ends(stack, profile.batch_max);
                turn.work += times(self.web.handshake, ends as u64);
                turn.messages += seen.pages;
                turn.out.programs.seen = seen;
            }
            _ => {}
        }
    }

    fn show(&mut self, stack: &Stack, _server: Server, taken: &Taken) {
        self.program.show(stack, taken.seen.changes);
    }

    /// The program is told of what tcp has for it.
    fn hear(world: &mut Timed<Self>) {
        let effects = std::mem::take(&mut world.rest.servers.stack.effects);
        let program = &mut world.rest.load.program;
        let was_empty = !program.has_work();
        for i in 0..program.hear(&world.rest.servers.stack, &effects) {
            let is_first = was_empty && i == 0;
            world.machine.tell(&world.rest.profile.costs, Some(Server::Tcp), Server::Front, is_first);
        }
    }

    fn end_of_front(world: &mut Timed<Self>, taken: &Taken) {
        world.rest.load.program.end(&mut world.rest.servers.stack, &taken.deeds);
    }

    fn delivered(&self, _stack: &Stack) -> u64 {
        self.clients.bytes().iter().sum()
    }

    fn parts(&self, _stack: &Stack) -> Vec<u64> {
        self.clients.bytes()
    }

    fn latencies(&self) -> &[u32] {
        self.clients.latencies()
    }

    fn happened(world: &mut Timed<Self>, event: Event) {
        match event {
            Event::Client { client } => {
                let now = world.now();
                if let Some(at_ps) = world.rest.load.clients.act(now, client) {
                    world.at(at_ps, Event::Client { client });
                }
                world.run_peer();
            }
            Event::Frame { number } => {
                let frame = world.rest.load.coming.remove(&number);
                world.receive(frame);
            }
        }
    }

    fn run_peer(world: &mut Timed<Self>) {
        let now = world.now();
        let Done { frames, ready } = world.rest.load.clients.run(now);
        frames.into_iter().for_each(|frame| send_to_stack(world, frame));
        for client in ready {
            world.after(world.rest.load.web.client_ps, Event::Client { client });
        }
    }
}

/// A frame of the clients' host: it comes after all that its connection sent before.
fn send_to_stack<C: Audience>(world: &mut Timed<Serving<C>>, frame: WireFrame) {
    let way = world.rest.about(world.rest.profile.network.turnaround_ps);
    let load = &mut world.rest.load;
    let last = load.last_frame_ps.entry(source_port(&frame)).or_default();
    let at = (world.machine.now_ps + way).max(*last);
    *last = at;
    load.number += 1;
    let number = load.number;
    load.coming.insert(number, frame);
    world.at(at, Event::Frame { number });
}
