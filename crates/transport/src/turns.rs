//! The sockets with work due in the next flush, in the order in which it became due.

use crate::timers::{NEVER, Timers};
use alloc::collections::VecDeque;
use core::time::Duration;
use eft_base::Instant;

/// When to try again if a queue was full and no answer is outstanding.
const RETRY: Duration = Duration::from_millis(1);
/// Sockets served in one flush, and timers handled in one turn: a turn stays short however many sockets there are, so that
/// messages are handled in between and other servers get the CPU.
pub(crate) const PER_TURN: usize = 256;

pub(crate) struct Turns {
    queue: VecDeque<u32>,
    retry_at: Instant,
}

impl Turns {
    pub fn new() -> Turns {
        Turns { queue: VecDeque::new(), retry_at: NEVER }
    }

    /// Adds a socket; the caller ensures that it is not in the queue already.
    pub fn push(&mut self, socket: u32) {
        self.queue.push_back(socket);
    }

    /// Sockets that wait now.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// How many of the waiting sockets to serve in this flush. Sockets pushed meanwhile wait for the next one.
    pub fn share(&self) -> usize {
        self.queue.len().min(PER_TURN)
    }

    pub fn pop(&mut self) -> Option<u32> {
        self.queue.pop_front()
    }

    /// Ends a flush in which all due work of `done` sockets was done. Unfinished work is tried again soon; sockets that
    /// were not reached are served at once, unless no socket could be served.
    pub fn finish(&mut self, now: Instant, waited: usize, done: usize) {
        self.retry_at = match () {
            () if self.queue.is_empty() => NEVER,
            () if waited > PER_TURN && done > 0 => now,
            () => now + RETRY,
        };
    }

    /// Asks for another turn at once.
    pub fn hurry(&mut self, now: Instant) {
        self.retry_at = now;
    }

    /// Clears the time to try again if it has come: the flush that follows does it.
    pub fn expire(&mut self, now: Instant) {
        if self.retry_at <= now {
            self.retry_at = NEVER;
        }
    }

    /// The earlier of the next timer and the time to try again.
    pub fn deadline(&self, timers: &Timers) -> Option<Instant> {
        let at = timers.next().unwrap_or(NEVER).min(self.retry_at);
        (at != NEVER).then_some(at)
    }
}

#[cfg(test)]
mod tests;
