//! Kills an engine in the middle of a turn, for tests.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// Panics after a number of accesses. To the arena, an engine that panics in the middle of a turn is as dead as one
/// that the kernel kills there.
#[derive(Clone, Default)]
pub struct Fuse(Arc<AtomicU64>);

impl Fuse {
    /// Lights the fuse: the `steps`-th access from now on panics. 0: no access does.
    pub fn light(&self, steps: u64) {
        self.0.store(steps, Ordering::Relaxed);
    }

    /// Accesses until the panic; 0: the fuse is not lit.
    #[inline]
    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn is_lit(&self) -> bool {
        self.left() > 0
    }

    /// Counts one access.
    #[inline]
    pub fn burn(&self) {
        if self.is_lit() {
            self.0.store(self.left() - 1, Ordering::Relaxed);
            assert!(self.is_lit(), "{FUSE_BURNT}");
        }
    }
}

/// The panic message of a [`Fuse`].
pub const FUSE_BURNT: &str = "killed by a fuse";
