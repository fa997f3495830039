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
mod tests {
    use super::*;

    fn board(ranges: &[(u64, u64)]) -> Scoreboard {
        let mut b = Scoreboard::default();
        for &(start, end) in ranges {
            b.insert(Range { start, end });
        }
        b
    }

    #[test]
    fn ranges_merge_and_news_are_counted_once() {
        let mut b = board(&[(10, 20), (30, 40)]);
        assert_eq!(b.insert(Range { start: 10, end: 20 }), 0);
        assert_eq!(b.insert(Range { start: 15, end: 35 }), 10);
        assert_eq!(b.sacked(), 30);
        assert_eq!(b.hole(0), Range { start: 0, end: 10 });
        assert_eq!(b.hole(12).start, 40);
        b.advance(25);
        assert_eq!(b.sacked(), 15);
        b.advance(40);
        assert_eq!(b.sacked(), 0);
    }

    #[test]
    fn loss_needs_three_ranges_or_more_than_two_segments() {
        let mss = 100;
        assert_eq!(board(&[(200, 400)]).lost_edge(mss), 0);
        assert_eq!(board(&[(200, 401)]).lost_edge(mss), 200);
        assert_eq!(board(&[(10, 11), (20, 21)]).lost_edge(mss), 0);
        assert_eq!(board(&[(10, 11), (20, 21), (30, 31)]).lost_edge(mss), 10);
        assert_eq!(board(&[(100, 200), (300, 501)]).lost_edge(mss), 300);
    }

    #[test]
    fn the_last_hole_is_behind_or_between_the_ranges() {
        let b = board(&[(10, 20), (30, 40)]);
        assert_eq!(b.last_hole(0, 50), Some(Range { start: 40, end: 50 }));
        assert_eq!(b.last_hole(0, 40), Some(Range { start: 20, end: 30 }));
        assert_eq!(board(&[(0, 40)]).last_hole(0, 40), None);
        assert_eq!(board(&[]).last_hole(5, 40), Some(Range { start: 5, end: 40 }));
    }

    #[test]
    fn missing_bytes_exclude_what_is_held() {
        let b = board(&[(10, 20), (30, 40)]);
        assert_eq!(b.missing(0, 50), 30);
        assert_eq!(b.missing(15, 35), 10);
        assert_eq!(b.missing(35, 15), 0);
    }

    #[test]
    fn random_ranges_agree_with_a_bitmap() {
        let mut random = eft_base::Random::new(7);
        for _ in 0..200 {
            let mut b = Scoreboard::default();
            let mut bits = [false; 256];
            let mut una = 0u64;
            for _ in 0..40 {
                let start = una + random.below(256 - una);
                let end = (start + random.below(30)).min(256);
                let mut news = 0;
                for bit in &mut bits[start as usize..end as usize] {
                    news += !*bit as u64;
                    *bit = true;
                }
                assert_eq!(b.insert(Range { start, end }), news);
                if random.below(8) == 0 {
                    una = (una + random.below(20)).min(255);
                    bits[..una as usize].fill(false);
                    b.advance(una);
                }
                assert_eq!(b.sacked(), bits.iter().filter(|x| **x).count() as u64);
                assert_eq!(b.missing(una, 256), bits[una as usize..].iter().filter(|x| !**x).count() as u64);
            }
        }
    }
}
