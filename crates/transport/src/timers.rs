//! Deadlines of connections: one entry each in an indexed heap.
//!
//! A deadline that moves later is not touched (it fires early once and is set again), so the usual
//! case, every acknowledgement pushing the retransmission timer ahead, costs one comparison.

use alloc::vec;
use alloc::vec::Vec;
use eft_base::Instant;

/// No deadline.
pub const NEVER: Instant = Instant(u64::MAX);

const ABSENT: u32 = u32::MAX;

pub struct Timers {
    /// A binary heap of (deadline, connection).
    heap: Vec<(Instant, u32)>,
    /// Where each connection's entry lies in `heap`.
    position: Vec<u32>,
}

impl Timers {
    pub fn new(connections: usize) -> Timers {
        Timers { heap: Vec::new(), position: vec![ABSENT; connections] }
    }

    /// Makes room for `connections` connections.
    pub fn grow(&mut self, connections: usize) {
        self.position.resize(connections, ABSENT);
    }

    /// The earliest entry. It may be early, never late.
    pub fn next(&self) -> Option<Instant> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// Ensures that `connection` is handled at `at` at the latest.
    pub fn arm(&mut self, connection: u32, at: Instant) {
        if at == NEVER {
            return;
        }
        match self.position[connection as usize] {
            ABSENT => {
                self.heap.push((at, connection));
                self.position[connection as usize] = self.heap.len() as u32 - 1;
                self.rise(self.heap.len() - 1);
            }
            p if at < self.heap[p as usize].0 => {
                self.heap[p as usize].0 = at;
                self.rise(p as usize);
            }
            _ => {}
        }
    }

    pub fn cancel(&mut self, connection: u32) {
        let p = self.position[connection as usize];
        if p != ABSENT {
            self.remove(p as usize);
        }
    }

    /// Takes a connection whose entry is due.
    pub fn pop(&mut self, now: Instant) -> Option<u32> {
        let (at, connection) = *self.heap.first()?;
        if at > now {
            return None;
        }
        self.remove(0);
        Some(connection)
    }

    fn remove(&mut self, p: usize) {
        let (_, connection) = self.heap.swap_remove(p);
        self.position[connection as usize] = ABSENT;
        if p < self.heap.len() {
            self.position[self.heap[p].1 as usize] = p as u32;
            self.rise(p);
            self.sink(p);
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.position[self.heap[a].1 as usize] = a as u32;
        self.position[self.heap[b].1 as usize] = b as u32;
    }

    fn rise(&mut self, mut p: usize) {
        while p > 0 {
            let parent = (p - 1) / 2;
            if self.heap[parent].0 <= self.heap[p].0 {
                break;
            }
            self.swap(parent, p);
            p = parent;
        }
    }

    fn sink(&mut self, mut p: usize) {
        loop {
            let (left, right) = (2 * p + 1, 2 * p + 2);
            let mut least = p;
            for child in [left, right] {
                if child < self.heap.len() && self.heap[child].0 < self.heap[least].0 {
                    least = child;
                }
            }
            if least == p {
                return;
            }
            self.swap(least, p);
            p = least;
        }
    }
}

#[cfg(test)]
mod tests;
