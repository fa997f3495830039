//! Proportional rate reduction (RFC 9937): in a recovery the window shrinks a little with every acknowledgment, so that
//! sending does not pause for half a round trip, and data that left the network are replaced at once.

/// The state of one recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prr {
    /// Bytes in flight when it began (`RecoverFS`).
    flight_size: u64,
    /// Bytes that left the network since.
    delivered: u64,
    /// Bytes sent since.
    sent: u64,
}

/// The content of an acknowledgment in a recovery.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    pub delivered: u64,
    /// Bytes in the network after it.
    pub pipe: u64,
    /// It acknowledges more and shows no further loss (`SafeACK`).
    pub is_good: bool,
}

impl Prr {
    /// `flight_size`: bytes that had not left the network when the loss was found.
    pub fn new(flight_size: u64) -> Prr {
        Prr { flight_size: flight_size.max(1), delivered: 0, sent: 0 }
    }

    pub fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// The window after an acknowledgment. The first one lets a segment go in any case: the fast retransmission.
    pub fn window(&mut self, evidence: Evidence, ssthresh: u64, mss: u64) -> u64 {
        self.delivered += evidence.delivered;
        let may_send = if evidence.pipe > ssthresh {
            let due = (self.delivered as u128 * ssthresh as u128).div_ceil(self.flight_size as u128) as u64;
            due.saturating_sub(self.sent)
        } else {
            // What left the network (PRR-CRB), and slow start to the threshold while nothing more is lost (PRR-SSRB).
            let left = self.delivered.saturating_sub(self.sent).max(evidence.delivered);
            let limit = if evidence.is_good { left + mss } else { left };
            limit.min(ssthresh - evidence.pipe)
        };
        let least = if self.sent == 0 { mss } else { 0 };
        evidence.pipe + may_send.max(least)
    }
}

#[cfg(test)]
mod tests;
