//! The part of [`super::out_of_order`] that survives a crash, and counts of [`super::byte_counting`].
//!
//! The bytes themselves already lie at their place in the receive ring; only the ranges are stored here. Durable and
//! bounded: the lowest ranges, which are needed first. The peer sends forgotten ranges again (RFC 2018 §8).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub const RANGES_MAX: usize = 32;

/// Durable set of ranges above `rcv_nxt`: sorted, disjoint, not touching.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Reassembly {
    count: u32,
    /// Bytes that came in packets with ECT(1), ECT(0) and CE, if accurate ECN was agreed on. Older versions stored their next
    /// reports here; they accept any value.
    bytes_by_code: [u32; 3],
    ranges: [[u64; 2]; RANGES_MAX],
}

impl Reassembly {
    pub fn new() -> Self {
        Reassembly { count: 0, bytes_by_code: [0; 3], ranges: [[0; 2]; RANGES_MAX] }
    }

    pub fn bytes_by_code(&self) -> [u32; 3] {
        self.bytes_by_code
    }

    pub fn set_bytes_by_code(&mut self, bytes: [u32; 3]) {
        self.bytes_by_code = bytes;
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn held(&self) -> &[[u64; 2]] {
        &self.ranges[..(self.count as usize).min(RANGES_MAX)]
    }

    /// The first of `ranges`, as many as there is room for.
    pub fn keep(&mut self, ranges: &[[u64; 2]]) {
        let count = ranges.len().min(RANGES_MAX);
        self.ranges[..count].copy_from_slice(&ranges[..count]);
        self.count = count as u32;
    }

    /// Whether [`Reassembly::keep`] would change nothing.
    pub fn keeps(&self, ranges: &[[u64; 2]]) -> bool {
        self.held() == &ranges[..ranges.len().min(RANGES_MAX)]
    }

    /// Whether every range lies in `(next, limit]` and all are in order; used when an arena is opened.
    pub fn is_sane(&self, next: u64, limit: u64) -> bool {
        let mut edge = next;
        (self.count as usize) <= RANGES_MAX
            && self.held().iter().all(|r| {
                let ok = r[0] > edge && r[0] < r[1] && r[1] <= limit;
                edge = r[1];
                ok
            })
    }
}
