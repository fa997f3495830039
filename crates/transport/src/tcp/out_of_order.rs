//! Out-of-order data (RFC 9293 §3.10.7.4), and how it is reported (RFC 2018 §4).
//!
//! Derived state: after a rebirth only the ranges that [`super::reassembly`] kept are known.

use super::reassembly::Reassembly;
use super::scoreboard::Range;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A segment that would need one range more is dropped: this bounds the memory that a peer can use.
pub const RANGES_MAX: usize = 1024;
/// Changes that are kept for reports: more than a batch of segments usually makes.
const RECENT_MAX: usize = 32;
/// An empty set frees larger buffers.
const CAPACITY_KEPT: usize = 64;

/// Which ranges above `rcv_nxt` arrived: sorted, disjoint, not touching.
#[derive(Default)]
pub struct OutOfOrder {
    ranges: Vec<[u64; 2]>,
    /// The ranges that changed, latest first: a byte of each, and whether it was reported since.
    recent: VecDeque<(u64, bool)>,
}

impl OutOfOrder {
    /// The state after a rebirth.
    pub fn restored(kept: &Reassembly) -> Self {
        let ranges = kept.held().to_vec();
        let recent = ranges.iter().map(|r| (r[0], false)).collect();
        OutOfOrder { ranges, recent }
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub fn ranges(&self) -> &[[u64; 2]] {
        &self.ranges
    }

    /// The ranges that `start..end` overlaps or touches: from, and up to.
    fn touched(&self, start: u64, end: u64) -> (usize, usize) {
        let from = self.ranges.partition_point(|r| r[1] < start);
        (from, self.ranges.partition_point(|r| r[0] <= end))
    }

    /// Whether `start..end` may be inserted.
    pub fn has_room(&self, start: u64, end: u64) -> bool {
        let (from, to) = self.touched(start, end);
        from < to || self.ranges.len() < RANGES_MAX
    }

    /// Notes that `start..end` arrived, if there is room.
    pub fn insert(&mut self, start: u64, end: u64) {
        if !self.has_room(start, end) {
            return;
        }
        let (from, to) = self.touched(start, end);
        let merged = match from < to {
            true => [start.min(self.ranges[from][0]), end.max(self.ranges[to - 1][1])],
            false => [start, end],
        };
        if to == from + 1 {
            self.ranges[from] = merged;
        } else {
            self.ranges.splice(from..to, [merged]);
        }
        self.recent.retain(|(byte, _)| *byte < merged[0] || merged[1] <= *byte);
        self.recent.truncate(RECENT_MAX - 1);
        self.recent.push_front((start, false));
    }

    /// In-order data reaches to `next`: returns how far it reaches together with the held ranges, and removes those that
    /// are now in order.
    ///
    /// # Panics
    /// If these are not the ranges that were kept: what a range says is delivered and acknowledged, and unlike this copy
    /// the kept one has a checksum.
    pub fn advance(&mut self, mut next: u64, kept: &Reassembly) -> u64 {
        assert!(kept.keeps(&self.ranges), "ranges of received data were changed by a stray write");
        let gone = self.ranges.iter().take_while(|r| {
            let joins = r[0] <= next;
            if joins {
                next = next.max(r[1]);
            }
            joins
        });
        let gone = gone.count();
        self.ranges.drain(..gone);
        self.recent.retain(|(byte, _)| *byte >= next);
        if self.ranges.is_empty() && self.ranges.capacity() > CAPACITY_KEPT {
            self.ranges = Vec::new();
        }
        next
    }

    /// Whether all of `start..end` is held already.
    pub fn holds(&self, start: u64, end: u64) -> bool {
        self.range_of(start).is_some_and(|r| end <= r[1])
    }

    fn range_of(&self, byte: u64) -> Option<[u64; 2]> {
        let i = self.ranges.partition_point(|r| r[1] <= byte);
        self.ranges.get(i).copied().filter(|r| r[0] <= byte)
    }

    /// A range changed and was not reported since.
    pub fn has_unreported(&self) -> bool {
        self.recent.iter().any(|(_, reported)| !reported)
    }

    /// Up to `to.len()` ranges to report (RFC 2018 §4); returns how many. The one that changed last comes first, then those
    /// not reported since they changed, then those reported already, so that a lost acknowledgement does no harm.
    pub fn report(&mut self, to: &mut [Range]) -> usize {
        let latest = self.recent.iter().take(1);
        let others = |wanted| self.recent.iter().skip(1).filter(move |(_, reported)| *reported == wanted);
        let order = latest.chain(others(false)).chain(others(true));
        let mut filled = 0;
        for (to, range) in to.iter_mut().zip(order.filter_map(|(byte, _)| self.range_of(*byte))) {
            *to = Range { start: range[0], end: range[1] };
            filled += 1;
        }
        for range in &to[..filled] {
            for (byte, reported) in &mut self.recent {
                *reported |= range.start <= *byte && *byte < range.end;
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests;
