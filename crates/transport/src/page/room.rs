//! The room of the send ring, by the words that are staged.

use super::Page;
use super::words::word;
use eft_channel::socket::{Opt, SendRoom};

impl Page {
    /// The send ring's length at present.
    pub fn send_len(&self) -> usize {
        if self.is_fresh() { self.0.page.wanted_room(0, 0) } else { self.0.page.send_len() }
    }

    /// Whether a waiting writer should continue, by the present positions.
    pub fn is_worth_writing(&self) -> bool {
        let room = SendRoom {
            limit: self.send_limit(),
            end: self.send_end(),
            released: self.0.send_released.get(),
            low_water: self.option(Opt::NotSentLowWater),
            sent: self.0.send_sent.get(),
        };
        room.is_worth_writing()
    }

    /// Bytes that may lie in the send ring.
    pub fn send_limit(&self) -> usize {
        let wanted = self.0.page.wanted_room(self.option(Opt::SendBuffer), self.0.send_room.get());
        wanted.min(self.send_len())
    }

    /// The stream should have room for so many bytes, if there is memory for them and the application has not chosen: its ring grows
    /// when the application has filled it ([`eft_channel::socket::SocketPage::sendable`]). True if that changes anything.
    pub fn widen(&self, bytes: u64) -> bool {
        let page = &self.0.page;
        let room = page.wanted_room(0, bytes.min(u32::MAX as u64) as u32);
        let widens = self.option(Opt::SendBuffer) == 0 && room > page.wanted_room(0, self.0.send_room.get());
        if widens {
            self.0.send_room.set(room as u32);
            self.mark(word::SEND_ROOM);
        }
        widens
    }
}
