//! The sockets with work due in the next flush, in the order in which it became due.

use crate::timers::{NEVER, Timers};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use eft_base::Instant;

/// When to try again if a queue was full and no answer is outstanding.
const RETRY: Duration = Duration::from_millis(1);
/// Sockets served in one flush, and timers handled in one turn: a turn stays short however many sockets there are, so that
/// messages are handled in between and other servers get the CPU.
pub(crate) const PER_TURN: usize = 256;

/// How a socket waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not at all.
    Nowhere,
    Queued,
    /// It is in the queue twice, and its first place is void.
    Moved,
}

pub(crate) struct Turns {
    queue: VecDeque<u32>,
    /// By socket.
    places: Vec<Place>,
    /// Places in the queue that are void.
    void: usize,
    /// Sockets that had their turn in this flush.
    had_turn: Vec<u32>,
    retry_at: Instant,
}

impl Turns {
    pub fn new() -> Turns {
        Turns { queue: VecDeque::new(), places: Vec::new(), void: 0, had_turn: Vec::new(), retry_at: NEVER }
    }

    /// A socket waits. One that does so already keeps its place.
    pub fn push(&mut self, socket: u32) {
        if *self.place(socket) == Place::Nowhere {
            *self.place(socket) = Place::Queued;
            self.queue.push_back(socket);
        }
    }

    /// A socket waits for input to be told of. Programs are told of input in the order in which it came, so one that waits for something
    /// else gives its place up for one behind those whose input came before.
    pub fn push_last(&mut self, socket: u32) {
        if *self.place(socket) == Place::Queued {
            *self.place(socket) = Place::Moved;
            self.void += 1;
            self.queue.push_back(socket);
        }
        self.push(socket);
    }

    /// A socket had room to send and has more to do. It waits behind all for which this flush had no room, or else it would be first
    /// again as long as its window is open, and those would not get their turn before.
    pub fn had_turn(&mut self, socket: u32) {
        self.had_turn.push(socket);
    }

    fn place(&mut self, socket: u32) -> &mut Place {
        let at = socket as usize;
        if at >= self.places.len() {
            self.places.resize(at + 1, Place::Nowhere);
        }
        &mut self.places[at]
    }

    /// Sockets that wait now.
    pub fn len(&self) -> usize {
        self.queue.len() - self.void
    }

    /// How many of the waiting sockets to serve in this flush. Sockets pushed meanwhile wait for the next one.
    pub fn share(&self) -> usize {
        self.len().min(PER_TURN)
    }

    /// The next socket, which no longer waits.
    pub fn pop(&mut self) -> Option<u32> {
        loop {
            let socket = self.queue.pop_front()?;
            let place = self.place(socket);
            if *place == Place::Queued {
                *place = Place::Nowhere;
                return Some(socket);
            }
            *place = Place::Queued;
            self.void -= 1;
        }
    }

    /// Ends a flush in which all due work of `done` sockets was done. Unfinished work is tried again soon; sockets that
    /// were not reached are served at once, unless no socket could be served.
    pub fn finish(&mut self, now: Instant, waited: usize, done: usize) {
        let mut had_turn = core::mem::take(&mut self.had_turn);
        had_turn.drain(..).for_each(|socket| self.push_last(socket));
        self.had_turn = had_turn;
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
