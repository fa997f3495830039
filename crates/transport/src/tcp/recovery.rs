//! What the sender believes lost, and how it recovers (RFC 6675 with SACK, RFC 6582 without).
//!
//! With SACK only SACK information counts: duplicate acknowledgements alone, such as those for
//! segments that our own side sent twice after a restart of ip or nic, prove nothing.
//!
//! The rescue retransmission of RFC 6675 waits for a partial acknowledgement. Right at the beginning of recovery the
//! segments after the hole are merely on their way, and the rescue would repeat the last of them in vain.
//!
//! Derived state. After a rebirth everything unacknowledged is taken as lost.

use super::congestion::Congestion;
use super::sack::{Range, Scoreboard};
use super::segment::Segment;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Open,
    /// Fast recovery until `point` is acknowledged.
    Recovery,
    /// The retransmission timer ran out: slow start until `point` is acknowledged.
    Loss,
}

/// Whether the last segment is sent again on suspicion (RFC 6675 `RescueRxt`): once in a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rescue {
    NotYet,
    Due,
    Done,
}

/// What a retransmission timeout took away. It is given back if the first acknowledgment afterwards echoes a timestamp of
/// before the timeout: then the original arrived, only late (Eifel detection, RFC 3522 §3.2).
#[derive(Clone, Copy, Debug)]
pub struct Undo {
    pub congestion: Congestion,
    /// Our timestamp clock at the first timeout. No segment that is sent again carries less.
    pub clock: u32,
}

impl Undo {
    /// Whether this acknowledgment tells that the timeout came too early.
    pub fn is_due(&self, acknowledgment: &Segment) -> bool {
        let echo = acknowledgment.options.timestamps.map_or(0, |(_, echo)| echo);
        echo != 0 && (echo.wrapping_sub(self.clock) as i32) < 0
    }
}

/// Segments that duplicate acknowledgements let out before they count as a sign of loss (RFC 3042).
const LIMITED_TRANSMIT: u32 = 2;

pub struct Recovery {
    pub phase: Phase,
    /// Highest offset sent when the phase began.
    pub point: u64,
    /// Everything below that is not in the scoreboard is lost.
    pub lost_below: u64,
    /// Everything lost below this has been sent again (RFC 6675 `HighRxt`).
    pub high_rxt: u64,
    /// Duplicate acknowledgements in a row, without SACK.
    pub duplicates: u32,
    /// One segment may go regardless of the window: the fast retransmission itself.
    pub force: bool,
    rescue: Rescue,
    /// Highest offset sent when the first hole was last sent again: if data beyond it arrives and
    /// the hole stays, that retransmission is lost too.
    mark: u64,
    /// Until the first acknowledgment after a timeout.
    pub undo: Option<Undo>,
    pub board: Scoreboard,
}

impl Default for Recovery {
    fn default() -> Self {
        Recovery {
            phase: Phase::Open,
            point: 0,
            lost_below: 0,
            high_rxt: 0,
            duplicates: 0,
            force: false,
            rescue: Rescue::NotYet,
            mark: 0,
            undo: None,
            board: Scoreboard::default(),
        }
    }
}

impl Recovery {
    /// Bytes believed to be in the network (RFC 6675 §4 `SetPipe`).
    pub fn pipe(&self, una: u64, nxt: u64, mss: u32) -> u64 {
        let lost = self.board.missing(self.high_rxt.max(una), self.lost_below);
        // What a duplicate acknowledgement says has left. Before recovery it lets two segments more go (limited
        // transmit, RFC 5681 §3.2 step 1).
        let left = match self.phase {
            Phase::Open => self.duplicates.min(LIMITED_TRANSMIT),
            Phase::Recovery => self.duplicates,
            Phase::Loss => 0,
        } as u64
            * mss as u64;
        (nxt - una).saturating_sub(self.board.sacked() + lost + left)
    }

    /// What to send again next (`NextSeg` rule 1).
    pub fn next_lost(&self, una: u64) -> Option<Range> {
        if self.lost_below <= una {
            return None;
        }
        let hole = self.board.hole(una.max(self.high_rxt));
        (hole.start < self.lost_below)
            .then(|| Range { start: hole.start, end: hole.end.min(self.lost_below) })
    }

