//! Observes what a transport reads and writes in the pages of its applications.
//!
//! A page is input that no message carries, and it changes while it is read. The access observer of an
//! [`Arena`](crate::socket::Arena) sees every read, whose value it may replace, and every write. The maker of the arena
//! chooses the observer; the transport cannot tell whether there is one.
//!
//! Invariant: everything that a transport reads from a page passes the observer. No function on the transport's side
//! may read a page around it.

use alloc::sync::Arc;

/// Sees what passes between a transport and its applications' pages. Offsets count from the arena's start.
pub trait AccessObserver: Send + Sync {
    /// `bytes` were read at `at`, once. The transport gets what this call leaves in them.
    fn read(&self, at: usize, bytes: &mut [u8]);

    /// `bytes` were written at `at`.
    fn wrote(&self, at: usize, bytes: &[u8]);
}

/// What an observer makes of bytes that were read at `at`.
#[cold]
pub(crate) fn observed<const N: usize>(
    observer: &Arc<dyn AccessObserver>,
    at: usize,
    mut bytes: [u8; N],
) -> [u8; N] {
    observer.read(at, &mut bytes);
    bytes
}
