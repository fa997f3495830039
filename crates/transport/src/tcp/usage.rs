//! Whether the congestion window is used (RFC 7661 §4.3 asks for that before it grows): by the fullest moment of a round trip,
//! since at the time of an acknowledgment a part of it has left the network. As Linux does it.

use super::block::Block;

/// How full the window was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// It holds until this is acknowledged.
    end: u64,
    /// Most bytes in flight.
    flight_size: u64,
    /// The window, not the application, limited what was sent.
    is_limited: bool,
    /// Something was sent since the last update.
    pub sent: bool,
}

impl Usage {
    /// What was due is sent; `is_limited`: as far as the window allows.
    pub fn update(&mut self, block: &Block, is_limited: bool) {
        if !core::mem::take(&mut self.sent) && !is_limited {
            return;
        }
        let fuller = !self.is_limited && block.flight_size() > self.flight_size;
        if block.snd_una >= self.end || is_limited || fuller {
            *self = Usage { end: block.snd_nxt, flight_size: block.flight_size(), is_limited, sent: false };
        }
    }

    /// Whether the window may grow: it was full, or slow start has not reached twice what was in flight.
    pub fn may_grow(&self, block: &Block) -> bool {
        let congestion = &block.congestion;
        self.is_limited || (congestion.in_slow_start() && (congestion.cwnd as u64) < 2 * self.flight_size)
    }
}

#[cfg(test)]
mod tests;
