//! When each server and the program run, the costs of their turns, and the traffic on the wire.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use eft_base::Instant;
use eft_base::random::Random;
use eft_base::wire::{TCP_FIN, TCP_SYN};
use eft_messages::transport::IpToTransport;
use eft_messages::{ComponentId, Role};

use super::clients::{Clients, Done};
use super::program::{Deed, Program, Seen};
use crate::batch::Profile;
use crate::batch::machine::{Batch, Event, Machine};
use crate::batch::network::Wire;
use crate::batch::servers::Server;
use crate::device::{End, WireFrame};
use crate::hardware::Work;
use crate::stack::Stack;
use crate::timed::charge::{Taken, charge, times};
use crate::timed::frame::{payload, source_port};
use crate::timed::servers::Servers;
use crate::timed::telling::{Backlog, costs_calls, queued, tell};
use crate::web::Web;

/// What happens outside of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outside {
    /// A client's pause is over.
    Client {
        client: usize,
    },
    /// The oldest frame on the wire is at the clients' host.
    Arrived,
    /// That host takes the received frames.
    Look,
    HostDue,
    /// A frame of that host, by its number, is at the stack's device.
    Frame {
        number: u64,
    },
    /// A server's deadline.
    Due {
        server: Server,
    },
}

/// What a turn executes at its end.
#[derive(Default)]
pub struct Todo {
    /// What waited when it began. None: the server only pays its debts.
    taken: Option<Taken>,
    /// Of tcp: what the program has changed.
    seen: Seen,
    /// Of the program.
    deeds: Vec<Deed>,
}

/// Everything but the machine.
pub struct Rest<'a> {
    pub web: &'a Web,
    pub servers: Servers,
    end: Rc<RefCell<End>>,
    pub program: Program<'a>,
    pub clients: Clients<'a>,
    wire: Wire,
    flying: VecDeque<WireFrame>,
    /// At the clients' host, which has not looked.
    is_looking: bool,
    looked_ps: u64,
    host_due_ps: Option<u64>,
    /// On their way to the stack, by number; and when the last one of each connection arrives, which none overtakes.
    coming: BTreeMap<u64, WireFrame>,
    number: u64,
    last_frame_ps: BTreeMap<u16, u64>,
    random: Random,
    pub sent_segments: u64,
    pub sent_bytes: u64,
    pub received_frames: u64,
}

pub struct World<'a> {
    pub machine: Machine<Outside, Todo>,
    pub rest: Rest<'a>,
}

impl<'a> Rest<'a> {
    pub fn new(
        web: &'a Web,
        (servers, end): (Servers, Rc<RefCell<End>>),
        program: Program<'a>,
        clients: Clients<'a>,
        seed: u64,
    ) -> Self {
        let profile = &web.stack;
        Self {
            web,
            servers,
            end,
            program,
            clients,
            wire: Wire::new(profile.network, profile.maximum_segment, profile.streams),
            flying: VecDeque::new(),
            is_looking: false,
            looked_ps: 0,
            host_due_ps: None,
            coming: BTreeMap::new(),
            number: 0,
            last_frame_ps: BTreeMap::new(),
            random: Random::new(seed),
            sent_segments: 0,
            sent_bytes: 0,
            received_frames: 0,
        }
    }

