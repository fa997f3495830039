//! The sender's scoreboard: for every byte in flight, when it was last sent and its fate (RFC 6675 §3, RFC 8985 §5.2, RFC
//! 2018).
//!
//! Derived state: it may be forgotten at any time, as the receiver may renege; then everything counts as lost.

mod whole;

use super::rate::Stamp;
use alloc::collections::VecDeque;
use eft_base::Instant;
use whole::even;

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

/// SACK blocks may not split the sent data into more pieces; further blocks are ignored, which costs a needless
/// retransmission.
const PIECES_MAX: usize = 4096;

/// Bytes that were sent together and have the same fate. Each begins where the one before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub end: u64,
    /// When it was last sent.
    pub at: Instant,
    /// It was sent more than once.
    pub again: bool,
    pub fate: Fate,
    /// What was known of the rate then.
    pub stamp: Stamp,
    /// Bytes of each segment from its start on; 0: not known.
    pub segment: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// In the network, as far as is known.
    Sent,
    /// Selectively acknowledged.
    Arrived,
    /// Believed lost, and not sent again since.
    Lost,
}

/// What is new in an acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivered {
    /// Bytes that have left the network (RFC 9937 `DeliveredData`).
    pub bytes: u64,
    /// Those of them that were sent only once, up to the highest offset sent when recovery began.
    pub originals: u64,
    /// The one of these pieces that was sent last.
    pub latest: Option<Sending>,
    /// Its time and stamp.
    pub newest: Option<(Instant, Stamp)>,
    /// When the last piece below the acknowledgment number was sent.
    pub last_at: Option<Instant>,
    /// When the last-sent of the pieces that were sent only once was sent: it measures a round trip (Karn's algorithm).
    pub timed_at: Option<Instant>,
    /// How far a piece that was sent only once lies before one that arrived earlier (RFC 8985 §6.2 step 3), in bytes.
    pub distance: u64,
}

impl Delivered {
    /// Whether something arrived later than what was sent after it.
    pub fn is_reordered(&self) -> bool {
        self.distance > 0
    }
}

/// One sending of a piece: when, and where it ends, as RFC 8985 §5.2 orders them.
pub type Sending = (Instant, u64);

/// Evidence whether an acknowledgment is for the last sending of a piece or for an earlier one (RFC 8985 §6.2 step 2).
pub struct Evidence<F: Fn(Instant) -> bool> {
    /// Whether the acknowledgment is for a transmission older than one at this time.
    pub is_older: F,
    /// The highest offset sent when recovery began.
    pub point: u64,
}

#[derive(Default)]
pub struct Scoreboard {
    una: u64,
    pieces: VecDeque<Piece>,
    sacked: u64,
    lost: u64,
    /// The end of the highest piece that ever arrived (RFC 8985 `RACK.fack`).
    highest: u64,
    /// Goes with what is sent next.
    pub stamp: Stamp,
    /// Into segments of so many bytes is cut what is sent next; 0: not known.
    pub segment: u32,
}

impl Scoreboard {
    /// Bytes selectively acknowledged.
    pub fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Bytes believed lost and not sent again.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes that were sent again and whose fate is unknown since.
    pub fn sent_again(&self) -> u64 {
        let again = |i: &usize| self.pieces[*i].again && self.pieces[*i].fate == Fate::Sent;
        (0..self.pieces.len()).filter(again).map(|i| self.pieces[i].end - self.start(i)).sum()
    }

    /// Bytes believed to be in the network (RFC 6675 §4 `SetPipe`).
    pub fn in_network(&self) -> u64 {
        self.nxt() - self.una - self.sacked - self.lost
    }

    fn nxt(&self) -> u64 {
        self.pieces.back().map_or(self.una, |piece| piece.end)
    }

    /// New data up to `end`, from `start` on.
    pub fn send(&mut self, start: u64, end: u64, at: Instant) {
        if self.pieces.is_empty() {
            self.una = start;
        }
        let (full, stamp, segment) = (self.pieces.len() >= PIECES_MAX, self.stamp, self.segment);
        let goes_on = self.goes_on_evenly(segment);
        match self.pieces.back_mut() {
            Some(last) if last.fate == Fate::Sent && !last.again && ((last.at == at && goes_on) || full) => {
                (last.end, last.at, last.stamp) = (end, at, stamp);
                last.segment = if goes_on { segment } else { 0 };
            }
            _ => self.pieces.push_back(Piece { end, at, again: false, fate: Fate::Sent, stamp, segment }),
        }
    }

