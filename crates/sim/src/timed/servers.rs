//! What tier 1 knows of the servers of its stack beside their engines: when each has something to do.

use std::time::Duration;

use eft_base::Instant;

use super::charge::{Taken, component, on_the_way};
use crate::batch::servers::{SERVERS_MAX, Server};
use crate::hardware::PS_PER_NS;
use crate::stack::Stack;

pub struct Servers {
    pub stack: Stack,
    /// Those on the data path.
    pub all: Vec<Server>,
    /// Virtual time 0 of the machine.
    base: Instant,
    due_ps: [Option<u64>; SERVERS_MAX],
    /// The driver's last turn found no room for what the device has received: it takes no more until its neighbour has said something.
    is_driver_full: bool,
}

impl Servers {
    pub fn new(stack: Stack, base: Instant) -> Self {
        let all = on_the_way(&stack);
        Self { stack, all, base, due_ps: [None; SERVERS_MAX], is_driver_full: false }
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
        let now = self.now(now_ps);
        component(server).is_some_and(|component| match server {
            Server::Driver if self.is_driver_full => self.stack.has_work_but_frames(component, now),
            _ => self.stack.has_work(component, now),
        })
    }

    /// Frames that a turn of the driver would take, of so many that the device has.
    pub fn frames(&self, received: usize) -> usize {
        if self.is_driver_full { 0 } else { received }
    }

    /// The end of a turn of the driver: there were so many frames before it and after it.
    pub fn driver_took(&mut self, taken: &Taken, before: usize, after: usize) {
        self.is_driver_full = taken.frames() > 0 && after == before;
    }

    /// Executes a turn at its end. What has come since it began waits for the next. tcp sends after each message, unless it `flushes`.
    pub fn execute(&mut self, server: Server, taken: &Taken, now_ps: u64, flushes: bool) {
        let Some(component) = component(server) else { return };
        let now = self.now(now_ps);
        self.stack.wake(component);
        if server.kind() == Server::Tcp && !flushes {
            taken.one_by_one().for_each(|one| self.stack.step(now, component, one));
        } else {
            self.stack.step(now, component, taken);
        }
    }

    /// A server announces that it sleeps, and polls once more; whether it does sleep.
    pub fn go_to_sleep(&mut self, server: Server, now_ps: u64, budget: usize) -> bool {
        let Some(component) = component(server) else { return true };
        self.stack.step(self.now(now_ps), component, budget);
        self.stack.is_asleep(component)
    }

    /// If a server is to be looked at earlier than was known: when.
    pub fn new_deadline(&mut self, server: Server, now_ps: u64) -> Option<u64> {
        let at = component(server).and_then(|component| self.stack.deadline_of(component))?;
        let due = self.ps(at, now_ps);
        let known = &mut self.due_ps[server as usize];
        known.is_none_or(|known| due < known).then(|| *known.insert(due))
    }

    /// Whether it is the known deadline that has passed: one that another has replaced is none.
    pub fn is_due(&mut self, server: Server, now_ps: u64) -> bool {
        self.due_ps[server as usize].take_if(|due| *due == now_ps).is_some()
    }
}
