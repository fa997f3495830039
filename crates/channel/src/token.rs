//! Readiness mirrored in a kernel descriptor.
//!
//! An eft descriptor is one end of a Unix socketpair; the transport holds the other. The kernel's
//! own poll state of that descriptor is made to equal the readiness of the eft socket, so that
//! `select`, `poll` and every kind of `epoll` work without emulation:
//!
//! - *readable*: the descriptor holds exactly one empty message while [`ReadToken`] is set;
//! - *not writable*: the descriptor's send buffer is stopped by one plug while [`WritePlug`] is set.
//!
//! Each 0→1 transition of a word adds one message and each 1→0 transition takes one away, so the
//! count is exact whatever the interleaving; `tests/loom.rs` checks it.

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Bit 0 is set while an empty message lies (or is about to lie) in the application's descriptor; the
/// bits above it repeat how far the application has read.
///
/// Both in one word, so that a server never posts for what was taken already: a descriptor that is
/// readable without anything to read is an error to some programs.
#[repr(C)]
pub struct ReadToken(AtomicU64);

const POSTED: u64 = 1;

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
        while let Err(now) =
            self.0.compare_exchange(word, taken << 1 | word & POSTED, Ordering::SeqCst, Ordering::SeqCst)
        {
            word = now;
        }
    }

    /// Server, after it published `end`: true if it must now send one empty message.
    pub fn post(&self, end: u64) -> bool {
        fence(Ordering::SeqCst);
        let mut word = self.0.load(Ordering::Relaxed);
        while word & POSTED == 0 && word >> 1 < end {
            match self.0.compare_exchange(word, word | POSTED, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// As [`ReadToken::post`], for news that no position tells (a kernel listener beside this one).
    pub fn post_anyway(&self) -> bool {
        self.0.fetch_or(POSTED, Ordering::SeqCst) & POSTED == 0
    }

    /// Application, after it found nothing left: true if it must now take one message from its
    /// descriptor (waiting for it shortly if the server is just sending it). `still_ready` looks at
    /// the socket again.
    pub fn retire(&self, still_ready: impl FnOnce() -> bool) -> bool {
        if self.0.fetch_and(!POSTED, Ordering::SeqCst) & POSTED == 0 {
            return false;
        }
        fence(Ordering::SeqCst);
        !(still_ready() && self.post_anyway())
    }
}

impl Default for ReadToken {
    fn default() -> Self {
        Self::new()
    }
}

/// 1 while a plug stops the application's descriptor from being writable.
#[repr(C)]
pub struct WritePlug(AtomicU32);

impl WritePlug {
    pub fn new() -> WritePlug {
        WritePlug(AtomicU32::new(0))
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Application, under the send lock: call right after the plug was sent, then tell the server
    /// (it may have freed space before it could see the plug).
    pub fn set(&self) {
        self.0.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Server, after it freed space: true if it must now take one plug.
    pub fn clear(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) != 0 && self.0.swap(0, Ordering::SeqCst) != 0
    }
}

impl Default for WritePlug {
    fn default() -> Self {
        Self::new()
    }
}