    fn profile(&self) -> &'a Profile {
        &self.web.stack
    }

    fn stack(&self) -> &Stack {
        &self.servers.stack
    }

    /// Anything from half to one and a half of a time: programs and peers are not regular.
    pub fn about(&mut self, time_ps: u64) -> u64 {
        time_ps / 2 + self.random.below(time_ps + 1)
    }

    fn has_work(&self, server: Server, now_ps: u64) -> bool {
        match server {
            Server::Front => self.program.has_work(),
            Server::Tcp if self.program.has_changed() => true,
            _ => self.servers.has_work(server, now_ps),
        }
    }

    /// The beginning of a turn: it takes what waits, within the budget.
    fn begin(&self, server: Server) -> Batch<Todo> {
        let (profile, budget) = (self.profile(), self.profile().batch_max);
        if server == Server::Front {
            let turn = self.program.begin(self.stack(), budget);
            let (work, copying, messages) = (turn.work, turn.copying, turn.deeds.len());
            let out = Todo { taken: Some(Taken::default()), seen: Seen::default(), deeds: turn.deeds };
            return Batch { work, copying, messages, out };
        }
        let frames = self.servers.frames(self.end.borrow().incoming.len());
        let charge = charge(profile, self.stack(), server, frames, budget);
        let messages = charge.taken.messages();
        let out = Todo { taken: Some(charge.taken), ..Todo::default() };
        let mut batch = Batch { work: charge.work, copying: Work::default(), messages, out };
        if server == Server::Tcp {
            let seen = self.program.unseen();
            batch.work += times(profile.write, seen.pages as u64);
            batch.work += times(self.web.handshake, (seen.closes + self.ends(budget)) as u64);
            batch.messages += seen.pages;
            batch.out.seen = seen;
        }
        batch
    }

    /// How many of the segments that tcp's turn takes begin or end a connection.
    fn ends(&self, budget: usize) -> usize {
        let of_ip = self.stack().waiting(ComponentId::TCP).filter(|(from, _)| from.role == Role::Ip);
        let taken = of_ip.flat_map(|(_, lines)| lines.take(budget));
        let flags = taken.filter_map(|line| match IpToTransport::decode(&line)? {
            IpToTransport::Deliver { packet, header_len, .. } => {
                let mut tcp = [0; 14];
                self.stack().read(packet.skip(header_len.into()), &mut tcp)?;
                Some(tcp[13])
            }
            _ => None,
        });
        flags.filter(|flags| flags & (TCP_SYN | TCP_FIN) != 0).count()
    }
}

