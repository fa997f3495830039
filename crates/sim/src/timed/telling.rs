//! Which servers hear of a turn's messages, and what telling them costs.

use super::charge::{ON_THE_WAY, component};
use super::world::World;
use crate::batch::servers::{SERVERS, Server};

/// What waits for each server.
pub(super) struct Backlog {
    has_work: [bool; SERVERS.len()],
    messages: [u64; SERVERS.len()],
}

impl World<'_> {
    pub(super) fn backlog(&self) -> Backlog {
        Backlog {
            has_work: SERVERS.map(|server| self.rest.has_work(server, self.machine.now_ps)),
            messages: SERVERS.map(|server| self.messages(server)),
        }
    }

    /// Tells the machine which servers have had work since `before`; one that sleeps only if its doorbell was rung.
    pub(super) fn tell(&mut self, from: Option<Server>, before: &Backlog) {
        let costs = &self.rest.profile.costs;
        for (server, component) in ON_THE_WAY {
            if Some(server) == from {
                continue;
            }
            let had_work = before.has_work[server as usize];
            let is_new = self.machine.sleeps(server) || !had_work;
            let was_rung = costs.receipts_wake() || !self.rest.servers.stack.is_asleep(component);
            let hears = was_rung && self.rest.has_work(server, self.machine.now_ps);
            let mut messages = self.messages(server) - before.messages[server as usize];
            if is_new && hears {
                self.machine.tell(costs, from, server, !had_work);
                messages = messages.saturating_sub(1);
            }
            self.machine.notify(costs, from, server, messages);
        }
    }

    /// Messages that wait for a server, where each one costs a call.
    fn messages(&self, server: Server) -> u64 {
        let is_free = !self.rest.profile.costs.notifies_each || self.machine.on_thread_of(server).len() == 1;
        let Some(component) = component(server).filter(|_| !is_free) else { return 0 };
        let writes = if server == Server::Tcp { self.rest.programs.unseen.len() } else { 0 };
        let queued: usize = self.rest.servers.stack.waiting(component).map(|(_, lines)| lines.count()).sum();
        (queued + writes) as u64
    }
}
