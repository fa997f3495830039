//! How fast the network delivers (draft-cheng-iccrg-delivery-rate-estimation-02): what was delivered between the sending of a
//! piece and its acknowledgment, over the longer of the times in which that was sent and acknowledged.
//!
//! Derived state: after a rebirth it begins anew.

use core::time::Duration;
use eft_base::Instant;

/// What is remembered with each piece that is sent (§3.1.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes delivered before it was sent, and when the last of them were (`P.delivered`, `P.delivered_time`).
    delivered: u64,
    delivered_at: Instant,
    /// When the flight began in which it was sent (`P.first_sent_time`).
    first_sent_at: Instant,
    /// The application had nothing more to send (`P.is_app_limited`).
    limited: bool,
    /// Not so of what a predecessor sent.
    is_known: bool,
}

/// A measured rate (§3.1.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Bytes delivered in the interval.
    pub delivered: u64,
    pub interval: Duration,
    /// Bytes delivered before the piece was sent.
    pub prior_delivered: u64,
    /// The application, not the network, may have limited it.
    pub limited: bool,
}

impl Sample {
    /// Bytes per second.
    pub fn bandwidth(&self) -> u64 {
        let ns = self.interval.as_nanos().max(1);
        (self.delivered as u128 * 1_000_000_000 / ns).min(u64::MAX as u128) as u64
    }
}

/// The state of a connection (§3.1.1.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// What is sent counts as limited by the application until more than so many bytes are delivered; 0: it does not.
    limited_until: u64,
    has_begun: bool,
}

impl Rate {
    /// Bytes delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether the application limits what is sent.
    pub fn is_limited(&self) -> bool {
        self.limited_until != 0
    }

    /// A piece is about to be sent (§3.2); `idle`: nothing is in flight. What a predecessor has in flight counts as nothing.
    pub fn on_send(&mut self, now: Instant, idle: bool) -> Stamp {
        if idle || !self.has_begun {
            (self.first_sent_at, self.delivered_at) = (now, now);
            self.has_begun = true;
        }
        Stamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            limited: self.is_limited(),
            is_known: true,
        }
    }

    /// Nothing more is to be sent, although the window has room for it, while so many bytes are in flight (§3.4).
    pub fn on_limited(&mut self, in_flight: u64) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    /// An acknowledgment delivered `bytes`, of which `newest` was sent last: when, and its stamp (§3.3). None if it says
    /// nothing about the rate: intervals shorter than the shortest round trip come from acknowledgments of earlier sendings.
    pub fn on_ack(
        &mut self,
        now: Instant,
        bytes: u64,
        newest: Option<(Instant, Stamp)>,
        min_rtt: Duration,
    ) -> Option<Sample> {
        if bytes == 0 {
            return None;
        }
        self.delivered += bytes;
        self.delivered_at = now;
        if self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let (sent_at, stamp) = newest.filter(|(_, stamp)| stamp.is_known)?;
        self.first_sent_at = sent_at;
        let sending = sent_at.saturating_since(stamp.first_sent_at);
        let acknowledging = now.saturating_since(stamp.delivered_at);
        let interval = sending.max(acknowledging);
        let delivered = self.delivered.saturating_sub(stamp.delivered);
        (interval >= min_rtt && !interval.is_zero()).then_some(Sample {
            delivered,
            interval,
            prior_delivered: stamp.delivered,
            limited: stamp.limited,
        })
    }
}

#[cfg(test)]
mod tests;
