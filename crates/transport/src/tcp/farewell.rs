//! The end of the stack. Nobody will answer its peers any more, and one that only waits for bytes would wait for ever: so each
//! connection is reset, as on a machine whose programs are ended before it is switched off.

use super::engine::Tcp;
use crate::turns::PER_TURN;
use eft_component::Context;

impl Tcp {
    /// From now on the peers of all connections are told, some in each turn.
    pub(super) fn begin_farewell(&mut self) {
        self.farewell = Some(0);
    }

    /// Queues the resets of the next connections, as many as there is room for.
    pub(super) fn say_farewell(&mut self, cx: &Context) {
        let Some(first) = self.farewell else { return };
        let count = self.blocks.len() as u32;
        let mut room = self.room_for_resets().min(PER_TURN);
        let mut next = first;
        while next < count && room > 0 {
            if !self.free.contains(next) {
                self.say_reset(next);
                room -= 1;
            }
            next += 1;
        }
        self.farewell = (next < count).then_some(next);
        self.turns.hurry(cx.now);
    }
}
