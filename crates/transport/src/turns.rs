//! Which sockets have something due in the next flush, in the order in which it became due.

use crate::timers::{NEVER, Timers};
use alloc::collections::VecDeque;
use core::time::Duration;
use eft_base::Instant;

/// When to look again if a queue was full and nobody owes us an answer.
const RETRY: Duration = Duration::from_millis(1);

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

    /// Those that wait now; what is pushed meanwhile waits for the next flush.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    pub fn pop(&mut self) -> Option<u32> {
        self.queue.pop_front()
    }

    /// A flush is over: what could not be done is tried again soon.
    pub fn finish(&mut self, now: Instant) {
        self.retry_at = if self.queue.is_empty() { NEVER } else { now + RETRY };
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
