//! The sender's scoreboard of selectively acknowledged data (RFC 2018, RFC 6675 §3, §4).
//!
//! Derived state: it may be forgotten at any time, as the receiver may renege.

use alloc::vec::Vec;

/// Bytes `start..end` of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub end: u64,
}

impl Range {
    pub fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// Ranges kept at most; what does not fit is forgotten, which costs a needless retransmission.
const RANGES_MAX: usize = 128;
/// RFC 6675 §2
const DUPLICATE_THRESHOLD: u64 = 3;

/// Sorted, disjoint ranges that the receiver has, above what it acknowledged.
#[derive(Default)]
pub struct Scoreboard {
    ranges: Vec<Range>,
    sacked: u64,
}

impl Scoreboard {
    /// Bytes selectively acknowledged.
    pub fn sacked(&self) -> u64 {
        self.sacked
    }

    pub fn clear(&mut self) {
        self.ranges.clear();
        self.sacked = 0;
    }

    /// Adds a range; returns how many of its bytes were news.
    pub fn insert(&mut self, new: Range) -> u64 {
        if new.start >= new.end {
            return 0;
        }
        let first = self.ranges.partition_point(|r| r.end < new.start);
        let last = self.ranges.partition_point(|r| r.start <= new.end);
        let covered: u64 = self.ranges[first..last].iter().map(Range::len).sum();
        let mut merged = new;
        if first < last {
            merged.start = merged.start.min(self.ranges[first].start);
            merged.end = merged.end.max(self.ranges[last - 1].end);
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..last);
        } else if self.ranges.len() < RANGES_MAX {
            self.ranges.insert(first, merged);
        } else {
            return 0;
        }
        let news = merged.len() - covered;
        self.sacked += news;
        news
    }

    /// Forgets everything below `una`.
    pub fn advance(&mut self, una: u64) {
        let mut gone = 0;
        for r in &mut self.ranges {
            if r.end <= una {
                gone += 1;
                self.sacked -= r.len();
            } else {
                if r.start < una {
                    self.sacked -= una - r.start;
                    r.start = una;
                }
                break;
            }
        }
        self.ranges.drain(..gone);
    }

    /// Everything below this offset that was not selectively acknowledged is lost: `IsLost` of
    /// RFC 6675 §4, for all octets at once. 0 if nothing is.
    pub fn lost_edge(&self, mss: u32) -> u64 {
        let mut bytes = 0;
        for (i, r) in self.ranges.iter().rev().enumerate() {
            bytes += r.len();
            if i as u64 + 1 >= DUPLICATE_THRESHOLD || bytes > (DUPLICATE_THRESHOLD - 1) * mss as u64 {
                return r.start;
            }
        }
        0
    }

    /// Bytes of `start..end` that were not selectively acknowledged.
    pub fn missing(&self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let held: u64 = self.ranges.iter().map(|r| r.end.min(end).saturating_sub(r.start.max(start))).sum();
        end - start - held
    }

    /// The last bytes of `start..end` that were not selectively acknowledged.
    pub fn last_hole(&self, start: u64, mut end: u64) -> Option<Range> {
        for r in self.ranges.iter().rev() {
            if r.end < end {
                return Some(Range { start: r.end.max(start), end });
            }
            end = end.min(r.start);
        }
        (start < end).then_some(Range { start, end })
    }

    /// The first hole at or after `from`: where it begins, and where the next range begins
    /// (`u64::MAX` if there is none).
    pub fn hole(&self, from: u64) -> Range {
        let mut start = from;
        for r in &self.ranges {
            if r.end <= start {
                continue;
            }
            if r.start > start {
                return Range { start, end: r.start };
            }
            start = r.end;
        }
        Range { start, end: u64::MAX }
    }
}

#[cfg(test)]
mod tests;
