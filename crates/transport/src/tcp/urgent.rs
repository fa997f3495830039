//! Urgent data (RFC 9293 §3.8.5, RFC 6093): one byte at a time, as programs expect it.
//!
//! The urgent pointer is taken, as everybody does and RFC 6093 §4 says, to point behind the urgent byte. The bytes go through
//! the rings like all others; only where the last urgent one lies is told: by the application in its page, to the peer in the
//! header, to the application in its page.
//!
//! The announcement of a peer is durable ([`Cold::urgent`]), since the peer does not repeat it after its byte is acknowledged.
//! That of the application lies in the page, which outlives us.

use super::block::{Block, Cold};
use super::connection::{Connection, View};
use super::live::due;
use super::segment::Segment;
use eft_base::wire::TCP_URG;
use eft_channel::socket::{Urgent, wish};

/// The urgent pointer reaches no further.
const POINTER_MAX: u64 = 0xffff;
/// Bits of an offset in [`Cold::urgent`].
const OFFSET_BITS: u32 = 31;

/// As [`Cold::urgent`] holds the end of an urgent byte: never 0, which means none.
fn kept(end: u64) -> u32 {
    (end as u32) << 1 | 1
}

/// The end of the peer's urgent byte. It lies in the ring or not far behind it, so the low bits say all.
fn end_of(cold: &Cold, block: &Block) -> Option<u64> {
    let unused = 32 - OFFSET_BITS;
    let distance = (cold.urgent >> 1).wrapping_sub(block.rcv_nxt as u32) << unused;
    (cold.urgent != 0).then(|| block.rcv_nxt.wrapping_add_signed((distance as i32 >> unused) as i64))
}

impl View<'_> {
    /// Whether nothing but an urgent byte is there to be read, and the application waits for none, nor wants it in line. Its
    /// descriptor then is not readable.
    pub(super) fn has_only_urgent(&self) -> bool {
        let Some(page) = self.live.page.as_ref().filter(|_| self.cold.urgent != 0) else {
            return false;
        };
        // The application may have written anything there.
        let next = page.receive_taken().checked_add(1);
        let alone =
            next.is_some() && end_of(self.cold, self.block) == next && Some(self.block.rcv_nxt) == next;
        alone && !self.block.has(super::block::bit::RECEIVED_FIN) && page.wishes() & wish::WANTS_URGENT == 0
    }

    /// Whether the application's urgent byte is not acknowledged yet.
    pub(super) fn is_urgent(&self) -> bool {
        self.live.urgent_end > self.block.snd_una
    }

    /// The urgent pointer of a segment that begins at `start`; 0: it has none.
    pub(super) fn urgent_pointer(&self, start: u64) -> u16 {
        let ahead = self.live.urgent_end.saturating_sub(start);
        let told = ahead <= POINTER_MAX || start + POINTER_MAX > self.block.snd_nxt;
        if self.is_urgent() && told { ahead.min(POINTER_MAX) as u16 } else { 0 }
    }
}

impl Connection<'_> {
    /// Takes the mark of the application's last urgent byte. One that lies elsewhere than among its unacknowledged bytes has no
    /// effect.
    pub(super) fn read_urgent(&mut self, wishes: u32) {
        let Some(page) = self.live.page.as_ref().filter(|_| wishes & wish::SENDS_URGENT != 0) else {
            return;
        };
        let end = page.send_urgent();
        if end > self.block.snd_una && end <= self.block.snd_end {
            self.live.urgent_end = end;
        }
    }

    /// Step 6 of RFC 9293 §3.10.7.4: notes where the peer's urgent byte lies, unless it is older than one that is known, or
    /// has come before.
    pub(super) fn note_urgent(&mut self, segment: &Segment) {
        if !segment.has(TCP_URG) || !self.block.state().may_receive() {
            return;
        }
        let block = &*self.block;
        let at = block.received_offset(segment.seq) + segment.urgent.saturating_sub(1) as i64;
        let expected = at >= block.rcv_nxt as i64 && (at as u64) < block.rcv_fin_at;
        // Nothing that is acceptable begins behind the window.
        let near = at as u64 <= block.rcv_adv.max(block.rcv_nxt) + POINTER_MAX;
        if expected && near && end_of(&self.cold, block).is_none_or(|end| at as u64 >= end) {
            self.cold.urgent = kept(at as u64 + 1);
            self.tell_urgent();
            self.mark(due::READABLE | due::TELL | due::URGENT);
        }
    }

    /// After text has come: tells the application whether the urgent byte has.
    pub(super) fn tell_urgent(&mut self) {
        let Some(end) = end_of(&self.cold, &self.block) else {
            return;
        };
        let arrived = self.block.rcv_nxt >= end || self.live.out_of_order.holds(end - 1, end);
        let word = Urgent::word(Some(Urgent { at: end - 1, arrived }));
        if let Some(page) = &self.live.page
            && page.set_urgent(word)
            && arrived
        {
            self.mark(due::READABLE | due::TELL);
        }
    }

    /// Forgets an urgent byte that the application has passed.
    pub(super) fn forget_urgent(&mut self) {
        if end_of(&self.cold, &self.block).is_some_and(|end| end <= self.block.rcv_taken) {
            self.cold.urgent = 0;
        }
    }
}

#[cfg(test)]
mod tests;
