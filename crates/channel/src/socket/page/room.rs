//! How much a writer may put into the send ring, and when a waiting writer should continue.
//!
//! A stream's ring grows from [`first_send_len`] on, so that memory is used by those streams alone whose path holds much. The transport
//! says how much room the stream should have; its writer doubles the ring before it goes on from where it has filled the ring an odd
//! number of times, counted from the beginning of the stream. All that may still be sent again lies in the ring's last filling then,
//! and each byte of it is at the same place modulo the length before as modulo twice that length: nothing moves, and a reader that
//! does not know yet reads the same.

use super::{Opt, SEND_END, SEND_RING, SEND_ROOM, SocketPage};

/// The least first ring, if there is so much memory: the largest datagram and some more.
const FIRST_MIN: usize = 1 << 18;

/// See [`super::Geometry::first_send_len`].
pub(in crate::socket) fn first_send_len(memory: usize) -> usize {
    (memory / 4).max(memory.min(FIRST_MIN))
}

/// A writer may exceed TCP_NOTSENT_LOWAT by this, so that a small limit does not cut every write into tiny
/// pieces.
const NOT_SENT_STEP: u64 = 16384;

/// What decides whether a writer may continue.
#[derive(Clone, Copy, Debug)]
pub struct SendRoom {
    /// Bytes that may lie in the send ring: its length, or less if the application or the transport says so.
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

    /// Application: bytes put into the send ring.
    pub fn send_end(&self) -> u64 {
        self.load_u64(SEND_END)
    }

    /// Application, under the send lock: bytes are put in up to here.
    pub fn set_send_end(&self, end: u64) {
        self.store_u64(SEND_END, end)
    }

    /// Application, under the send lock: bytes that may be put into the send ring now. If the ring should grow, it does so here, or
    /// these bytes lead no further than to where it can.
    pub fn sendable(&self) -> usize {
        let (mut ring, wanted) = (self.send_len() as u64, self.wanted_send_len() as u64);
        if wanted <= ring || !self.is_stream() {
            return self.send_free();
        }
        let end = self.send_end();
        if end % (2 * ring) == ring {
            ring *= 2;
            self.store_u32(SEND_RING, ring as u32);
        }
        let next = 2 * ring - end.wrapping_add(ring) % (2 * ring);
        self.send_free().min(next as usize)
    }

    /// The same, wherever the ring can grow.
    pub fn send_free(&self) -> usize {
        self.send_room().sendable()
    }

    /// See [`SendRoom::is_worth_writing`].
    pub fn is_worth_writing(&self) -> bool {
        self.send_room().is_worth_writing()
    }

    /// The send ring's length at present.
    pub fn send_len(&self) -> usize {
        let (len, first) = (self.load_u32(SEND_RING) as usize, first_send_len(self.send_len));
        if len.is_power_of_two() && (first..=self.send_len).contains(&len) { len } else { first }
    }

    /// Bytes that may lie in the send ring.
    pub fn send_limit(&self) -> usize {
        self.wanted_send_len().min(self.send_len())
    }

    /// Transport: bytes that the stream should have room for; 0: those of the first ring.
    pub fn set_send_room(&self, bytes: u32) {
        self.store_u32(SEND_ROOM, bytes)
    }

    /// See [`SocketPage::set_send_room`].
    pub fn send_room_set(&self) -> u32 {
        self.load_u32(SEND_ROOM)
    }

    /// Bytes that the socket should have room for: `SO_SNDBUF` if the application set it, else what the transport says.
    pub fn wanted_room(&self, send_buffer: u32, send_room: u32) -> usize {
        match (send_buffer as usize, send_room as usize) {
            (0, room) => room.clamp(first_send_len(self.send_len), self.send_len),
            (set, _) => set.clamp(4096, self.send_len),
        }
    }

    fn wanted_send_len(&self) -> usize {
        self.wanted_room(self.option(Opt::SendBuffer), self.send_room_set())
    }

    /// A datagram socket's ring does not grow: its records are not cut where it could.
    fn is_stream(&self) -> bool {
        self.kind() == 1
    }
}

#[cfg(test)]
mod tests;
