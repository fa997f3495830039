//! When each server and each program runs, the costs of the servers' turns, and the traffic on the wire.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use eft_base::random::Random;
use eft_messages::Role;

use super::costs::{Segments, Sent};
use super::host::Host;
use super::programs::Programs;
use crate::batch::Profile;
use crate::batch::machine::{Batch, Event, Machine};
use crate::batch::network::Wire;
use crate::batch::servers::Server;
use crate::device::{End, WireFrame};
use crate::hardware::Work;
use crate::stack::Stack;
use crate::timed::charge::{Taken, charge, component, times};
use crate::timed::frame::payload;
use crate::timed::servers::Servers;
use crate::timed::telling::{Backlog, tell};

/// What happens outside of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outside {
    /// A program of the stack acts.
    Program {
        connection: usize,
    },
    /// One of the peer's host begins.
    Begins {
        connection: usize,
    },
    /// The oldest frame on the wire is at the peer's host.
    Arrived,
    /// That host takes the received frames.
    Gathered,
    HostDue,
    /// The oldest frame of that host is at the stack's device.
    Frame,
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
    /// Of programs.
    changes: usize,
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

/// Everything but the machine.
pub struct Rest<'a> {
    profile: &'a Profile,
    segments: &'a Segments,
    pub servers: Servers,
    end: Rc<RefCell<End>>,
    pub programs: Programs,
    pub host: Host,
    /// To the peer's host, and from it.
    wires: [Wire; 2],
    flying: VecDeque<WireFrame>,
    coming: VecDeque<WireFrame>,
    is_gathering: bool,
    host_due_ps: Option<u64>,
    random: Random,
    /// What has left each wire.
    pub crossed: [Crossed; 2],
}

pub struct World<'a> {
    pub machine: Machine<Outside, Todo>,
    pub rest: Rest<'a>,
}

impl<'a> Rest<'a> {
    pub fn new(
        (profile, segments): (&'a Profile, &'a Segments),
        (servers, end): (Servers, Rc<RefCell<End>>),
        programs: Programs,
        host: Host,
        seed: u64,
    ) -> Self {
        let wire = || Wire::new(profile.network, profile.maximum_segment, programs.count());
        Self {
            profile,
            segments,
            servers,
            end,
            host,
            wires: [wire(), wire()],
            programs,
            flying: VecDeque::new(),
            coming: VecDeque::new(),
            is_gathering: false,
            host_due_ps: None,
            random: Random::new(seed),
            crossed: [Crossed::default(); 2],
        }
    }

    /// A random time from half to one and a half of `time_ps`: programs and peers are not regular.
    pub fn about(&mut self, time_ps: u64) -> u64 {
        time_ps / 2 + self.random.below(time_ps + 1)
    }

    fn stack(&self) -> &Stack {
        &self.servers.stack
    }

    fn has_work(&self, server: Server, now_ps: u64) -> bool {
        self.programs.unseen(server).0 > 0 || self.servers.has_work(server, now_ps)
    }

    fn count(&mut self, wire: usize, frame: Option<&WireFrame>) {
        let bytes = frame.map_or(0, payload);
        self.crossed[wire].count(bytes, self.wires[wire].takes_ps(bytes));
    }

    fn received(&self) -> usize {
        self.end.borrow().incoming.len()
    }

    /// The beginning of a turn: it takes what waits, within the budget, and all that programs have changed.
    fn begin(&self, server: Server) -> Batch<Todo> {
        let (profile, budget) = (self.profile, self.profile.batch_max);
        let charge = charge(profile, self.stack(), server, self.servers.frames(self.received()), budget);
        let (changes, pages) = self.programs.unseen(server);
        let tcp = component(server).filter(|_| server.kind() == Server::Tcp);
        let payload = tcp.map_or(Work::default(), |tcp| self.segments.received(self.stack(), tcp, budget));
        Batch {
            work: charge.work + payload + times(profile.write, pages as u64),
            copying: Work::default(),
            messages: charge.taken.messages() + pages,
            out: Todo { taken: Some(charge.taken), changes },
        }
    }
}

