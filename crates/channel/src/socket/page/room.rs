//! How much a writer may put into the send ring, and when a waiting writer should continue.

use super::{Opt, SocketPage};

/// A writer may exceed TCP_NOTSENT_LOWAT by this, so that a small limit does not cut every write into tiny
/// pieces.
const NOT_SENT_STEP: u64 = 16384;

/// What decides whether a writer may continue.
#[derive(Clone, Copy, Debug)]
pub struct SendRoom {
    /// Bytes that may lie in the send ring: its length, or less if `SO_SNDBUF` says so.
    pub limit: usize,
    /// Stream positions: up to where bytes were put in, and were released.
    pub end: u64,
    pub released: u64,
    /// Bytes that may wait to be sent for the first time (TCP_NOTSENT_LOWAT); 0: any number.
    pub low_water: u32,
    /// Sent at least once.
    pub sent: u64,
}

impl SendRoom {
    fn free(&self) -> usize {
        self.limit.saturating_sub(self.end.saturating_sub(self.released) as usize)
    }

    /// How many bytes TCP_NOTSENT_LOWAT allows to wait, and how many do; `None` without the option.
    fn not_sent(&self) -> Option<(u64, u64)> {
        (self.low_water != 0).then(|| (self.low_water as u64, self.end.saturating_sub(self.sent)))
    }

    /// Bytes that may be put in now.
    pub fn sendable(&self) -> usize {
        match self.not_sent() {
            Some((low, waiting)) if waiting >= low => 0,
            Some((low, waiting)) => self.free().min((low - waiting).max(NOT_SENT_STEP) as usize),
            None => self.free(),
        }
    }

    /// Whether a waiting writer should continue: a third of the ring is free, and less than half of what
    /// TCP_NOTSENT_LOWAT allows waits to be sent, as on Linux.
    pub fn is_worth_writing(&self) -> bool {
        self.free() * 3 >= self.limit && self.not_sent().is_none_or(|(low, waiting)| waiting * 2 < low)
    }
}

impl SocketPage {
    fn send_room(&self) -> SendRoom {
        SendRoom {
            limit: self.send_limit(),
            end: self.send_end(),
            released: self.send_released(),
            low_water: self.option(Opt::NotSentLowWater),
            sent: self.send_sent(),
        }
    }

    /// Application: bytes that may be put into the send ring now.
    pub fn sendable(&self) -> usize {
        self.send_room().sendable()
    }

    /// See [`SendRoom::is_worth_writing`].
    pub fn is_worth_writing(&self) -> bool {
        self.send_room().is_worth_writing()
    }

    /// The send ring's length, or less if the application set `SO_SNDBUF` smaller.
    pub fn send_limit(&self) -> usize {
        match self.option(Opt::SendBuffer) as usize {
            0 => self.send_len,
            n => n.clamp(4096, self.send_len),
        }
    }
}
