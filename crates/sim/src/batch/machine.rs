//! Hardware threads with servers on them: which server runs, polls, sleeps, is woken and switched.

mod change;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::polling::{Polling, TIRELESS};
use super::server::{SERVERS, SERVERS_MAX, Server, TCPS};
use crate::hardware::{Clock, Costs, Pipeline, Thread, Work};

/// `W`: what happens outside of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event<W> {
    /// The thread's present occupation ends.
    Ends {
        thread: usize,
    },
    Woken {
        thread: usize,
    },
    Interrupt,
    World(W),
}

/// The messages that a server takes at once: their cost, and their results when the batch ends.
#[derive(Debug, Default)]
pub struct Batch<O> {
    pub work: Work,
    /// The part of the work that copies.
    pub copying: Work,
    pub messages: usize,
    pub out: O,
}

#[derive(Debug)]
enum Doing<O> {
    Asleep,
    /// It has to get its caches' contents back, too.
    Waking {
        cold_ps: u64,
    },
    Batch(O),
    Polling,
    Entering,
    Leaving,
    Switching,
}

struct Place<O> {
    thread: Thread,
    core: usize,
    /// The place of the core's other thread, if that has servers, too.
    sibling: Option<usize>,
    doing: Doing<O>,
    servers: Vec<Server>,
    /// Index in `servers` of the server that has the thread.
    current: usize,
    quantum_ends_ps: u64,
    /// Work to charge for waking others.
    debt: Work,
    /// Until when the accounts have its time.
    accounted_ps: u64,
    /// When its present occupation ends, and the number of this event.
    ends: Option<(u64, u64)>,
}

impl<O> Place<O> {
    fn empty(core: usize, clock: Clock) -> Self {
        Self {
            thread: Thread::new(clock),
            core,
            sibling: None,
            doing: Doing::Asleep,
            servers: Vec::new(),
            current: 0,
            quantum_ends_ps: 0,
            debt: Work::default(),
            accounted_ps: 0,
            ends: None,
        }
    }
}

/// A server's totals until now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub batches: u64,
    pub messages: u64,
    pub work_ps: u64,
    pub copying_ps: u64,
    pub sleeps: u64,
    /// Wakes of others that it paid for, and their time.
    pub wakes: u64,
    pub wakes_ps: u64,
    /// Awake for more than empty polls, and polling.
    pub awake_ps: u64,
    pub polling_ps: u64,
}

/// `W`: events of the world around it; `O`: a batch's results.
pub struct Machine<W, O> {
    pub now_ps: u64,
    /// Events of the machine and of the world, but those that end what threads do.
    queue: BinaryHeap<Reverse<(u64, u64, Event<W>)>>,
    count: u64,
    places: Vec<Place<O>>,
    home: [usize; SERVERS_MAX],
    pub tally: [Tally; SERVERS_MAX],
    /// The cores that servers go to when they have done what they do.
    leaving: [Option<usize>; SERVERS_MAX],
    interrupt_pending: bool,
    polling: Polling,
}

impl<W: Ord + Copy, O: Default> Machine<W, O> {
    /// `seats`: core, hardware thread on it, and the core's clock, of each server, and then of further instances of tcp.
    pub fn new(seats: &[(usize, usize, Clock)], polling: Polling) -> Self {
        let mut places: Vec<Place<O>> = Vec::new();
        let mut known: Vec<(usize, usize)> = Vec::new();
        let mut home = [0; SERVERS_MAX];
        let servers = SERVERS.into_iter().chain(TCPS.into_iter().skip(1));
        for (server, (core, thread, clock)) in servers.zip(seats) {
            let at = known.iter().position(|k| *k == (*core, *thread)).unwrap_or_else(|| {
                known.push((*core, *thread));
                places.push(Place::empty(*core, *clock));
                places.len() - 1
            });
            places[at].servers.push(server);
            home[server as usize] = at;
        }
        let cores: Vec<usize> = places.iter().map(|place| place.core).collect();
        for (number, place) in places.iter_mut().enumerate() {
            place.sibling = (0..cores.len()).find(|other| *other != number && cores[*other] == place.core);
        }
        Self {
            now_ps: 0,
            queue: BinaryHeap::new(),
            count: 0,
            places,
            home,
            tally: Default::default(),
            leaving: [None; SERVERS_MAX],
            interrupt_pending: false,
            polling,
        }
    }

    pub fn at(&mut self, time_ps: u64, event: Event<W>) {
        self.count += 1;
        self.queue.push(Reverse((time_ps, self.count, event)));
    }

