//! When each server runs, the costs of its turns, and the traffic to the other end, whatever [programs](Workload) do.

mod workload;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use eft_base::Instant;
use eft_base::random::Random;
use eft_channel::queue::Inspection;
use eft_messages::ComponentId;

use super::charge::{Taken, charge, component};
use super::frame::payload;
use super::servers::Servers;
use super::telling::{Backlog, costs_calls, queued, tell};
use crate::batch::Profile;
use crate::batch::machine::{Batch, Event, Machine};
use crate::batch::network::Wire;
use crate::batch::servers::Server;
use crate::device::{End, WireFrame};
use crate::hardware::Work;

pub use workload::Workload;

/// What happens outside of the machine. `E`: of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outside<E> {
    Workload(E),
    /// The oldest frame on the wire is at the other end.
    Arrived,
    /// The other end takes the received frames.
    Gathered,
    PeerDue,
    /// A server's deadline.
    Due {
        server: Server,
    },
}

/// What a turn executes at its end. `T`: what it has taken of programs.
#[derive(Default)]
pub struct Todo<T> {
    /// What waited when it began. None: the server only pays its debts.
    taken: Option<Taken>,
    pub programs: T,
}

/// A turn that begins.
pub type Turn<W> = Batch<Todo<<W as Workload>::Taken>>;

/// Everything but the machine.
pub struct Rest<'a, W> {
    pub profile: &'a Profile,
    pub servers: Servers,
    end: Rc<RefCell<End>>,
    pub load: W,
    wire: Wire,
    flying: VecDeque<WireFrame>,
    /// The other end is to take what has arrived; and when it last did.
    is_gathering: bool,
    gathered_ps: u64,
    peer_due_ps: Option<u64>,
    random: Random,
    pub sent_segments: u64,
    pub sent_bytes: u64,
    pub received_frames: u64,
}

pub struct World<'a, W: Workload> {
    pub machine: Machine<Outside<W::Event>, Todo<W::Taken>>,
    pub rest: Rest<'a, W>,
}

impl<'a, W: Workload> Rest<'a, W> {
    pub fn new(
        profile: &'a Profile,
        (servers, end): (Servers, Rc<RefCell<End>>),
        load: W,
        seed: u64,
    ) -> Self {
        Self {
            profile,
            servers,
            end,
            load,
            wire: Wire::new(profile.network, profile.maximum_segment, 0),
            flying: VecDeque::new(),
            is_gathering: false,
            gathered_ps: 0,
            peer_due_ps: None,
            random: Random::new(seed),
            sent_segments: 0,
            sent_bytes: 0,
            received_frames: 0,
        }
    }

    /// A random time from half to one and a half of `time_ps`: programs and peers are not regular.
    pub fn about(&mut self, time_ps: u64) -> u64 {
        time_ps / 2 + self.random.below(time_ps + 1)
    }

    fn has_work(&self, server: Server, now_ps: u64) -> bool {
        self.load.has_work(server) || self.servers.has_work(server, now_ps)
    }

    fn received(&self) -> usize {
        self.end.borrow().incoming.len()
    }

    /// The beginning of a turn: it takes what waits, within the budget.
    fn begin(&self, server: Server) -> Turn<W> {
        let (profile, stack) = (self.profile, &self.servers.stack);
        let charge = charge(profile, stack, server, self.servers.frames(self.received()), profile.batch_max);
        let mut turn = Batch {
            work: charge.work,
            copying: Work::default(),
            messages: charge.taken.messages(),
            out: Todo { taken: Some(charge.taken), programs: W::Taken::default() },
        };
        self.load.begin(profile, stack, server, &mut turn);
        turn
    }
}

