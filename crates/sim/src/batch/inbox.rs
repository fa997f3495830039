//! Messages that wait for each server, by sender.

use std::collections::VecDeque;

use super::server::{SERVERS, Server};

/// Every server, and the outside.
const SOURCES: usize = SERVERS.len() + 1;

/// A server's queues, and how many messages they have together.
struct Queues<M> {
    all: [VecDeque<M>; SOURCES],
    count: usize,
}

pub struct Inbox<M>([Queues<M>; SERVERS.len()]);

impl<M> Default for Inbox<M> {
    fn default() -> Self {
        Self(SERVERS.map(|_| Queues { all: Default::default(), count: 0 }))
    }
}

impl<M> Inbox<M> {
    pub fn put(&mut self, server: Server, from: Option<Server>, message: M) {
        let queues = &mut self.0[server as usize];
        queues.count += 1;
        queues.all[from.map_or(SERVERS.len(), |from| from as usize)].push_back(message);
    }

    /// What waits for a server from outside.
    pub fn from_outside(&self, server: Server) -> &VecDeque<M> {
        &self.0[server as usize].all[SERVERS.len()]
    }

    pub fn is_empty(&self, server: Server) -> bool {
        self.0[server as usize].count == 0
    }

    /// Takes up to `budget` messages of each source, and up to `marks` writes of programs, which tcp sees first: all that are
    /// in pages, or a budget of calls.
    pub fn take(
        &mut self,
        server: Server,
        budget: usize,
        marks: usize,
        is_write: impl Fn(&M) -> bool,
    ) -> Vec<M> {
        let queues = &mut self.0[server as usize];
        let mut taken = Vec::with_capacity(queues.count.min(budget * SOURCES));
        for queue in queues.all.iter_mut().rev().filter(|queue| !queue.is_empty()) {
            let writes = if server == Server::Tcp && queue.len() > budget {
                queue.iter().filter(|message| is_write(message)).count()
            } else {
                0
            };
            let count = queue.len().min(budget.max(writes.min(marks)));
            taken.extend(queue.drain(..count));
        }
        queues.count -= taken.len();
        if server == Server::Tcp && taken.len() > 1 {
            taken.sort_by_key(|message| !is_write(message));
        }
        taken
    }
}

#[cfg(test)]
mod tests;