    pub fn next(&mut self, end_ps: u64) -> Option<Event<W>> {
        let queued = self.queue.peek().map(|Reverse((at_ps, number, _))| (*at_ps, *number));
        let ends = |(thread, place): (usize, &Place<O>)| place.ends.map(|ends| (ends, thread));
        let ended = self.places.iter().enumerate().filter_map(ends).min();
        let ended = ended.filter(|(ends, _)| queued.is_none_or(|queued| *ends < queued));
        let (at_ps, _) = ended.map(|(ends, _)| ends).or(queued)?;
        self.now_ps = end_ps.min(at_ps);
        if at_ps >= end_ps {
            return None;
        }
        let Some((_, thread)) = ended else { return self.queue.pop().map(|Reverse((_, _, event))| event) };
        self.places[thread].ends = None;
        Some(Event::Ends { thread })
    }

    pub fn busy_ps(&self, server: Server) -> u64 {
        self.places[self.home[server as usize]].thread.busy_ps(self.now_ps)
    }

    pub fn time_ps(&self, server: Server, work: Work) -> u64 {
        self.places[self.home[server as usize]].thread.clock.time_ps(work)
    }

    /// Several servers take turns on it.
    fn is_shared(&self, place: usize) -> bool {
        self.places[place].servers.len() > 1
    }

    fn sibling_pipeline(&self, place: usize) -> Pipeline {
        self.places[place].sibling.map(|s| self.places[s].thread.pipeline).unwrap_or_default()
    }

    /// Adapts the sibling's pace.
    fn repace_sibling(&mut self, place: usize) {
        let Some(sibling) = self.places[place].sibling else { return };
        if self.places[sibling].thread.is_busy() {
            let pipeline = self.places[place].thread.pipeline;
            let end = self.places[sibling].thread.repace(self.now_ps, pipeline);
            self.announce(sibling, end);
        }
    }

    /// The thread's occupation ends then, and not when it was to end before.
    fn announce(&mut self, place: usize, end_ps: u64) {
        self.count += 1;
        self.places[place].ends = Some((end_ps, self.count));
    }

    fn occupy(&mut self, place: usize, doing: Doing<O>, work: Work) {
        self.account(place);
        let pipeline = self.sibling_pipeline(place);
        let debt = std::mem::take(&mut self.places[place].debt);
        self.places[place].doing = doing;
        let end = self.places[place].thread.begin(self.now_ps, work + debt, pipeline);
        self.announce(place, end);
        self.repace_sibling(place);
    }

    /// A server has a message, from another server or (`None`) from elsewhere. `was_empty`: it had none before.
    pub fn tell(&mut self, costs: &Costs, from: Option<Server>, to: Server, was_empty: bool) {
        let place = self.home[to as usize];
        if let Some(from) = from.filter(|from| *from != to) {
            let own = self.home[from as usize];
            if self.is_shared(place) && (was_empty || costs.notifies_each) {
                self.owe(from, Work::cycles(costs.notify_cycles));
            } else if self.sleeps(to) && own != place {
                self.owe(from, Work::cycles(costs.wake_cycles));
                let wake_ps = self.time_ps(from, Work::cycles(costs.wake_cycles));
                self.tally[from as usize].wakes += 1;
                self.tally[from as usize].wakes_ps += wake_ps;
            }
        }
        match self.places[place].doing {
            Doing::Asleep => self.wake(costs, place),
            Doing::Polling => {
                let pipeline = self.sibling_pipeline(place);
                let poll = self.polling.one(costs, to);
                let end = self.places[place].thread.cut(self.now_ps, poll, pipeline);
                self.announce(place, end);
            }
            _ => {}
        }
    }

    /// Further messages to a server that was told, or has heard of others: on a thread that it shares each one costs a call.
    pub fn notify(&mut self, costs: &Costs, from: Option<Server>, to: Server, messages: u64) {
        let costs_calls = costs.notifies_each && self.is_shared(self.home[to as usize]);
        if let Some(from) = from.filter(|from| costs_calls && *from != to) {
            self.owe(from, Work::cycles(costs.notify_cycles * messages));
        }
    }

    /// Charged before whatever the server's thread does next.
    pub fn owe(&mut self, server: Server, work: Work) {
        self.places[self.home[server as usize]].debt += work;
    }

    /// The servers of a server's thread, in their order.
    pub fn on_thread_of(&self, server: Server) -> &[Server] {
        &self.places[self.home[server as usize]].servers
    }

    /// Whether it sleeps, or is about to.
    pub fn sleeps(&self, server: Server) -> bool {
        matches!(self.places[self.home[server as usize]].doing, Doing::Asleep | Doing::Entering)
    }

    /// The driver has a frame: an interrupt wakes a driver that sleeps.
    pub fn tell_of_frame(&mut self, costs: &Costs) {
        if !self.sleeps(Server::Driver) || costs.interrupt_ps == 0 {
            self.tell(costs, None, Server::Driver, false);
        } else if !std::mem::replace(&mut self.interrupt_pending, true) {
            self.at(self.now_ps + costs.interrupt_ps, Event::Interrupt);
        }
    }