    /// `range` was sent again.
    pub fn send_again(&mut self, range: Range, at: Instant) {
        let (first, last) = self.cut(range);
        for i in first..last {
            if self.pieces[i].fate != Fate::Arrived {
                self.set_fate(i, Fate::Sent);
                let (end, fate) = (self.pieces[i].end, Fate::Sent);
                let segment = self.segment_from(range.start, i);
                self.pieces[i] = Piece { end, at, again: true, fate, stamp: self.stamp, segment };
            }
        }
    }

    /// A block says that `range` arrived. Of a segment that it reports in part nothing counts.
    pub fn arrive<F: Fn(Instant) -> bool>(
        &mut self,
        range: Range,
        evidence: &Evidence<F>,
        to: &mut Delivered,
    ) {
        let range = self.whole_segments(range);
        if self.pieces.len() >= PIECES_MAX || range.start >= range.end {
            return;
        }
        let (first, last) = self.cut(range);
        let mut is_new = false;
        for i in first..last {
            if self.pieces[i].fate != Fate::Arrived {
                self.note_delivered(i, evidence, to);
                self.set_fate(i, Fate::Arrived);
                is_new = true;
            }
        }
        if is_new {
            self.highest = self.highest.max(range.end);
            self.merge();
        }
    }

    /// Everything below `una` is acknowledged.
    pub fn advance<F: Fn(Instant) -> bool>(&mut self, una: u64, evidence: &Evidence<F>, to: &mut Delivered) {
        let una = una.min(self.nxt());
        let (_, last) = self.cut(Range { start: self.una, end: una });
        for i in 0..last {
            if self.pieces[i].fate != Fate::Arrived && self.note_delivered(i, evidence, to) {
                to.last_at = Some(self.pieces[i].at);
            }
            self.set_fate(i, Fate::Sent);
        }
        self.pieces.drain(..last);
        self.una = self.una.max(una);
        self.highest = self.highest.max(una);
        if self.pieces.is_empty() && self.pieces.capacity() > PIECES_MAX / 16 {
            self.pieces = VecDeque::new();
        }
    }

    /// True if its last sending may have arrived.
    fn note_delivered<F: Fn(Instant) -> bool>(
        &self,
        i: usize,
        evidence: &Evidence<F>,
        to: &mut Delivered,
    ) -> bool {
        let piece = self.pieces[i];
        let bytes = piece.end - self.start(i);
        to.bytes += bytes;
        if !piece.again {
            to.timed_at = to.timed_at.max(Some(piece.at));
            if piece.end < self.highest {
                to.distance = to.distance.max(self.highest - self.start(i));
            }
            if piece.end <= evidence.point {
                to.originals += bytes;
            }
        } else if (evidence.is_older)(piece.at) {
            // An earlier sending of it arrived.
            return false;
        }
        if to.latest.is_none_or(|latest| latest < (piece.at, piece.end)) {
            to.latest = Some((piece.at, piece.end));
            to.newest = Some((piece.at, piece.stamp));
        }
        true
    }

    /// The first bytes that are believed lost and were not sent again.
    pub fn first_lost(&self) -> Option<Range> {
        if self.lost == 0 {
            return None;
        }
        let i = self.pieces.iter().position(|piece| piece.fate == Fate::Lost)?;
        Some(Range { start: self.start(i), end: self.pieces[i].end })
    }

    /// The last bytes that did not arrive, at most `len`.
    pub fn last_missing(&self, len: u64) -> Option<Range> {
        let i = self.pieces.iter().rposition(|piece| piece.fate != Fate::Arrived)?;
        let end = self.pieces[i].end;
        Some(Range { start: self.start(i).max(end.saturating_sub(len)), end })
    }

    /// Whether three segments arrived beyond a hole: by count of blocks or by bytes (RFC 6675 §2, §4 `IsLost`).
    pub fn has_three_beyond(&self, mss: u32) -> bool {
        if self.sacked == 0 {
            return false;
        }
        let blocks = self.pieces.iter().filter(|piece| piece.fate == Fate::Arrived).take(3).count();
        self.sacked > 2 * mss as u64 || blocks == 3
    }

