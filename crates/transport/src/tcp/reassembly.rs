//! Out-of-order data (RFC 9293 §3.10.7.4, RFC 2018 for how it is reported).
//!
//! The bytes themselves already lie at their place in the receive ring; here is only which ranges
//! are there. Durable and bounded: a segment that would need one range more is dropped.

use super::scoreboard::Range;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub const RANGES_MAX: usize = 32;

/// Durable set of ranges above `rcv_nxt`: sorted, disjoint, not touching.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Reassembly {
    count: u32,
    /// Turns so that every range is reported in time.
    turn: u32,
    /// A byte of the range that grew last: it is reported first (RFC 2018 §4).
    latest: u64,
    ranges: [[u64; 2]; RANGES_MAX],
}

impl Reassembly {
    pub fn new() -> Self {
        Reassembly { count: 0, turn: 0, latest: 0, ranges: [[0; 2]; RANGES_MAX] }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn held(&self) -> &[[u64; 2]] {
        &self.ranges[..(self.count as usize).min(RANGES_MAX)]
    }

    /// Notes that `start..end` arrived. False if there is no room for one range more.
    pub fn insert(&mut self, start: u64, end: u64) -> bool {
        let n = self.held().len();
        let first = self.held().partition_point(|r| r[1] < start);
        let last = self.held().partition_point(|r| r[0] <= end);
        if first == last {
            if n == RANGES_MAX {
                return false;
            }
            self.ranges.copy_within(first..n, first + 1);
            self.ranges[first] = [start, end];
            self.count += 1;
        } else {
            let merged = [start.min(self.ranges[first][0]), end.max(self.ranges[last - 1][1])];
            self.ranges[first] = merged;
            self.ranges.copy_within(last..n, first + 1);
            self.count -= (last - first - 1) as u32;
        }
        self.latest = start;
        true
    }

    /// In-order data reaches to `next`: returns how far it reaches with what is held, and forgets
    /// what is thereby in order.
    pub fn advance(&mut self, mut next: u64) -> u64 {
        let mut gone = 0;
        for r in self.held() {
            if r[0] > next {
                break;
            }
            next = next.max(r[1]);
            gone += 1;
        }
        if gone > 0 {
            let n = self.held().len();
            self.ranges.copy_within(gone..n, 0);
            self.count -= gone as u32;
        }
        next
    }

    /// Whether all of `start..end` is held already.
    pub fn holds(&self, start: u64, end: u64) -> bool {
        self.held().iter().any(|r| r[0] <= start && end <= r[1])
    }

    /// Up to `to.len()` ranges to report, the latest first; returns how many.
    pub fn report(&mut self, to: &mut [Range]) -> usize {
        let n = self.held().len();
        if n == 0 || to.is_empty() {
            return 0;
        }
        let latest = self.held().iter().position(|r| r[0] <= self.latest && self.latest < r[1]).unwrap_or(0);
        let turn = self.turn as usize;
        self.turn = self.turn.wrapping_add(1);
        let others = (0..n).map(|i| (i + turn) % n).filter(|i| *i != latest);
        let mut filled = 0;
        for i in core::iter::once(latest).chain(others).take(to.len()) {
            to[filled] = Range { start: self.ranges[i][0], end: self.ranges[i][1] };
            filled += 1;
        }
        filled
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

#[cfg(test)]
mod tests;
