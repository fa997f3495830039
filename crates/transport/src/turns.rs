//! Which sockets have something due in the next flush, in the order in which it became due.

use crate::timers::{NEVER, Timers};
use alloc::collections::VecDeque;
use core::time::Duration;
use eft_base::Instant;

/// When to look again if a queue was full and nobody owes us an answer.
const RETRY: Duration = Duration::from_millis(1);
/// Sockets served in one flush, and timers handled in one turn: a turn stays short however many sockets there are, so that
/// messages are taken in between and others get the CPU.
pub(crate) const PER_TURN: usize = 256;

pub(crate) struct Turns {
    queue: VecDeque<u32>,
    retry_at: Instant,
}

impl Turns {
    pub fn new() -> Turns {
        Turns { queue: VecDeque::new(), retry_at: NEVER }
    }

    /// The caller sees to it that a socket waits once.
    pub fn push(&mut self, socket: u32) {
        self.queue.push_back(socket);
    }

    /// Those that wait now.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// How many to serve in this flush: of those that wait now. What is pushed meanwhile waits for the next one.
    pub fn share(&self) -> usize {
        self.queue.len().min(PER_TURN)
    }

    pub fn pop(&mut self) -> Option<u32> {
        self.queue.pop_front()
    }

    /// A flush is over, in which `done` sockets got all that was due. What could not be done is tried again soon; those
    /// whose turn did not come have it at once, unless nothing can be done for anybody.
    pub fn finish(&mut self, now: Instant, waited: usize, done: usize) {
        self.retry_at = match () {
            () if self.queue.is_empty() => NEVER,
            () if waited > PER_TURN && done > 0 => now,
            () => now + RETRY,
        };
    }

    /// Something must be looked at in another turn, at once.
    pub fn hurry(&mut self, now: Instant) {
        self.retry_at = now;
    }

    /// The time to try again has come: the flush that follows does.
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
