//! Observes what a transport reads and writes in the pages of its applications.
//!
//! What a transport reads there is input that no message carries, and it changes while it is read. The access observer of
//! an [`Arena`](crate::socket::Arena) sees every reading and may put another value in its place, and sees every writing.
//! Whoever makes the arena chooses the observer; the transport cannot tell whether there is one.
//!
//! Promise: a transport gets nothing from a page but what the observer let through. Must never happen: a way to
//! read a page on the transport's side that goes past it.

/// Sees what passes between a transport and its applications' pages. Offsets are of the arena.
pub trait AccessObserver: Send + Sync {
    /// `bytes` were read at `at`, once. The transport gets what is in them afterwards.
    fn read(&self, at: usize, bytes: &mut [u8]);

    /// `bytes` were written at `at`.
    fn wrote(&self, at: usize, bytes: &[u8]);
}
