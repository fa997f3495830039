//! Messages that wait for each server, by sender.

use std::collections::VecDeque;

use super::server::{SERVERS, Server};

/// Every server, and the outside.
const SOURCES: usize = SERVERS.len() + 1;

pub struct Inbox<M>([[VecDeque<M>; SOURCES]; SERVERS.len()]);

impl<M> Default for Inbox<M> {
    fn default() -> Self {
        Self(Default::default())
    }
}

impl<M> Inbox<M> {
    pub fn of(&mut self, server: Server, from: Option<Server>) -> &mut VecDeque<M> {
        &mut self.0[server as usize][from.map_or(SERVERS.len(), |from| from as usize)]
    }

    pub fn is_empty(&self, server: Server) -> bool {
        self.0[server as usize].iter().all(VecDeque::is_empty)
    }

    /// Takes up to `budget` messages of each source, and all writes of programs, which tcp sees in their pages first.
    pub fn take(&mut self, server: Server, budget: usize, is_write: impl Fn(&M) -> bool) -> Vec<M> {
        let mut taken = Vec::new();
        for queue in self.0[server as usize].iter_mut().rev() {
            let writes = queue.iter().filter(|message| is_write(message)).count();
            let count = queue.len().min(budget.max(writes));
            taken.extend(queue.drain(..count));
        }
        taken.sort_by_key(|message| !is_write(message));
        taken
    }
}
