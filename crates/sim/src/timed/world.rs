//! When each server runs, the costs of its turns, and the traffic on the wire.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use eft_base::random::Random;
use eft_base::{Instant, SocketId};
use eft_component::transport::Effect as RecordedEvent;

use super::charge::{Taken, charge, component, times};
use super::frame::payload;
use super::peer::Peer;
use super::programs::{Programs, Written};
use super::servers::Servers;
use super::telling::{Backlog, costs_calls, queued, tell};
use crate::batch::Profile;
use crate::batch::machine::{Batch, Event, Machine};
use crate::batch::network::Wire;
use crate::batch::servers::{Server, scaled};
use crate::device::{End, WireFrame};
use crate::hardware::Work;
use crate::node::Effect;
use crate::stack::Stack;

/// What happens outside of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outside {
    Program {
        stream: usize,
    },
    /// The oldest frame on the wire is at the peer.
    Arrived,
    /// The peer takes the received frames.
    Gathered,
    PeerDue,
    /// The peer's response has arrived.
    Answered,
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
    writes: usize,
    /// Of the syscall server: programs' writes, and tcp's answers.
    calls: (usize, usize),
}

/// Everything but the machine.
pub struct Rest<'a> {
    pub profile: &'a Profile,
    pub servers: Servers,
    end: Rc<RefCell<End>>,
    pub programs: Programs,
    pub peer: Peer,
    wire: Wire,
    flying: VecDeque<WireFrame>,
    coming: VecDeque<VecDeque<WireFrame>>,
    is_gathering: bool,
    peer_due_ps: Option<u64>,
    random: Random,
    pub sent_segments: u64,
    pub sent_bytes: u64,
    pub acknowledgements: u64,
}

pub struct World<'a> {
    pub machine: Machine<Outside, Todo>,
    pub rest: Rest<'a>,
}

impl<'a> Rest<'a> {
    pub fn new(
        profile: &'a Profile,
        (stack, end): (Stack, Rc<RefCell<End>>),
        programs: Programs,
        peer: Peer,
        base: Instant,
        seed: u64,
    ) -> Self {
        Self {
            profile,
            servers: Servers::new(stack, base),
            end,
            peer,
            wire: Wire::new(profile.network, profile.maximum_segment, programs.count()),
            programs,
            flying: VecDeque::new(),
            coming: VecDeque::new(),
            is_gathering: false,
            peer_due_ps: None,
            random: Random::new(seed),
            sent_segments: 0,
            sent_bytes: 0,
            acknowledgements: 0,
        }
    }

    /// A random time from half to one and a half of `time_ps`: programs and peers are not regular.
    pub fn about(&mut self, time_ps: u64) -> u64 {
        time_ps / 2 + self.random.below(time_ps + 1)
    }

    fn has_work(&self, server: Server, now_ps: u64) -> bool {
        match component(server) {
            Some(_) if server == Server::Tcp && !self.programs.unseen.is_empty() => true,
            Some(_) => self.servers.has_work(server, now_ps),
            None => server == Server::Front && !self.programs.calls.is_empty(),
        }
    }

    fn received(&self) -> usize {
        self.end.borrow().incoming.len()
    }

    /// The beginning of a turn: it takes what waits, within the budget.
    fn begin(&self, server: Server) -> Batch<Todo> {
        let budget = self.profile.batch_max;
        let charge =
            charge(self.profile, &self.servers.stack, server, self.servers.frames(self.received()), budget);
        let mut batch = Batch {
            work: charge.work,
            copying: Work::default(),
            messages: charge.taken.messages(),
            out: Todo { taken: Some(charge.taken), writes: 0, calls: (0, 0) },
        };
        match server {
            Server::Front => {
                let calls = &self.programs.calls;
                batch.out.calls = (calls.writes.len().min(budget), calls.written.len().min(budget));
                batch.messages = batch.out.calls.0 + batch.out.calls.1;
                batch.work += times(self.profile.call.unwrap_or_default(), batch.messages as u64);
            }
            Server::Tcp => self.begin_writes(&mut batch),
            _ => {}
        }
        batch
    }

    /// Writes that a turn of tcp begins with: a call is a message like others; in rings tcp sees all writes.
    fn begin_writes(&self, batch: &mut Batch<Todo>) {
        let count = if self.profile.call.is_some() { self.profile.batch_max } else { usize::MAX };
        let writes = self.programs.unseen.len().min(count);
        batch.out.writes = writes;
        batch.copying = scaled(self.profile.copy_kib, self.programs.bytes(&self.servers.stack, writes));
        let marks = self.programs.marks(writes);
        batch.messages += marks;
        batch.work += times(self.profile.write, marks as u64) + batch.copying;
    }
}

