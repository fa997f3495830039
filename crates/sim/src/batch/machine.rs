//! Hardware threads with servers on them: who runs, polls, sleeps, is woken and switched.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::profile::Profile;
use super::servers::{Message, SERVERS, Server, Target, Turn};
use crate::hardware::{Clock, Pipeline, Thread, Work};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// What the thread is occupied with ends, if it is still that version.
    Ends {
        thread: usize,
        version: u64,
    },
    Woken {
        thread: usize,
    },
    Interrupt,
    Program {
        stream: usize,
    },
    WireFree {
        stream: usize,
        bytes: u64,
    },
    Gathered,
    Acknowledged,
}

#[derive(Debug)]
enum Doing {
    Asleep,
    Waking,
    Batch(Vec<(Target, Message)>),
    Polling,
    Entering,
    Leaving,
    Switching,
}

struct Place {
    thread: Thread,
    core: usize,
    doing: Doing,
    servers: Vec<Server>,
    /// The one of `servers` that has the thread.
    current: usize,
    quantum_ends_ps: u64,
    /// Owed for waking others.
    debt: Work,
}

/// What became of a server until now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub batches: u64,
    pub messages: u64,
    pub work_ps: u64,
    pub copying_ps: u64,
    pub sleeps: u64,
}

pub struct Machine {
    pub now_ps: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    places: Vec<Place>,
    home: [usize; SERVERS.len()],
    inbox: [VecDeque<Message>; SERVERS.len()],
    pub tally: [Tally; SERVERS.len()],
    interrupt_pending: bool,
}

impl Machine {
    /// `seats`: of each server, core, hardware thread of it, and the clock of the core.
    pub fn new(seats: &[(usize, usize, Clock); SERVERS.len()]) -> Self {
        let mut places: Vec<Place> = Vec::new();
        let mut known: Vec<(usize, usize)> = Vec::new();
        let mut home = [0; SERVERS.len()];
        for (server, (core, thread, clock)) in SERVERS.into_iter().zip(seats) {
            let at = known.iter().position(|k| *k == (*core, *thread)).unwrap_or_else(|| {
                known.push((*core, *thread));
                places.push(Place {
                    thread: Thread::new(*clock),
                    core: *core,
                    doing: Doing::Asleep,
                    servers: Vec::new(),
                    current: 0,
                    quantum_ends_ps: 0,
                    debt: Work::default(),
                });
                places.len() - 1
            });
            places[at].servers.push(server);
            home[server as usize] = at;
        }
        Self {
            now_ps: 0,
            queue: BinaryHeap::new(),
            count: 0,
            places,
            home,
            inbox: Default::default(),
            tally: Default::default(),
            interrupt_pending: false,
        }
    }

    pub fn at(&mut self, time_ps: u64, event: Event) {
        self.count += 1;
        self.queue.push(Reverse((time_ps, self.count, event)));
    }

    pub fn next(&mut self, end_ps: u64) -> Option<Event> {
        let Reverse((at_ps, ..)) = self.queue.peek()?;
        self.now_ps = end_ps.min(*at_ps);
        if *at_ps >= end_ps {
            return None;
        }
        self.queue.pop().map(|Reverse((_, _, event))| event)
    }

    pub fn busy_ps(&self, server: Server) -> u64 {
        self.places[self.home[server as usize]].thread.busy_ps(self.now_ps)
    }

    pub fn time_ps(&self, server: Server, work: Work) -> u64 {
        self.places[self.home[server as usize]].thread.clock.time_ps(work)
    }

    fn sibling(&self, place: usize) -> Option<usize> {
        (0..self.places.len()).find(|p| *p != place && self.places[*p].core == self.places[place].core)
    }

    fn sibling_pipeline(&self, place: usize) -> Pipeline {
        self.sibling(place).map(|s| self.places[s].thread.pipeline).unwrap_or_default()
    }

    /// The sibling goes on faster or slower.
    fn repace_sibling(&mut self, place: usize) {
        let Some(sibling) = self.sibling(place) else { return };
        if self.places[sibling].thread.is_busy() {
            let pipeline = self.places[place].thread.pipeline;
            let end = self.places[sibling].thread.repace(self.now_ps, pipeline);
            self.announce(sibling, end);
        }
    }

    fn announce(&mut self, place: usize, end_ps: u64) {
        let version = self.places[place].thread.version;
        self.at(end_ps, Event::Ends { thread: place, version });
    }

    fn occupy(&mut self, place: usize, doing: Doing, work: Work) {
        let pipeline = self.sibling_pipeline(place);
        let debt = std::mem::take(&mut self.places[place].debt);
        self.places[place].doing = doing;
        let end = self.places[place].thread.begin(self.now_ps, work + debt, pipeline);
        self.announce(place, end);
        self.repace_sibling(place);
    }

    /// A message for a server, from another one or (`None`) from elsewhere.
    pub fn deliver(&mut self, profile: &Profile, from: Option<Server>, to: Server, message: Message) {
        let was_empty = self.inbox[to as usize].is_empty();
        self.inbox[to as usize].push_back(message);
        let place = self.home[to as usize];
        let sleeps = matches!(self.places[place].doing, Doing::Asleep | Doing::Entering);
        if let Some(from) = from {
            let own = self.home[from as usize];
            let is_shared = self.places[place].servers.len() > 1 || self.places[own].servers.len() > 1;
            if is_shared && was_empty {
                self.places[own].debt += Work::cycles(profile.costs.notify_cycles);
            } else if sleeps && own != place {
                self.places[own].debt += Work::cycles(profile.costs.wake_cycles);
            }
        }
        match self.places[place].doing {
            Doing::Asleep => self.wake(profile, place),
            Doing::Polling => {
                let pipeline = self.sibling_pipeline(place);
                let look = Work::cycles(profile.costs.empty_poll_cycles);
                let end = self.places[place].thread.cut(self.now_ps, look, pipeline);
                self.announce(place, end);
            }
            _ => {}
        }
    }

