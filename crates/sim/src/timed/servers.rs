//! What tier 1 knows of the servers of its stack beside their engines: when each has something to do.

use std::time::Duration;

use eft_base::Instant;

use super::charge::component;
use crate::batch::servers::{SERVERS, Server};
use crate::hardware::PS_PER_NS;
use crate::stack::Stack;

pub struct Servers {
    pub stack: Stack,
    /// Virtual time 0 of the machine.
    base: Instant,
    due_ps: [Option<u64>; SERVERS.len()],
}

impl Servers {
    pub fn new(stack: Stack, base: Instant) -> Self {
        Self { stack, base, due_ps: [None; SERVERS.len()] }
    }

    pub fn now(&self, now_ps: u64) -> Instant {
        self.base + Duration::from_nanos(now_ps / PS_PER_NS)
    }

    /// A deadline as the machine knows it: it is always to come.
    pub fn ps(&self, at: Instant, now_ps: u64) -> u64 {
        (at.saturating_since(self.base).as_nanos() as u64 * PS_PER_NS).max(now_ps + PS_PER_NS)
    }

    /// Whether a turn of this server would find something to do; never of the one in front of tcp, which has no engine.
    pub fn has_work(&self, server: Server, now_ps: u64) -> bool {
        component(server).is_some_and(|component| self.stack.has_work(component, self.now(now_ps)))
    }

    /// If a server is to be looked at earlier than was known: when.
    pub fn new_deadline(&mut self, server: Server, now_ps: u64) -> Option<u64> {
        let at = component(server).and_then(|component| self.stack.deadline_of(component))?;
        let due = self.ps(at, now_ps);
        let known = &mut self.due_ps[server as usize];
        known.is_none_or(|known| due < known).then(|| *known.insert(due))
    }

    /// The known deadline has passed.
    pub fn is_due(&mut self, server: Server) {
        self.due_ps[server as usize] = None;
    }
}