    pub fn interrupt(&mut self, costs: &Costs) {
        self.interrupt_pending = false;
        let place = self.home[Server::Driver as usize];
        if matches!(self.places[place].doing, Doing::Asleep) {
            self.wake(costs, place);
        }
    }

    fn wake(&mut self, costs: &Costs, place: usize) {
        let sibling_runs = self.places[place].sibling.is_some_and(|s| self.places[s].thread.is_busy());
        let (exit_ps, cold_ps) = match self.places[place].servers[..] {
            _ if sibling_runs => (costs.thread_exit_ps, 0),
            [Server::Front] => (costs.front_exit_ps, costs.front_cold_ps),
            [_] => (costs.core_exit_ps, costs.cold_ps),
            _ => (costs.shared_exit_ps, 0),
        };
        self.account(place);
        self.places[place].doing = Doing::Waking { cold_ps };
        self.at(self.now_ps + exit_ps, Event::Woken { thread: place });
    }

    pub fn woken(&mut self, costs: &Costs, place: usize) {
        let stall_ps = match self.places[place].doing {
            Doing::Waking { cold_ps } => cold_ps,
            _ => 0,
        };
        self.occupy(place, Doing::Leaving, Work { cycles: costs.leave_cycles, stall_ps });
    }

    /// The thread's occupation has ended: returns a batch's server and results.
    pub fn ended(&mut self, place: usize) -> (Server, O) {
        let p = &mut self.places[place];
        let out = match &mut p.doing {
            Doing::Batch(out) => std::mem::take(out),
            _ => O::default(),
        };
        (p.servers[p.current], out)
    }

    /// Begins what the thread does next; `serve` returns a batch's cost and results. Returns who goes to sleep.
    pub fn go_on(
        &mut self,
        costs: &Costs,
        place: usize,
        has_work: impl Fn(Server) -> bool,
        serve: impl FnOnce(Server) -> Batch<O>,
    ) -> Option<Server> {
        if self.leaves(costs, place) {
            return None;
        }
        let p = &self.places[place];
        let (count, current) = (p.servers.len(), p.current);
        let others = (1..count).map(|i| (current + i) % count);
        let next = others.into_iter().find(|i| has_work(p.servers[*i]));
        let server = p.servers[current];
        let work_here = has_work(server);
        let is_over = count > 1 && self.now_ps >= p.quantum_ends_ps;
        if let Some(next) = next
            && (is_over || !work_here)
        {
            self.account(place);
            self.places[place].current = next;
            self.places[place].quantum_ends_ps = self.now_ps + costs.quantum_ps;
            self.occupy(place, Doing::Switching, costs.switch());
            return None;
        }
        if work_here {
            self.batch(costs, place, server, serve);
            return None;
        }
        if self.places[place].debt != Work::default() {
            // Before it polls: an arrival cuts polls short, and nothing else.
            self.occupy(place, Doing::Batch(O::default()), Work::default());
            return None;
        }
        let polls = self.polling.before_sleep(costs, server);
        let mut polls_work = Work::cycles(self.polling.one(costs, server).cycles * polls);
        if !self.polling.sleeps(server) {
            // Polls without cost still take time.
            polls_work.cycles = polls_work.cycles.max(TIRELESS);
        }
        match p.doing {
            Doing::Entering => {
                self.rest(place);
                self.tally[server as usize].sleeps += 1;
                return Some(server);
            }
            Doing::Batch(_) | Doing::Leaving | Doing::Switching if count == 1 && polls > 0 => {
                self.occupy(place, Doing::Polling, polls_work);
            }
            Doing::Polling if !self.polling.sleeps(server) => self.occupy(place, Doing::Polling, polls_work),
            _ => self.occupy(place, Doing::Entering, Work::cycles(costs.enter_cycles)),
        }
        None
    }

    fn batch(&mut self, costs: &Costs, place: usize, server: Server, serve: impl FnOnce(Server) -> Batch<O>) {
        // A server that was going to sleep turns back.
        let turns_back = matches!(self.places[place].doing, Doing::Entering);
        let mut batch = serve(server);
        batch.work += self.polling.one(costs, server);
        if self.is_shared(place) {
            batch.work += Work::cycles(costs.receive_cycles);
        }
        if turns_back {
            batch.work += Work::cycles(costs.leave_cycles);
        }
        let clock = self.places[place].thread.clock;
        let tally = &mut self.tally[server as usize];
        tally.batches += 1;
        tally.messages += batch.messages as u64;
        tally.work_ps += clock.time_ps(batch.work);
        tally.copying_ps += clock.time_ps(batch.copying);
        self.occupy(place, Doing::Batch(batch.out), batch.work);
    }
}

#[cfg(test)]
mod tests;