impl World<'_> {
    pub fn handle(&mut self, event: Event<Outside>) {
        let costs = &self.rest.web.stack.costs;
        match event {
            Event::Ends { thread, version } => self.ended(thread, version),
            Event::Woken { thread } => self.machine.woken(costs, thread),
            Event::Interrupt => self.machine.interrupt(costs),
            Event::World(outside) => self.happened(outside),
        }
    }

    fn now(&self) -> Instant {
        self.rest.servers.now(self.machine.now_ps)
    }

    fn happened(&mut self, outside: Outside) {
        match outside {
            Outside::Client { client } => {
                let now = self.now();
                self.rest.clients.act(now, client);
                self.run_clients();
            }
            Outside::Arrived => {
                let frame = self.rest.flying.pop_front();
                frame.into_iter().for_each(|frame| self.rest.clients.arrive(frame));
                if !std::mem::replace(&mut self.rest.is_looking, true) {
                    let gap = self.rest.about(self.rest.web.stack.network.gather_ps);
                    let at = self.machine.now_ps.max(self.rest.looked_ps + gap);
                    self.machine.at(at, Event::World(Outside::Look));
                }
            }
            Outside::Look => {
                self.rest.is_looking = false;
                self.rest.looked_ps = self.machine.now_ps;
                self.rest.clients.gather();
                self.run_clients();
            }
            // A deadline that another one has replaced is none.
            Outside::HostDue => {
                let now_ps = self.machine.now_ps;
                if self.rest.host_due_ps.take_if(|due| *due == now_ps).is_some() {
                    self.run_clients();
                }
            }
            Outside::Frame { number } => {
                self.rest.received_frames += 1;
                let frame = self.rest.coming.remove(&number);
                self.rest.end.borrow_mut().incoming.extend(frame);
                self.machine.tell_of_frame(&self.rest.web.stack.costs);
            }
            Outside::Due { server } => {
                if !self.rest.servers.is_due(server, self.machine.now_ps) {
                    return;
                }
                if self.rest.has_work(server, self.machine.now_ps) {
                    // Its turn watches again; until then this deadline is past, and would come back at once.
                    return self.machine.tell(&self.rest.web.stack.costs, None, server, false);
                }
                self.watch(server);
            }
        }
    }

    /// The clients' host does what it has to do now.
    fn run_clients(&mut self) {
        let now_ps = self.machine.now_ps;
        let now = self.now();
        let Done { frames, ready } = self.rest.clients.run(now);
        frames.into_iter().for_each(|frame| self.send_to_stack(frame));
        for client in ready {
            let at = now_ps + self.rest.about(self.rest.web.client_ps);
            self.machine.at(at, Event::World(Outside::Client { client }));
        }
        let due = self.rest.clients.deadline().map(|at| self.rest.servers.ps(at, now_ps));
        if let Some(due) = due
            && self.rest.host_due_ps.is_none_or(|known| due < known)
        {
            self.rest.host_due_ps = Some(due);
            self.machine.at(due, Event::World(Outside::HostDue));
        }
    }

    /// A frame of the clients' host: it comes after all that its connection sent before.
    fn send_to_stack(&mut self, frame: WireFrame) {
        let way = self.rest.about(self.rest.web.stack.network.turnaround_ps);
        let last = self.rest.last_frame_ps.entry(source_port(&frame)).or_default();
        let at = (self.machine.now_ps + way).max(*last);
        *last = at;
        self.rest.number += 1;
        let number = self.rest.number;
        self.rest.coming.insert(number, frame);
        self.machine.at(at, Event::World(Outside::Frame { number }));
    }

    /// A server's deadline may have changed.
    fn watch(&mut self, server: Server) {
        if let Some(due) = self.rest.servers.new_deadline(server, self.machine.now_ps) {
            self.machine.at(due, Event::World(Outside::Due { server }));
        }
    }

    fn backlog(&self) -> Backlog {
        let (rest, now_ps) = (&self.rest, self.machine.now_ps);
        let messages = |server| {
            let counts = costs_calls(&self.machine, &rest.web.stack.costs, server);
            if counts { queued(rest.stack(), server) } else { 0 }
        };
        Backlog::of(&rest.servers.all, |server| rest.has_work(server, now_ps), messages)
    }

    fn tell(&mut self, from: Server, before: &Backlog) {
        let (now, rest) = (self.backlog(), &self.rest);
        let of = (&rest.servers, &rest.web.stack.costs);
        tell(&mut self.machine, of, Some(from), (before, &now));
    }

    fn ended(&mut self, thread: usize, version: u64) {
        let Some((server, todo)) = self.machine.ended(thread, version) else { return };
        if let Some(taken) = &todo.taken {
            let before = self.backlog();
            if server == Server::Front {
                self.rest.program.end(&mut self.rest.servers.stack, &todo.deeds);
            } else {
                self.execute(server, taken, todo.seen.changes);
            }
            self.tell(server, &before);
        }
        let (rest, now_ps) = (&self.rest, self.machine.now_ps);
        let costs = &rest.web.stack.costs;
        let slept = self.machine.go_on(costs, thread, |s| rest.has_work(s, now_ps), |s| rest.begin(s));
        if let Some(server) = slept {
            let sleeps = self.rest.servers.go_to_sleep(server, now_ps, self.rest.web.stack.batch_max);
            self.watch(server);
            if !sleeps {
                self.machine.tell(&self.rest.web.stack.costs, None, server, true);
            }
        }
    }

    fn execute(&mut self, server: Server, taken: &Taken, changes: usize) {
        let (now_ps, profile) = (self.machine.now_ps, self.rest.profile());
        self.rest.program.show(&self.rest.servers.stack, changes);
        let received = self.rest.end.borrow().incoming.len();
        let segments = self.rest.servers.execute(server, taken, now_ps, profile.flushes);
        self.machine.owe(server, times(profile.tcp.segment, segments));
        if server == Server::Driver {
            let left = self.rest.end.borrow().incoming.len();
            self.rest.servers.driver_took(taken, received, left);
            self.send_frames();
        }
        self.watch(server);
        self.hear();
    }

    /// Puts the device's frames onto the wire.
    fn send_frames(&mut self) {
        let frames: Vec<WireFrame> = self.rest.end.borrow_mut().outgoing.drain(..).collect();
        for frame in frames {
            let bytes = payload(&frame);
            self.rest.sent_segments += u64::from(bytes > 0);
            self.rest.sent_bytes += bytes;
            let at = self.rest.wire.send(self.machine.now_ps, bytes);
            self.rest.flying.push_back(frame);
            self.machine.at(at, Event::World(Outside::Arrived));
        }
    }

    /// The program is told of what tcp has for it.
    fn hear(&mut self) {
        let effects = std::mem::take(&mut self.rest.servers.stack.effects);
        let was_empty = !self.rest.program.has_work();
        let count = self.rest.program.hear(&self.rest.servers.stack, &effects);
        for i in 0..count {
            let is_first = was_empty && i == 0;
            self.machine.tell(&self.rest.web.stack.costs, Some(Server::Tcp), Server::Front, is_first);
        }
    }
}
