//! Urgent data (RFC 9293 §3.8.5): where the urgent byte lies among the others of its stream, in both directions.
//!
//! The byte itself lies in the ring like any other. Who reads it is the application's matter: MSG_OOB, or in line.

use super::SocketPage;

const SENT: usize = 120;
const TAKEN: usize = 144;
const RECEIVED: usize = 216;

/// The last urgent byte that the peer announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgent {
    /// Its offset in the stream.
    pub at: u64,
    /// It lies in the ring.
    pub arrived: bool,
}

impl Urgent {
    /// As the page has it; 0: there is none.
    pub fn word(urgent: Option<Urgent>) -> u64 {
        urgent.map_or(0, |u| u.at.wrapping_add(1) << 1 | u.arrived as u64)
    }

    pub fn of_word(word: u64) -> Option<Urgent> {
        let end = word >> 1;
        (end != 0).then(|| Urgent { at: end - 1, arrived: word & 1 != 0 })
    }
}

/// How a receive goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes to leave out: an urgent byte that is not in line.
    pub skip: u64,
    /// Bytes after these that one call may take: a call does not read past an urgent byte.
    pub len: usize,
    /// The next byte is urgent.
    pub at_mark: bool,
}

impl SocketPage {
    /// Transport: see [`Urgent::word`].
    pub fn set_urgent(&self, word: u64) {
        self.store_u64(RECEIVED, word)
    }

    /// Transport: the end of the last urgent byte that the application has put in. Valid with
    /// [`super::wish::SENDS_URGENT`].
    pub fn send_urgent(&self) -> u64 {
        self.load_u64(SENT)
    }

    /// Application, before it publishes the byte.
    pub fn set_send_urgent(&self, end: u64) {
        self.store_u64(SENT, end)
    }

    /// Application: the end of the last urgent byte that it took by itself (MSG_OOB).
    pub fn urgent_taken(&self) -> u64 {
        self.load_u64(TAKEN)
    }

    pub fn set_urgent_taken(&self, end: u64) {
        self.store_u64(TAKEN, end)
    }

    /// Application: the urgent byte, until it has read past it.
    pub fn urgent(&self) -> Option<Urgent> {
        Urgent::of_word(self.load_u64(RECEIVED)).filter(|urgent| urgent.at >= self.receive_taken())
    }

    /// Application: the urgent byte, if it has arrived and was not taken by itself.
    pub fn urgent_byte(&self) -> Option<u64> {
        let urgent = self.urgent().filter(|urgent| urgent.arrived);
        urgent.map(|urgent| urgent.at).filter(|at| self.urgent_taken() != at + 1)
    }

    /// Application: what a receive from `from` on does with `available` bytes; `inline` as SO_OOBINLINE says.
    pub fn receive_step(&self, from: u64, available: usize, inline: bool) -> Step {
        let mark = Urgent::of_word(self.load_u64(RECEIVED)).map(|urgent| urgent.at);
        if mark.is_none() {
            return Step { skip: 0, len: available, at_mark: false };
        }
        // One that was taken by itself stays left out if another has come since.
        let taken = self.urgent_taken().checked_sub(1);
        let is_hole = |at| !inline && (mark == Some(at) || taken == Some(at));
        let mut skip = 0;
        while skip < available as u64 && is_hole(from.wrapping_add(skip)) {
            skip += 1;
        }
        let start = from.wrapping_add(skip);
        let left = available - skip as usize;
        let stops = [mark, taken.filter(|_| !inline)];
        let stop = stops.into_iter().flatten().filter(|at| *at > start).min();
        let len = stop.map_or(left, |at| (at - start).min(left as u64) as usize);
        Step { skip, len, at_mark: mark == Some(from) }
    }
}

#[cfg(test)]
mod tests;
