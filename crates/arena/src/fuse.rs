//! Kills an engine in the middle of a turn, for tests.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use eft_channel::Segment;

/// Bytes that are stored at once.
const WORD: usize = 8;

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

impl Fuse {
    /// Counts one access that is not even counted in a release build.
    #[inline(always)]
    pub(crate) fn burn_in_tests(&self) {
        if cfg!(debug_assertions) {
            self.burn();
        }
    }

    /// Writes to the arena, and may die before any word of it.
    pub(crate) fn write(&self, segment: &Segment, at: usize, bytes: &[u8]) {
        self.write_pieces(segment, at, bytes, WORD);
    }

    /// Writes an item to the arena, and may die before it or in the middle of it, which stands for all its words.
    pub(crate) fn write_item(&self, segment: &Segment, at: usize, item: &[u8]) {
        self.write_pieces(segment, at, item, item.len().div_ceil(2).next_multiple_of(WORD));
    }

    fn write_pieces(&self, segment: &Segment, at: usize, bytes: &[u8], piece: usize) {
        if !self.is_lit() {
            return segment.write(at, bytes).expect("length was checked");
        }
        for (n, part) in bytes.chunks(piece).enumerate() {
            self.burn();
            segment.write(at + n * piece, part).expect("length was checked");
        }
    }
}

/// The panic message of a [`Fuse`].
pub const FUSE_BURNT: &str = "killed by a fuse";