    /// Marks as lost the pieces sent no later than `latest` for which `judge` says so. Returns how many bytes.
    pub fn lose(&mut self, latest: Sending, mut judge: impl FnMut(&Piece) -> bool) -> u64 {
        let before = self.lost;
        for i in 0..self.pieces.len() {
            let piece = self.pieces[i];
            if (piece.at, piece.end) > latest && !piece.again {
                // All further ones were sent later still.
                break;
            }
            if piece.fate == Fate::Sent && (piece.at, piece.end) < latest && judge(&piece) {
                self.set_fate(i, Fate::Lost);
            }
        }
        if self.lost > before {
            self.merge();
        }
        self.lost - before
    }

    /// Everything of `range` that did not arrive is lost, including bytes that are unknown after a rebirth.
    pub fn lose_range(&mut self, range: Range) {
        if self.pieces.is_empty() && range.start < range.end {
            self.una = range.start;
            let (at, stamp) = (Instant::ZERO, Stamp::default());
            let lost = Piece { end: range.end, at, again: true, fate: Fate::Sent, stamp, segment: 0 };
            self.pieces.push_back(lost);
        }
        let (first, last) = self.cut(range);
        for i in first..last {
            if self.pieces[i].fate == Fate::Sent {
                self.set_fate(i, Fate::Lost);
            }
        }
        self.merge();
    }

    /// Nothing is lost after all.
    pub fn find_all(&mut self) {
        for i in 0..self.pieces.len() {
            if self.pieces[i].fate == Fate::Lost {
                self.set_fate(i, Fate::Sent);
            }
        }
    }

    /// Whether the receiver waits for bytes that it reported as received: it has reneged (RFC 2018 §8).
    pub fn is_reneged(&self) -> bool {
        self.pieces.front().is_some_and(|piece| piece.fate == Fate::Arrived)
    }

    /// The receiver may have reneged (RFC 2018 §8): selectively acknowledged pieces count as lost.
    pub fn distrust(&mut self) {
        for i in 0..self.pieces.len() {
            if self.pieces[i].fate == Fate::Arrived {
                self.set_fate(i, Fate::Lost);
            }
        }
        self.merge();
    }

    fn start(&self, i: usize) -> u64 {
        match i {
            0 => self.una,
            _ => self.pieces[i - 1].end,
        }
    }

    fn set_fate(&mut self, i: usize, fate: Fate) {
        let len = self.pieces[i].end - self.start(i);
        match core::mem::replace(&mut self.pieces[i].fate, fate) {
            Fate::Sent => {}
            Fate::Arrived => self.sacked -= len,
            Fate::Lost => self.lost -= len,
        }
        match fate {
            Fate::Sent => {}
            Fate::Arrived => self.sacked += len,
            Fate::Lost => self.lost += len,
        }
    }

    /// Cuts pieces so that some begin and end where `range` does; returns which these are: from, and up to.
    fn cut(&mut self, range: Range) -> (usize, usize) {
        (self.cut_at(range.start), self.cut_at(range.end))
    }

    /// The index of the piece that begins at `offset`, or of the first behind it.
    fn cut_at(&mut self, offset: u64) -> usize {
        let i = self.pieces.partition_point(|piece| piece.end <= offset);
        if i == self.pieces.len() || self.start(i) >= offset {
            return i;
        }
        let piece = self.pieces[i];
        self.pieces[i].segment = even(piece.segment, offset - self.start(i));
        self.pieces.insert(i, Piece { end: offset, ..piece });
        i + 1
    }

    /// Joins neighbouring pieces that need not be distinguished: arrived ones, and lost ones.
    fn merge(&mut self) {
        let mut kept = 0;
        for i in 0..self.pieces.len() {
            let piece = self.pieces[i];
            let len = if kept > 0 { self.pieces[kept - 1].end - self.start(kept - 1) } else { 0 };
            let joins = kept > 0 && {
                let last = &self.pieces[kept - 1];
                last.fate == piece.fate
                    && match piece.fate {
                        Fate::Arrived => true,
                        Fate::Lost => last.again == piece.again,
                        Fate::Sent => (last.again, last.at) == (piece.again, piece.at),
                    }
            };
            if joins {
                let last = &mut self.pieces[kept - 1];
                last.segment = if last.segment == piece.segment { even(piece.segment, len) } else { 0 };
                last.end = piece.end;
                last.at = last.at.max(piece.at);
                last.again |= piece.again;
            } else {
                self.pieces[kept] = piece;
                kept += 1;
            }
        }
        self.pieces.truncate(kept);
    }
}

#[cfg(test)]
mod tests;