    /// Nothing points to loss.
    pub fn is_calm(&self) -> bool {
        self.phase == Phase::Open && self.duplicates == 0 && self.board.sacked() == 0
    }

    /// One segment of what was not sent again and lies below something that arrived (`NextSeg` rule 3).
    pub fn next_unsacked(&self, una: u64, mss: u64) -> Option<Range> {
        let hole = self.board.hole(una.max(self.high_rxt));
        (hole.end != u64::MAX).then(|| Range { start: hole.start, end: hole.end.min(hole.start + mss) })
    }

    /// The last segment that did not arrive, once in a recovery (`NextSeg` rule 4): whatever was lost after the last
    /// hole, its acknowledgement tells.
    pub fn next_rescue(&self, una: u64, nxt: u64, mss: u64) -> Option<Range> {
        if self.rescue != Rescue::Due {
            return None;
        }
        let last = self.board.last_hole(una, nxt)?;
        Some(Range { start: last.start.max(last.end.saturating_sub(mss)), end: last.end })
    }

    /// `range` was sent again; the highest offset sent so far is `nxt`.
    pub fn on_retransmitted(&mut self, range: Range, una: u64, nxt: u64) {
        self.high_rxt = self.high_rxt.max(range.end);
        self.force = false;
        if range.start <= una {
            self.mark = nxt;
        }
    }

    /// The last segment was sent again on suspicion. What is below it may still be found lost: `HighRxt` stays.
    pub fn on_rescued(&mut self) {
        self.rescue = Rescue::Done;
    }

    /// `una` is now acknowledged. True if a phase ended.
    pub fn advance(&mut self, una: u64) -> bool {
        self.board.advance(una);
        if self.phase != Phase::Open && una >= self.point {
            self.phase = Phase::Open;
            self.duplicates = 0;
            self.force = false;
            self.lost_below = 0;
            self.high_rxt = 0;
            return true;
        }
        if self.phase == Phase::Recovery && self.rescue == Rescue::NotYet {
            self.rescue = Rescue::Due;
        }
        false
    }

    /// SACK news came: marks what is lost by it. True if recovery is to be entered.
    pub fn on_sack(&mut self, una: u64, mss: u32) -> bool {
        let edge = self.board.lost_edge(mss);
        if edge <= una {
            return false;
        }
        self.lost_below = self.lost_below.max(edge);
        let beyond = self.board.missing(self.mark, u64::MAX);
        let held_beyond = (u64::MAX - self.mark).saturating_sub(beyond);
        if self.phase == Phase::Recovery && self.high_rxt > una && held_beyond > 2 * mss as u64 {
            // Data sent after the retransmission of the first hole arrived; the hole did not.
            self.high_rxt = una;
            self.force = true;
            self.mark = u64::MAX;
        }
        self.phase == Phase::Open
    }

    /// Enters fast recovery: what is lost by the scoreboard, or the first segment without SACK.
    pub fn enter(&mut self, una: u64, nxt: u64, mss: u32) {
        self.phase = Phase::Recovery;
        self.undo = None;
        self.rescue = Rescue::NotYet;
        self.point = nxt;
        self.high_rxt = una;
        self.lost_below = self.lost_below.max((una + mss as u64).min(nxt));
        self.force = true;
        self.mark = nxt;
    }

    /// A partial acknowledgement in fast recovery without SACK (RFC 6582 §3.2 step 3).
    pub fn on_partial(&mut self, una: u64, nxt: u64, acked: u64, mss: u32) {
        let left = (acked / mss as u64).min(self.duplicates as u64) as u32;
        self.duplicates -= left;
        self.high_rxt = una;
        self.lost_below = (una + mss as u64).min(nxt);
        self.force = true;
    }

    /// Nothing was lost: the timeout came too early.
    pub fn forgive(&mut self) {
        self.phase = Phase::Open;
        self.lost_below = 0;
        self.high_rxt = 0;
        self.force = false;
    }

    /// Everything in flight counts as lost: after a timeout, or after our own rebirth.
    pub fn lose_all(&mut self, una: u64, nxt: u64) {
        self.phase = Phase::Loss;
        self.point = nxt;
        self.high_rxt = una;
        self.lost_below = nxt;
        self.duplicates = 0;
        self.force = true;
        self.mark = nxt;
    }
}

#[cfg(test)]
mod tests;