impl<W: Workload> World<'_, W> {
    pub fn handle(&mut self, event: Event<Outside<W::Event>>) {
        let costs = &self.rest.profile.costs;
        match event {
            Event::Ends { thread } => self.ended(thread),
            Event::Woken { thread } => self.machine.woken(costs, thread),
            Event::Interrupt => self.machine.interrupt(costs),
            Event::World(outside) => self.happened(outside),
        }
    }

    pub fn advance(&mut self, until_ps: u64) {
        while let Some(event) = self.machine.next(until_ps) {
            self.handle(event);
        }
    }

    pub fn now(&self) -> Instant {
        self.rest.servers.now(self.machine.now_ps)
    }

    pub fn at(&mut self, at_ps: u64, event: W::Event) {
        self.machine.at(at_ps, Event::World(Outside::Workload(event)));
    }

    pub fn after(&mut self, time_ps: u64, event: W::Event) {
        let at = self.machine.now_ps + self.rest.about(time_ps);
        self.at(at, event);
    }

    fn happened(&mut self, outside: Outside<W::Event>) {
        match outside {
            Outside::Workload(event) => W::happened(self, event),
            Outside::Arrived => self.arrived(),
            Outside::Gathered => {
                self.rest.is_gathering = false;
                self.rest.gathered_ps = self.machine.now_ps;
                self.rest.load.peer_mut().gather();
                self.run_peer();
            }
            // A deadline that another one has replaced is none.
            Outside::PeerDue => {
                let now_ps = self.machine.now_ps;
                if self.rest.peer_due_ps.take_if(|due| *due == now_ps).is_some() {
                    self.run_peer();
                }
            }
            Outside::Due { server } => self.due(server),
        }
    }

    fn arrived(&mut self) {
        if let Some(frame) = self.rest.flying.pop_front() {
            self.rest.load.crossed(payload(&frame));
            self.rest.load.peer_mut().arrive(frame);
        }
        if !std::mem::replace(&mut self.rest.is_gathering, true) {
            let gap = self.rest.about(self.rest.profile.network.gather_ps);
            let now_ps = self.machine.now_ps;
            let at = if W::LOOKS_AT_ONCE { now_ps.max(self.rest.gathered_ps + gap) } else { now_ps + gap };
            self.machine.at(at, Event::World(Outside::Gathered));
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

    /// The other end does what it has to do now.
    pub fn run_peer(&mut self) {
        W::run_peer(self);
        let now_ps = self.machine.now_ps;
        let due = self.rest.load.peer().deadline().map(|at| self.rest.servers.ps(at, now_ps));
        if let Some(due) = due
            && self.rest.peer_due_ps.is_none_or(|known| due < known)
        {
            self.rest.peer_due_ps = Some(due);
            self.machine.at(due, Event::World(Outside::PeerDue));
        }
    }

    /// Frames of the other end are at the stack's device, which tells its driver once.
    pub fn receive(&mut self, frames: impl IntoIterator<Item = WireFrame>) {
        let before = self.rest.received();
        self.rest.end.borrow_mut().incoming.extend(frames);
        self.rest.received_frames += (self.rest.received() - before) as u64;
        self.machine.tell_of_frame(&self.rest.profile.costs);
    }

    /// A server's deadline may have changed.
    fn watch(&mut self, server: Server) {
        if let Some(due) = self.rest.servers.new_deadline(server, self.machine.now_ps) {
            self.machine.at(due, Event::World(Outside::Due { server }));
        }
    }

    pub fn backlog(&self) -> Backlog {
        let (rest, now_ps) = (&self.rest, self.machine.now_ps);
        let messages = |server| {
            let counts = costs_calls(&self.machine, &rest.profile.costs, server);
            if counts { queued(&rest.servers.stack, server) + rest.load.messages(server) } else { 0 }
        };
        Backlog::of(&rest.servers.all, |server| rest.has_work(server, now_ps), messages)
    }

    /// Servers hear of what has come since then.
    pub fn tell(&mut self, from: Option<Server>, before: &Backlog) {
        let (now, rest) = (self.backlog(), &self.rest);
        let of = (&rest.servers, &rest.profile.costs);
        tell(&mut self.machine, of, from, (before, &now));
    }

    fn ended(&mut self, thread: usize) {
        let (server, todo) = self.machine.ended(thread);
        if let Some(taken) = &todo.taken {
            let before = self.backlog();
            match component(server) {
                Some(_) => self.execute(server, taken, &todo.programs),
                None => W::end_of_front(self, &todo.programs),
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

    fn execute(&mut self, server: Server, taken: &Taken, of_programs: &W::Taken) {
        let (now_ps, profile) = (self.machine.now_ps, self.rest.profile);
        self.rest.load.show(&self.rest.servers.stack, server, of_programs);
        let tcp = component(server).filter(|_| server.kind() == Server::Tcp);
        let to_ip = tcp.and_then(|tcp| self.rest.servers.stack.queue(tcp, ComponentId::IP));
        let (received, waited) = (self.rest.received(), to_ip.map_or(0, Inspection::count));
        self.rest.servers.execute(server, taken, now_ps, profile.flushes);
        if let Some(tcp) = tcp {
            let stack = &self.rest.servers.stack;
            self.machine.owe(server, self.rest.load.sent(profile, stack, tcp, waited));
        }
        if server == Server::Driver {
            let left = self.rest.received();
            self.rest.servers.driver_took(taken, received, left);
            self.send_frames();
        }
        self.watch(server);
        W::hear(self);
    }

    /// Puts the device's frames onto the wire.
    fn send_frames(&mut self) {
        let frames = std::mem::take(&mut self.rest.end.borrow_mut().outgoing);
        for frame in frames {
            let bytes = payload(&frame);
            self.rest.sent_segments += u64::from(bytes > 0);
            self.rest.sent_bytes += bytes;
            let at = self.rest.wire.send(self.machine.now_ps, bytes);
            self.rest.flying.push_back(frame);
            self.machine.at(at, Event::World(Outside::Arrived));
        }
    }
}
