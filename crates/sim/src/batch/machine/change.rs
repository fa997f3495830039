//! What changes while the machine runs: clocks of cores, and which server is on which core.

use super::super::server::Server;
use super::{Doing, Machine, Place};
use crate::hardware::{Clock, Costs};

impl<W: Ord + Copy, O: Default> Machine<W, O> {
    /// With more cores, which have no servers yet.
    pub fn with_cores(mut self, cores: impl Iterator<Item = (usize, Clock)>) -> Self {
        for (core, clock) in cores {
            if self.place_on(core).is_none() {
                self.places.push(Place::empty(core, clock));
            }
        }
        self
    }

    fn place_on(&self, core: usize) -> Option<usize> {
        self.places.iter().position(|place| place.core == core)
    }

    pub fn core_of(&self, server: Server) -> usize {
        self.places[self.home[server as usize]].core
    }

    pub fn clock_of(&self, core: usize) -> Option<Clock> {
        self.place_on(core).map(|place| self.places[place].thread.clock)
    }

    /// The time that a core's threads were awake until now.
    pub fn awake_ps(&self, core: usize) -> u64 {
        let threads = self.places.iter().filter(|place| place.core == core);
        threads.map(|place| place.thread.busy_ps(self.now_ps)).sum()
    }

    /// Another clock of a core from now on; its threads go on with what they do.
    pub fn set_clock(&mut self, core: usize, clock: Clock) {
        for place in
            (0..self.places.len()).filter(|place| self.places[*place].core == core).collect::<Vec<_>>()
        {
            let sibling = self.sibling_pipeline(place);
            if let Some(end) = self.places[place].thread.set_clock(self.now_ps, clock, sibling) {
                self.announce(place, end);
                self.repace_sibling(place);
            }
        }
    }

    /// A server goes to the first thread of another core, as its process does when it is told to: at once, or if it has its thread,
    /// when it has done what it does.
    pub fn send(&mut self, costs: &Costs, server: Server, core: usize) {
        let Some(to) = self.place_on(core) else { return };
        let from = self.home[server as usize];
        let p = &self.places[from];
        let has_thread = p.servers[p.current] == server;
        self.leaving[server as usize] = (from != to).then_some(to);
        if from == to || (has_thread && !matches!(p.doing, Doing::Asleep)) {
            return;
        }
        self.transfer(costs, server, to);
    }

    /// The server that has the thread leaves it, if it has to. True: that is all that the thread does now.
    pub(super) fn leaves(&mut self, costs: &Costs, place: usize) -> bool {
        let p = &self.places[place];
        let server = p.servers[p.current];
        let Some(to) = self.leaving[server as usize] else { return false };
        self.account(place);
        self.transfer(costs, server, to);
        if self.places[place].servers.is_empty() {
            self.rest(place);
        } else {
            self.places[place].quantum_ends_ps = self.now_ps + costs.quantum_ps;
            self.occupy(place, Doing::Switching, costs.switch());
        }
        true
    }

    /// It finds cold caches, and what it owes comes with it. One that was awake goes on there.
    fn transfer(&mut self, costs: &Costs, server: Server, to: usize) {
        self.leaving[server as usize] = None;
        let from = &mut self.places[self.home[server as usize]];
        let was_awake = !matches!(from.doing, Doing::Asleep);
        let had_thread = from.servers[from.current] == server;
        let debt = if had_thread { std::mem::take(&mut from.debt) } else { Default::default() };
        let at = from.servers.iter().position(|s| *s == server).unwrap_or_default();
        from.servers.remove(at);
        // Whoever comes after one that had the thread has it now.
        from.current = if at < from.current { from.current - 1 } else { from.current };
        from.current = from.current.checked_rem(from.servers.len()).unwrap_or(0);
        self.home[server as usize] = to;
        self.places[to].servers.push(server);
        self.places[to].debt += debt + costs.switch();
        match self.places[to].doing {
            Doing::Asleep if was_awake => self.wake(costs, to),
            Doing::Polling => {
                let sibling = self.sibling_pipeline(to);
                let poll = self.polling.one(costs, server);
                let end = self.places[to].thread.cut(self.now_ps, poll, sibling);
                self.announce(to, end);
            }
            _ => {}
        }
    }

    /// The thread sleeps from now on.
    pub(super) fn rest(&mut self, place: usize) {
        self.account(place);
        self.places[place].doing = Doing::Asleep;
        self.places[place].thread.rest(self.now_ps);
        self.places[place].ends = None;
        self.repace_sibling(place);
    }

    /// Charges the server that has a thread for the time since the last account.
    pub(super) fn account(&mut self, place: usize) {
        let p = &mut self.places[place];
        let passed = self.now_ps - std::mem::replace(&mut p.accounted_ps, self.now_ps);
        let Some(server) = p.servers.get(p.current) else { return };
        let tally = &mut self.tally[*server as usize];
        match p.doing {
            Doing::Asleep | Doing::Waking { .. } => {}
            Doing::Polling => tally.polling_ps += passed,
            _ => tally.awake_ps += passed,
        }
    }

    /// Charges all servers until now.
    pub fn account_all(&mut self) {
        (0..self.places.len()).for_each(|place| self.account(place));
    }
}
