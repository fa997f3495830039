//! Readiness mirrored in a kernel descriptor.
//!
//! An eft descriptor is one end of a Unix socketpair; the transport holds the other. The kernel's
//! own poll state of that descriptor is made to equal the readiness of the eft socket, so that
//! `select`, `poll` and every kind of `epoll` work without emulation:
//!
//! - *readable*: the descriptor holds exactly one empty message while [`ReadToken`] is set, and up to [`EDGES_MAX`] further
//!   ones if the program asked for reports of new input before it took all earlier input (edge-triggered epoll, EPOLLEXCLUSIVE);
//! - *not writable*: the descriptor's send buffer is stopped by one plug while [`WritePlug`] is set.
//!
//! Each 0→1 transition of a word adds one message and each 1→0 transition takes one away, so the
//! count is exact whatever the interleaving; `tests/loom.rs` checks it.

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Further messages that may lie in a descriptor beside the first. A program that lets so many edges pass without taking
/// anything gets no further ones until it does.
pub const EDGES_MAX: u64 = 3;

/// Bit 0 is set while an empty message lies (or is about to lie) in the application's descriptor; two
/// bits count further ones; the bits above repeat how far the application has read.
///
/// All in one word, so that a server never posts for input that was taken already: to some programs a descriptor that is
/// readable without anything to read is an error.
#[repr(C)]
pub struct ReadToken(AtomicU64);

const POSTED: u64 = 1;
const EDGE: u64 = 2;
const EDGES: u64 = EDGE * EDGES_MAX;
const MESSAGES: u64 = POSTED | EDGES;
const TAKEN_SHIFT: u32 = 3;

/// Messages that a word stands for.
fn messages(word: u64) -> u32 {
    ((word & POSTED) + (word & EDGES) / EDGE) as u32
}

impl ReadToken {
    pub fn new() -> ReadToken {
        ReadToken(AtomicU64::new(0))
    }

    pub fn is_posted(&self) -> bool {
        self.0.load(Ordering::Relaxed) & POSTED != 0
    }

    /// Application: has read up to `taken`.
    pub fn note_taken(&self, taken: u64) {
        let mut word = self.0.load(Ordering::Relaxed);
        while let Err(now) = self.0.compare_exchange(
            word,
            taken << TAKEN_SHIFT | word & MESSAGES,
            Ordering::SeqCst,
            Ordering::SeqCst,
        ) {
            word = now;
        }
    }

    /// Server, after it published `end`: true if it must now send one empty message.
    pub fn post(&self, end: u64) -> bool {
        fence(Ordering::SeqCst);
        let mut word = self.0.load(Ordering::Relaxed);
        while word & POSTED == 0 && word >> TAKEN_SHIFT < end {
            match self.0.compare_exchange(word, word | POSTED, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// As [`ReadToken::post`], for input that no position shows (at the shadow socket).
    pub fn post_anyway(&self) -> bool {
        self.0.fetch_or(POSTED, Ordering::SeqCst) & POSTED == 0
    }

    /// Server, after it published new input while the token is set: true if it must now send one message
    /// more, so that edge-triggered epoll reports again.
    pub fn post_edge(&self) -> bool {
        let mut word = self.0.load(Ordering::Relaxed);
        while word & POSTED != 0 && word & EDGES != EDGES {
            match self.0.compare_exchange(word, word + EDGE, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Application, after it found nothing left: how many messages it must now take from its descriptor (waiting for each
    /// shortly if the server is just sending it). `still_ready` checks the socket again.
    pub fn retire(&self, still_ready: impl FnOnce() -> bool) -> u32 {
        let before = self.0.fetch_and(!MESSAGES, Ordering::SeqCst);
        if before & POSTED == 0 {
            return 0;
        }
        fence(Ordering::SeqCst);
        // The first message then stands for the new token.
        messages(before) - (still_ready() && self.post_anyway()) as u32
    }

    /// Application, after it took a part: as [`ReadToken::retire`], for the further messages only. The next input is then
    /// reported again.
    pub fn retire_edges(&self) -> u32 {
        if self.0.load(Ordering::Relaxed) & EDGES == 0 {
            return 0;
        }
        messages(self.0.fetch_and(!EDGES, Ordering::SeqCst) & EDGES)
    }
}

impl Default for ReadToken {
    fn default() -> Self {
        Self::new()
    }
}

const PLUGGED: u32 = 1;
/// The server takes the plug out: a successor that finds this value does it again.
const TAKING: u32 = 2;

/// 1 while a plug stops the application's descriptor from being writable, 2 while the server takes it out. The word keeps
/// this value until the plug is gone: a server that dies between its steps leaves no forgotten plug.
#[repr(C)]
pub struct WritePlug(AtomicU32);

impl WritePlug {
    pub fn new() -> WritePlug {
        WritePlug(AtomicU32::new(0))
    }

    /// Application: whether its plug is there and stays until there is room. While the server takes it out, the plug may be
    /// gone and epoll may have reported that already, so another one is needed.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst) == PLUGGED
    }

    /// Application, under the send lock: call right after the plug was sent, then tell the server
    /// (it may have freed space before it could see the plug).
    pub fn set(&self) {
        self.0.store(PLUGGED, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Server, after it freed space: true if it must now take one plug, and then say so by [`WritePlug::taken`].
    pub fn take(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) == PLUGGED
            && self.0.compare_exchange(PLUGGED, TAKING, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Server: the plug is out. An application that has put in another one meanwhile, and said so, keeps it.
    pub fn taken(&self) {
        let _ = self.0.compare_exchange(TAKING, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Successor of a server: true if its predecessor died while it took the plug out; the plug may or may not be gone.
    pub fn is_half_taken(&self) -> bool {
        self.0.load(Ordering::SeqCst) == TAKING
    }

    /// As [`WritePlug::take`] and [`WritePlug::taken`], where nothing can come between them.
    pub fn clear(&self) -> bool {
        let take = self.take();
        self.taken();
        take
    }
}

impl Default for WritePlug {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
