//! Whether this process has to check for error queues at all ([`crate::poll`]).

use core::sync::atomic::{AtomicBool, Ordering};

static WATCHED: AtomicBool = AtomicBool::new(false);

/// From now on this process has, or had, a socket with an error queue.
pub fn watch() {
    WATCHED.store(true, Ordering::Relaxed);
}

#[inline]
pub fn is_watching() -> bool {
    WATCHED.load(Ordering::Relaxed)
}
