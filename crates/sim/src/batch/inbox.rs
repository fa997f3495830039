//! Messages that wait for each server, by sender.

use std::collections::VecDeque;

use super::server::{SERVERS, Server};

/// Every server, and the outside.
const SOURCES: usize = SERVERS.len() + 1;

/// What waits in queues.
pub trait Queued {
    /// A write of a program, which tcp sees first.
    fn is_write(&self) -> bool;
}

/// A source's messages to a server, and how many of them are writes.
struct Queue<M> {
    messages: VecDeque<M>,
    writes: usize,
}

/// A server's queues, and how many messages they have together.
struct Queues<M> {
    all: [Queue<M>; SOURCES],
    count: usize,
}

pub struct Inbox<M>([Queues<M>; SERVERS.len()]);

impl<M> Default for Inbox<M> {
    fn default() -> Self {
        let queue = || Queue { messages: VecDeque::new(), writes: 0 };
        Self(SERVERS.map(|_| Queues { all: std::array::from_fn(|_| queue()), count: 0 }))
    }
}

impl<M: Queued> Inbox<M> {
    pub fn put(&mut self, server: Server, from: Option<Server>, message: M) {
        let queues = &mut self.0[server as usize];
        queues.count += 1;
        let queue = &mut queues.all[from.map_or(SERVERS.len(), |from| from as usize)];
        queue.writes += usize::from(message.is_write());
        queue.messages.push_back(message);
    }

    /// What waits for a server from outside.
    pub fn from_outside(&self, server: Server) -> &VecDeque<M> {
        &self.0[server as usize].all[SERVERS.len()].messages
    }

    pub fn is_empty(&self, server: Server) -> bool {
        self.0[server as usize].count == 0
    }

    /// Puts into `taken`, which is empty, up to `budget` messages of each source, and up to `marks` writes of programs, which tcp
    /// sees first: all that are in pages, or a budget of calls.
    pub fn take(&mut self, server: Server, budget: usize, marks: usize, taken: &mut Vec<M>) {
        let queues = &mut self.0[server as usize];
        let is_tcp = server == Server::Tcp;
        for queue in queues.all.iter_mut().rev().filter(|queue| !queue.messages.is_empty()) {
            let writes = if is_tcp { queue.writes } else { 0 };
            let count = queue.messages.len().min(budget.max(writes.min(marks)));
            let first = taken.len();
            taken.extend(queue.messages.drain(..count));
            if queue.writes > 0 {
                queue.writes -= taken[first..].iter().filter(|message| message.is_write()).count();
            }
        }
        queues.count -= taken.len();
        if is_tcp && !taken.is_sorted_by_key(|message| !message.is_write()) {
            taken.sort_by_key(|message| !message.is_write());
        }
    }
}

#[cfg(test)]
mod tests;
