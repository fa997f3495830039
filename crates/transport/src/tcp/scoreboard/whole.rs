//! Which segments a block of a selective acknowledgment reports as a whole.
//!
//! A receiver that reports a part of a segment may have the rest or not, and it is the segment that would be sent again. As on
//! Linux (`tcp_match_skb_to_sack`), nothing of it counts as arrived then: RFC 8985 §5.2 has one fate for each segment. Where the
//! boundaries of segments are not known, after a rebirth or when there are too many pieces, each byte counts.

use super::{Range, Scoreboard};

/// What is left of the size of a piece's segments `len` bytes behind its start: nothing is known from the middle of one on.
pub(super) fn even(segment: u32, len: u64) -> u32 {
    if segment > 0 && len.is_multiple_of(segment as u64) { segment } else { 0 }
}

impl Scoreboard {
    /// Whether segments of this size go on behind the last piece as if they belonged to it.
    pub(super) fn goes_on_evenly(&self, segment: u32) -> bool {
        let Some(last) = self.pieces.back() else {
            return false;
        };
        let len = last.end - self.start(self.pieces.len() - 1);
        last.segment == segment && (segment == 0 || len.is_multiple_of(segment as u64))
    }

    /// The size of the segments of a piece if it is part of what was sent from `start` on.
    pub(super) fn segment_from(&self, start: u64, i: usize) -> u32 {
        even(self.segment, self.start(i).saturating_sub(start))
    }

    /// The whole segments within `range`.
    pub(super) fn whole_segments(&self, range: Range) -> Range {
        let (start, end) = (self.boundary(range.start, true), self.boundary(range.end, false));
        Range { start, end: end.max(start) }
    }

    /// The boundary of segments at `offset`, or the next one in this direction.
    fn boundary(&self, offset: u64, up: bool) -> u64 {
        let i = self.pieces.partition_point(|piece| piece.end <= offset);
        let Some(piece) = self.pieces.get(i).filter(|piece| piece.segment > 0) else {
            return offset;
        };
        let start = self.start(i);
        let beyond = offset.saturating_sub(start) % piece.segment as u64;
        match (beyond, up) {
            (0, _) => offset,
            (_, true) => (offset - beyond + piece.segment as u64).min(piece.end),
            (_, false) => offset - beyond,
        }
    }
}
