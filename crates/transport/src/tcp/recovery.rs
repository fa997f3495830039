//! How the sender handles loss: the phases, how they end, and what is retransmitted.
//!
//! With SACK, loss is found by time ([`super::rack`]) and the timer; without, by three duplicate acknowledgements (RFC
//! 5681 §3.2, RFC 6582). Duplicate acknowledgements prove nothing with SACK: our own side sends segments twice after a
//! restart of ip or nic.
//!
//! Derived state. After a rebirth everything unacknowledged is taken as lost.

use super::prr::Prr;
use super::rack::Rack;
use super::rtt::Rtt;
use super::scoreboard::{Range, Scoreboard};
use super::tail_probe::TailProbe;
use super::undo::Undo;
use eft_base::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Open,
    /// Fast recovery until `point` is acknowledged.
    Recovery,
    /// The retransmission timer ran out: slow start until `point` is acknowledged.
    Loss,
}

/// Segments that duplicate acknowledgements allow before they count as a sign of loss (RFC 3042 §2).
const LIMITED_TRANSMIT: u32 = 2;

pub struct Recovery {
    pub phase: Phase,
    /// Highest offset sent when the phase began.
    pub point: u64,
    /// When the window was reduced last.
    pub reduced_at: Instant,
    /// Duplicate acknowledgements in a row, without SACK.
    pub duplicates: u32,
    /// One segment may go regardless of the window: the fast retransmission itself.
    pub force: bool,
    /// A tail loss probe is to be sent, window or not.
    pub probe_due: bool,
    pub probe: Option<TailProbe>,
    /// A round trip was measured since the last probe (RFC 8985 §7.3).
    pub measured: bool,
    pub undo: Option<Undo>,
    pub prr: Prr,
    pub rack: Rack,
    pub board: Scoreboard,
}

impl Default for Recovery {
    fn default() -> Self {
        Recovery {
            phase: Phase::Open,
            point: 0,
            reduced_at: Instant::ZERO,
            duplicates: 0,
            force: false,
            probe_due: false,
            probe: None,
            measured: true,
            undo: None,
            prr: Prr::default(),
            rack: Rack::default(),
            board: Scoreboard::default(),
        }
    }
}

impl Recovery {
    /// Bytes believed to be in the network (RFC 6675 §4 `SetPipe`).
    pub fn pipe(&self, mss: u32) -> u64 {
        // Each duplicate acknowledgement says that a segment left the network. Before recovery they allow two more
        // segments (limited transmit, RFC 5681 §3.2 step 1).
        let left = match self.phase {
            Phase::Open => self.duplicates.min(LIMITED_TRANSMIT),
            Phase::Recovery => self.duplicates,
            Phase::Loss => 0,
        };
        self.board.in_network().saturating_sub(left as u64 * mss as u64)
    }

    /// What to send again next. Nothing while F-RTO tries new data first (RFC 5682 §3.1 step 2b).
    pub fn next_lost(&self) -> Option<Range> {
        let waits = self.undo.as_ref().is_some_and(Undo::tries_new_data);
        if waits { None } else { self.board.first_lost() }
    }

    /// Nothing points to loss.
    pub fn is_calm(&self) -> bool {
        self.phase == Phase::Open && self.duplicates == 0 && self.board.sacked() == 0
    }

    /// New data was sent.
    pub fn on_sent(&mut self, range: Range, now: Instant) {
        self.board.send(range.start, range.end, now);
        self.prr.on_sent(range.len());
    }

    /// `range` was sent again.
    pub fn on_sent_again(&mut self, range: Range, now: Instant) {
        self.board.send_again(range, now);
        self.prr.on_sent(range.len());
        self.force = false;
        if let Some(undo) = &mut self.undo {
            undo.on_sent_again(range.len());
        }
    }

    /// `una` is now acknowledged. True if a phase ended with it.
    pub fn ends_at(&mut self, una: u64, nxt: u64) -> bool {
        if self.phase == Phase::Open || una < self.point {
            return false;
        }
        self.phase = Phase::Open;
        self.duplicates = 0;
        self.force = false;
        self.rack.on_recovered();
        if let Some(undo) = &mut self.undo {
            undo.on_recovered(nxt);
        }
        true
    }

    /// Enters fast recovery, or another one. `flight_size`: bytes that had not left the network.
    pub fn enter(&mut self, nxt: u64, flight_size: u64, now: Instant) {
        self.phase = Phase::Recovery;
        (self.point, self.reduced_at) = (nxt, now);
        self.prr = Prr::new(flight_size);
        self.force = true;
        self.probe = None;
    }

    /// The first segment is lost, without SACK.
    pub fn lose_first(&mut self, una: u64, nxt: u64, mss: u32) {
        self.board.lose_range(Range { start: una, end: (una + mss as u64).min(nxt) });
    }

    /// A partial acknowledgement in fast recovery without SACK (RFC 6582 §3.2 step 3): the next segment is lost, too.
    pub fn on_partial(&mut self, una: u64, nxt: u64, acked: u64, mss: u32) {
        let left = (acked / mss as u64).min(self.duplicates as u64) as u32;
        self.duplicates -= left;
        self.lose_first(una, nxt, mss);
        self.force = true;
    }

    /// Nothing was lost after all.
    pub fn forgive(&mut self) {
        self.phase = Phase::Open;
        self.board.find_all();
        self.duplicates = 0;
        self.force = false;
        self.undo = None;
    }

    /// The retransmission timer ran out: the first segment is lost, and so is everything that should have arrived by now
    /// (RFC 8985 §6.3).
    pub fn on_timeout(&mut self, una: u64, nxt: u64, mss: u32, now: Instant, rtt: &Rtt) {
        if self.board.is_reneged() {
            self.board.distrust();
        }
        self.rack.detect_all(&mut self.board, now, rtt);
        self.lose_first(una, nxt, mss);
        self.begin_loss(nxt);
        self.reduced_at = now;
    }

    fn begin_loss(&mut self, nxt: u64) {
        self.phase = Phase::Loss;
        self.point = nxt;
        self.duplicates = 0;
        self.force = true;
        self.probe = None;
        self.probe_due = false;
    }

    /// Slow start over everything in flight that did not arrive: after a timeout, or after our own rebirth.
    pub fn lose_all(&mut self, una: u64, nxt: u64) {
        self.board.lose_range(Range { start: una, end: nxt });
        self.begin_loss(nxt);
    }
}

#[cfg(test)]
mod tests;