    /// A frame for the driver: a driver that sleeps hears of it by an interrupt.
    pub fn deliver_frame(&mut self, profile: &Profile, message: Message) {
        let place = self.home[Server::Driver as usize];
        let sleeps = matches!(self.places[place].doing, Doing::Asleep | Doing::Entering);
        if !sleeps || profile.costs.interrupt_ps == 0 {
            return self.deliver(profile, None, Server::Driver, message);
        }
        self.inbox[Server::Driver as usize].push_back(message);
        if !std::mem::replace(&mut self.interrupt_pending, true) {
            self.at(self.now_ps + profile.costs.interrupt_ps, Event::Interrupt);
        }
    }

    /// The device is done with a frame, which wakes nobody: the driver hears of it when it looks the next time.
    pub fn deliver_sent(&mut self, message: Message) {
        self.inbox[Server::Driver as usize].push_back(message);
    }

    pub fn interrupt(&mut self, profile: &Profile) {
        self.interrupt_pending = false;
        let place = self.home[Server::Driver as usize];
        if matches!(self.places[place].doing, Doing::Asleep) {
            self.wake(profile, place);
        }
    }

    fn wake(&mut self, profile: &Profile, place: usize) {
        let sibling_runs = self.sibling(place).is_some_and(|s| self.places[s].thread.is_busy());
        let exit_ps = if sibling_runs { profile.costs.thread_exit_ps } else { profile.costs.core_exit_ps };
        self.places[place].doing = Doing::Waking;
        self.at(self.now_ps + exit_ps, Event::Woken { thread: place });
    }

    pub fn woken(&mut self, profile: &Profile, place: usize) {
        self.occupy(place, Doing::Leaving, Work::cycles(profile.costs.leave_cycles));
    }

    /// What the thread was occupied with is over: says what leaves it, and from whom.
    pub fn ended(&mut self, place: usize, version: u64) -> Option<(Server, Vec<(Target, Message)>)> {
        if self.places[place].thread.version != version {
            return None;
        }
        let p = &mut self.places[place];
        let out = match &mut p.doing {
            Doing::Batch(out) => std::mem::take(out),
            _ => Vec::new(),
        };
        Some((p.servers[p.current], out))
    }

    fn has_work(&self, server: Server) -> bool {
        !self.inbox[server as usize].is_empty()
    }

    /// What the thread does next; `serve` says what a batch costs and causes.
    pub fn go_on(
        &mut self,
        profile: &Profile,
        place: usize,
        serve: impl FnOnce(Server, Vec<Message>, &mut Turn),
    ) {
        let p = &self.places[place];
        let (count, current) = (p.servers.len(), p.current);
        let others = (1..count).map(|i| (current + i) % count);
        let next = others.into_iter().find(|i| self.has_work(p.servers[*i]));
        let server = p.servers[current];
        let work_here = self.has_work(server);
        let is_over = count > 1 && self.now_ps >= p.quantum_ends_ps;
        if let Some(next) = next
            && (is_over || !work_here)
        {
            self.places[place].current = next;
            self.places[place].quantum_ends_ps = self.now_ps + profile.costs.quantum_ps;
            return self.occupy(place, Doing::Switching, Work::cycles(profile.costs.switch_cycles));
        }
        if work_here {
            return self.batch(profile, place, server, serve);
        }
        match p.doing {
            Doing::Entering => {
                self.places[place].doing = Doing::Asleep;
                self.places[place].thread.rest(self.now_ps);
                self.tally[server as usize].sleeps += 1;
                self.repace_sibling(place);
            }
            Doing::Batch(_) | Doing::Leaving | Doing::Switching if count == 1 && profile.costs.polls > 0 => {
                let looks = Work::cycles(profile.costs.empty_poll_cycles * profile.costs.polls);
                self.occupy(place, Doing::Polling, looks);
            }
            _ => self.occupy(place, Doing::Entering, Work::cycles(profile.costs.enter_cycles)),
        }
    }

    fn batch(
        &mut self,
        profile: &Profile,
        place: usize,
        server: Server,
        serve: impl FnOnce(Server, Vec<Message>, &mut Turn),
    ) {
        // Whoever was on the way to sleep turns back.
        let turns_back = matches!(self.places[place].doing, Doing::Entering);
        let mut turn = Turn { work: Work::cycles(profile.costs.empty_poll_cycles), ..Turn::default() };
        if turns_back {
            turn.work += Work::cycles(profile.costs.leave_cycles);
        }
        let count = self.inbox[server as usize].len().min(profile.batch_max);
        let batch: Vec<Message> = self.inbox[server as usize].drain(..count).collect();
        serve(server, batch, &mut turn);
        let clock = self.places[place].thread.clock;
        let tally = &mut self.tally[server as usize];
        tally.batches += 1;
        tally.messages += count as u64;
        tally.work_ps += clock.time_ps(turn.work);
        tally.copying_ps += clock.time_ps(turn.copying);
        self.occupy(place, Doing::Batch(turn.out), turn.work);
    }
}
