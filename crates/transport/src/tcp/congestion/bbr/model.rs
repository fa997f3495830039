//! What is known of a path.

use super::super::{Own, WINDOW_MAX};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The rate stays a hundredth below the estimate, so that queues stay empty (as on Linux).
const MARGIN_PERCENT: u64 = 1;
/// More than any path; keeps the arithmetic far from wrapping.
pub(super) const BANDWIDTH_MAX: u64 = 1 << 48;

/// What is known of the path: durable, in the place of CUBIC's state.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Model {
    /// Bytes per second.
    pub(crate) bandwidth: u64,
    /// When the shortest round trip was measured, in nanoseconds.
    pub(super) min_rtt_at: u64,
    /// 0: none was measured.
    pub(crate) min_rtt_us: u32,
    /// The window before a recovery, or before the queue was emptied.
    pub(super) prior_cwnd: u32,
    /// Not 0: the path was full once.
    pub(super) is_full: u32,
    pub(super) reserved: u32,
}

const _: () = assert!(size_of::<Model>() == size_of::<Own>());

impl Model {
    /// With what is out of range unknown again; used when an arena is opened.
    pub(in crate::tcp::congestion) fn sane(self) -> Model {
        let sane = self.bandwidth <= BANDWIDTH_MAX && self.prior_cwnd <= WINDOW_MAX;
        if sane { self } else { Model::default() }
    }

    /// The rate that keeps the path busy and its queue empty.
    pub(super) fn cruising_rate(&self) -> u64 {
        self.bandwidth / 100 * (100 - MARGIN_PERCENT)
    }
}
