//! Loss detection by time (RACK, RFC 8985 §6): a segment is lost if one that was sent later arrived, and the reordering
//! window has passed since it should have arrived, too.
//!
//! Only with SACK; without it three duplicate acknowledgements count ([`super::ack`]).

use super::rtt::Rtt;
use super::scoreboard::{Delivered, Scoreboard, Sending};
use core::time::Duration;
use eft_base::Instant;

/// Recoveries without a DSACK after which the window is small again (§6.2 step 4).
const PERSIST: u32 = 16;
/// The window never exceeds this many quarters of a round trip before SRTT bounds it.
const MULTIPLE_MAX: u32 = 64;

/// What RACK knows of a connection (§5.3).
#[derive(Clone, Copy, Debug)]
pub struct Rack {
    /// The last-sent transmission that arrived (`RACK.xmit_ts`, `RACK.end_seq`).
    latest: Option<Sending>,
    /// The last round trip (`RACK.rtt`).
    rtt: Duration,
    reordering_seen: bool,
    /// Quarters of the shortest round trip that a segment may come late (`RACK.reo_wnd_mult`).
    multiple: u32,
    persist: u32,
    /// Until this is acknowledged, one DSACK counts as all (`RACK.dsack_round`).
    dsack_round: Option<u64>,
}

impl Default for Rack {
    fn default() -> Self {
        Rack {
            latest: None,
            rtt: Duration::ZERO,
            reordering_seen: false,
            multiple: 1,
            persist: PERSIST,
            dsack_round: None,
        }
    }
}

/// What [`Rack::detect`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detected {
    /// Bytes that are now known to be lost.
    pub lost: u64,
    /// When the last-sent of them was, of those that had been sent again.
    pub again_at: Option<Instant>,
    /// When more may be lost, if no acknowledgment comes before.
    pub check_again_at: Option<Instant>,
}

impl Rack {
    /// Takes an acknowledgment (§6.2 steps 1 to 3).
    pub fn on_delivered(&mut self, now: Instant, delivered: &Delivered) {
        self.reordering_seen |= delivered.is_reordered();
        if let Some(latest) = delivered.latest
            && self.latest.is_none_or(|known| latest > known)
        {
            self.latest = Some(latest);
            self.rtt = now.saturating_since(latest.0);
        }
        // One that came late shows how long those sent with it may take (`RACK.rtt` is that of each segment in turn, and the
        // acknowledgment number comes last, as on Linux).
        if let Some(at) = delivered.last_at {
            self.rtt = now.saturating_since(at);
        }
    }

    pub fn has_seen_reordering(&self) -> bool {
        self.reordering_seen
    }

    /// The peer reports that something arrived twice: it was not lost, only later than the window (§6.2 step 4).
    pub fn on_duplicate(&mut self, una: u64, nxt: u64) {
        if self.dsack_round.is_some_and(|round| una < round) {
            return;
        }
        self.dsack_round = Some(nxt);
        self.multiple = (self.multiple + 1).min(MULTIPLE_MAX);
        self.persist = PERSIST;
    }

    /// A recovery ended (§6.2 step 4).
    pub fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiple = 1;
        }
    }

    /// How much later than segments sent after it a segment may come (§6.2 step 4, `RACK_update_reo_wnd`).
    fn window(&self, rtt: &Rtt, impatient: bool) -> Duration {
        if !self.reordering_seen && impatient {
            return Duration::ZERO;
        }
        let quarters = self.multiple as u64 * rtt.min_us as u64 / 4;
        Duration::from_micros(quarters.min(rtt.srtt_us as u64))
    }

    /// Marks what is lost (§6.2 step 5). `impatient`: a recovery is under way, or three segments arrived beyond a hole.
    pub fn detect(&self, board: &mut Scoreboard, now: Instant, rtt: &Rtt, impatient: bool) -> Detected {
        let Some(latest) = self.latest else {
            return Detected { lost: 0, again_at: None, check_again_at: None };
        };
        let patience = self.rtt + self.window(rtt, impatient);
        let (mut again_at, mut check_again_at) = (None, None);
        let lost = board.lose(latest, |piece| {
            let due = piece.at + patience;
            if due > now {
                check_again_at = check_again_at.max(Some(due));
            } else if piece.again {
                again_at = again_at.max(Some(piece.at));
            }
            due <= now
        });
        Detected { lost, again_at, check_again_at }
    }

    /// Marks as lost all that should have arrived when the retransmission timer expires (§6.3).
    pub fn detect_all(&self, board: &mut Scoreboard, now: Instant, rtt: &Rtt) {
        let patience = self.rtt + self.window(rtt, true);
        board.lose((now, u64::MAX), |piece| piece.at + patience <= now);
    }
}

#[cfg(test)]
mod tests;