impl World<'_> {
    /// Segments that either side has sent again.
    pub fn sent_again(&self) -> u64 {
        let of = |stack: &Stack| {
            let tcps = stack.peers().filter(|peer| peer.role == Role::Tcp);
            tcps.map(|tcp| stack.counter(tcp, "retransmitted_segments")).sum::<u64>()
        };
        of(self.rest.stack()) + of(self.rest.host.stack())
    }

    pub fn handle(&mut self, event: Event<Outside>) {
        let costs = &self.rest.profile.costs;
        match event {
            Event::Ends { thread, version } => self.ended(thread, version),
            Event::Woken { thread } => self.machine.woken(costs, thread),
            Event::Interrupt => self.machine.interrupt(costs),
            Event::World(outside) => self.happened(outside),
        }
    }

    pub fn after(&mut self, time_ps: u64, outside: Outside) {
        let at = self.machine.now_ps + self.rest.about(time_ps);
        self.machine.at(at, Event::World(outside));
    }

    fn happened(&mut self, outside: Outside) {
        let now_ps = self.machine.now_ps;
        match outside {
            Outside::Program { connection } => {
                let before = self.backlog();
                if self.rest.programs.act(&mut self.rest.servers.stack, connection) {
                    self.after(self.rest.profile.program_ps, outside);
                }
                self.tell(None, &before);
            }
            Outside::Begins { connection } => {
                self.rest.host.begin(connection);
                self.run_host();
            }
            Outside::Arrived => {
                let frame = self.rest.flying.pop_front();
                self.rest.count(0, frame.as_ref());
                frame.into_iter().for_each(|frame| self.rest.host.arrive(frame));
                if !std::mem::replace(&mut self.rest.is_gathering, true) {
                    self.after(self.rest.profile.network.gather_ps, Outside::Gathered);
                }
            }
            Outside::Gathered => {
                self.rest.is_gathering = false;
                self.rest.host.gather();
                self.run_host();
            }
            // A deadline that another one has replaced is none.
            Outside::HostDue => {
                if self.rest.host_due_ps.take_if(|due| *due == now_ps).is_some() {
                    self.run_host();
                }
            }
            Outside::Frame => {
                let frame = self.rest.coming.pop_front();
                self.rest.count(1, frame.as_ref());
                self.rest.end.borrow_mut().incoming.extend(frame);
                self.machine.tell_of_frame(&self.rest.profile.costs);
            }
            Outside::Due { server } => self.due(server),
        }
    }

    fn due(&mut self, server: Server) {
        let now_ps = self.machine.now_ps;
        if !self.rest.servers.is_due(server, now_ps) {
            return;
        }
        if self.rest.has_work(server, now_ps) {
            // Its turn watches again; until then this deadline is past, and would come back at once.
            return self.machine.tell(&self.rest.profile.costs, None, server, false);
        }
        self.watch(server);
    }

    /// The peer's host does what it has to do now. Its frames come one after the other, as fast as the link is.
    fn run_host(&mut self) {
        let now_ps = self.machine.now_ps;
        let frames = self.rest.host.run(self.rest.servers.now(now_ps));
        let way =
            if frames.is_empty() { 0 } else { self.rest.about(self.rest.profile.network.turnaround_ps) };
        for frame in frames {
            let bytes = payload(&frame);
            let at = self.rest.wires[1].send(now_ps + way, bytes);
            self.rest.coming.push_back(frame);
            self.machine.at(at, Event::World(Outside::Frame));
        }
        let due = self.rest.host.deadline().map(|at| self.rest.servers.ps(at, now_ps));
        if let Some(due) = due
            && self.rest.host_due_ps.is_none_or(|known| due < known)
        {
            self.rest.host_due_ps = Some(due);
            self.machine.at(due, Event::World(Outside::HostDue));
        }
    }

    /// A server's deadline may have changed.
    fn watch(&mut self, server: Server) {
        if let Some(due) = self.rest.servers.new_deadline(server, self.machine.now_ps) {
            self.machine.at(due, Event::World(Outside::Due { server }));
        }
    }

    /// No core is shared, so no message costs a call.
    fn backlog(&self) -> Backlog {
        let (rest, now_ps) = (&self.rest, self.machine.now_ps);
        Backlog::of(&rest.servers.all, |server| rest.has_work(server, now_ps), |_| 0)
    }

    fn tell(&mut self, from: Option<Server>, before: &Backlog) {
        let (now, rest) = (self.backlog(), &self.rest);
        tell(&mut self.machine, (&rest.servers, &rest.profile.costs), from, (before, &now));
    }

    fn ended(&mut self, thread: usize, version: u64) {
        let Some((server, todo)) = self.machine.ended(thread, version) else { return };
        if let Some(taken) = &todo.taken {
            let before = self.backlog();
            self.execute(server, taken, todo.changes);
            self.tell(Some(server), &before);
        }
        let (rest, now_ps) = (&self.rest, self.machine.now_ps);
        let costs = &rest.profile.costs;
        let slept = self.machine.go_on(costs, thread, |s| rest.has_work(s, now_ps), |s| rest.begin(s));
        if let Some(server) = slept {
            let sleeps = self.rest.servers.go_to_sleep(server, now_ps, self.rest.profile.batch_max);
            self.watch(server);
            if !sleeps {
                self.machine.tell(&self.rest.profile.costs, None, server, true);
            }
        }
    }

    fn execute(&mut self, server: Server, taken: &Taken, changes: usize) {
        let (now_ps, profile) = (self.machine.now_ps, self.rest.profile);
        let tcp = component(server).filter(|_| server.kind() == Server::Tcp);
        self.rest.programs.show(&self.rest.servers.stack, server, changes);
        let (received, waited) = (self.rest.received(), tcp.map(|tcp| Sent::waiting(self.rest.stack(), tcp)));
        self.rest.servers.execute(server, taken, now_ps, profile.flushes);
        if let (Some(tcp), Some(waited)) = (tcp, waited) {
            let sent = Sent::waiting(self.rest.stack(), tcp).since(waited);
            self.machine.owe(server, self.rest.segments.sent(profile, sent));
        }
        if server == Server::Driver {
            let left = self.rest.received();
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
            let at = self.rest.wires[0].send(self.machine.now_ps, bytes);
            self.rest.flying.push_back(frame);
            self.machine.at(at, Event::World(Outside::Arrived));
        }
    }

    /// Tells programs of what has come, and of room.
    fn hear(&mut self) {
        let effects = std::mem::take(&mut self.rest.servers.stack.effects);
        for connection in self.rest.programs.hear(&self.rest.servers.stack, &effects) {
            self.after(self.rest.profile.program_ps, Outside::Program { connection });
        }
    }
}
