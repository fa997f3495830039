//! Who looks over a transport's shoulder at the pages of its applications.
//!
//! What a transport reads there is input that no message carries, and it changes while it is read. A witness of
//! an [`Arena`](crate::socket::Arena) is told every such reading and may put another in its place, and is told
//! every writing. Whoever made the arena chose it; the transport cannot tell whether it has one.
//!
//! Promise: a transport gets nothing from a page but what its witness let through. Must never happen: a way to
//! read a page on the transport's side that goes past it.

/// Sees what passes between a transport and its applications' pages. Offsets are of the arena.
pub trait Witness: Send + Sync {
    /// `bytes` were read at `at`, once. The transport gets what is in them afterwards.
    fn read(&self, at: usize, bytes: &mut [u8]);

    /// `bytes` were written at `at`.
    fn wrote(&self, at: usize, bytes: &[u8]);
}