impl World<'_> {
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
            Outside::Program { stream } if self.rest.profile.call.is_some() => {
                let was_empty = self.rest.programs.calls.is_empty();
                self.rest.programs.calls.writes.push_back(stream);
                self.machine.tell(&self.rest.profile.costs, None, Server::Front, was_empty);
            }
            Outside::Program { stream } => {
                let before = self.backlog();
                if self.rest.programs.write(&mut self.rest.servers.stack, stream) {
                    self.after(self.rest.profile.program_ps, Outside::Program { stream });
                }
                self.tell(None, &before);
            }
            Outside::Arrived => {
                let frame = self.rest.flying.pop_front();
                frame.into_iter().for_each(|frame| self.rest.peer.arrive(frame));
                if !std::mem::replace(&mut self.rest.is_gathering, true) {
                    self.after(self.rest.profile.network.gather_ps, Outside::Gathered);
                }
            }
            Outside::Gathered => {
                self.rest.is_gathering = false;
                self.rest.peer.gather();
                self.run_peer();
            }
            // A deadline that another one has replaced is none.
            Outside::PeerDue => {
                if self.rest.peer_due_ps.take_if(|due| *due == now_ps).is_some() {
                    self.run_peer();
                }
            }
            Outside::Answered => {
                let frames = self.rest.coming.pop_front().unwrap_or_default();
                self.rest.acknowledgements += frames.len() as u64;
                self.rest.end.borrow_mut().incoming.extend(frames);
                self.machine.tell_of_frame(&self.rest.profile.costs);
            }
            Outside::Due { server } => {
                if !self.rest.servers.is_due(server, now_ps) {
                    return;
                }
                if self.rest.has_work(server, now_ps) {
                    // Its turn watches again; until then this deadline is past, and would come back at once.
                    return self.machine.tell(&self.rest.profile.costs, None, server, false);
                }
                self.watch(server);
            }
        }
    }

    fn run_peer(&mut self) {
        let now = self.rest.servers.now(self.machine.now_ps);
        let answers = self.rest.peer.run(now);
        if !answers.is_empty() {
            self.rest.coming.push_back(answers);
            self.after(self.rest.profile.network.turnaround_ps, Outside::Answered);
        }
        let due = self.rest.peer.deadline().map(|at| self.rest.servers.ps(at, self.machine.now_ps));
        if let Some(due) = due
            && self.rest.peer_due_ps.is_none_or(|known| due < known)
        {
            self.rest.peer_due_ps = Some(due);
            self.machine.at(due, Event::World(Outside::PeerDue));
        }
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
            let writes = if server == Server::Tcp { rest.programs.unseen.len() as u64 } else { 0 };
            let counts = costs_calls(&self.machine, &rest.profile.costs, server);
            if counts { queued(&rest.servers.stack, server) + writes } else { 0 }
        };
        Backlog::of(&rest.servers.all, |server| rest.has_work(server, now_ps), messages)
    }

    fn tell(&mut self, from: Option<Server>, before: &Backlog) {
        let (now, rest) = (self.backlog(), &self.rest);
        let of = (&rest.servers, &rest.profile.costs);
        tell(&mut self.machine, of, from, (before, &now));
    }

    fn ended(&mut self, thread: usize, version: u64) {
        let Some((server, todo)) = self.machine.ended(thread, version) else { return };
        if let Some(taken) = &todo.taken {
            let before = self.backlog();
            match component(server) {
                Some(_) => self.execute(server, taken, todo.writes),
                None => self.make_calls(todo.calls),
            }
            self.tell(Some(server), &before);
        }
        let (rest, now_ps) = (&self.rest, self.machine.now_ps);
        let costs = &rest.profile.costs;
        let slept = self.machine.go_on(costs, thread, |s| rest.has_work(s, now_ps), |s| rest.begin(s));
        let sleepers: Vec<Server> = slept.map_or(Vec::new(), |s| self.machine.on_thread_of(s).into());
        sleepers.into_iter().for_each(|server| self.go_to_sleep(server));
    }

    fn go_to_sleep(&mut self, server: Server) {
        let (now_ps, profile) = (self.machine.now_ps, self.rest.profile);
        let sleeps = self.rest.servers.go_to_sleep(server, now_ps, profile.batch_max);
        self.watch(server);
        if !sleeps {
            self.machine.tell(&profile.costs, None, server, true);
        }
    }

    fn execute(&mut self, server: Server, taken: &Taken, writes: usize) {
        let (now_ps, profile) = (self.machine.now_ps, self.rest.profile);
        let seen = self.rest.programs.show(&self.rest.servers.stack, writes);
        let received = self.rest.received();
        let segments = self.rest.servers.execute(server, taken, now_ps, profile.flushes);
        self.machine.owe(server, times(profile.tcp.segment, segments));
        if server == Server::Driver {
            let left = self.rest.received();
            self.rest.servers.driver_took(taken, received, left);
            self.send_frames();
        }
        self.watch(server);
        self.answer(&seen);
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

    /// Writes that tcp has seen return to their programs by the syscall server.
    fn answer(&mut self, seen: &[Written]) {
        if self.rest.profile.call.is_none() {
            return;
        }
        for Written { stream, .. } in seen.iter().filter(|written| written.is_over) {
            let was_empty = self.rest.programs.calls.is_empty();
            self.rest.programs.calls.written.push_back(*stream);
            self.machine.tell(&self.rest.profile.costs, Some(Server::Tcp), Server::Front, was_empty);
        }
    }

    /// Tells programs of room.
    fn hear(&mut self) {
        for effect in std::mem::take(&mut self.rest.servers.stack.effects) {
            let Effect::Transport(RecordedEvent::Writable(socket)) = effect else { continue };
            let Some(stream) = self.rest.programs.stream_of(SocketId { ..socket }) else { continue };
            if !self.rest.programs.has_room(&self.rest.servers.stack, stream) {
                continue;
            }
            self.rest.programs.unplug(&self.rest.servers.stack, stream);
            if !self.rest.programs.is_waiting(stream) {
                continue;
            }
            let is_over = self.rest.programs.go_on(&mut self.rest.servers.stack, stream);
            if is_over && self.rest.profile.call.is_none() {
                self.after(self.rest.profile.program_ps, Outside::Program { stream });
            }
        }
    }

    /// A turn of the syscall server.
    fn make_calls(&mut self, (writes, written): (usize, usize)) {
        let rest = &mut self.rest;
        for stream in rest.programs.calls.writes.drain(..writes).collect::<Vec<_>>() {
            rest.programs.write(&mut rest.servers.stack, stream);
        }
        for stream in self.rest.programs.calls.written.drain(..written).collect::<Vec<_>>() {
            self.after(self.rest.profile.program_ps, Outside::Program { stream });
        }
    }
}
