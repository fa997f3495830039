//! The end of the stack. Nobody will answer its peers any more, and one that only waits for bytes would wait for ever: so each
//! connection is reset, as on a machine whose programs are ended before it is switched off. It ends here, too: what was sent after
//! the reset would make the peer ignore that, and what the peer answers, if it lacks something, is answered with the reset that
//! it believes.

use super::engine::Tcp;
use super::state::State;
use crate::turns::PER_TURN;
use eft_base::errno::ECONNRESET;
use eft_component::Context;

impl Tcp {
    /// From now on the peers of all connections are told, some in each turn.
    pub(super) fn begin_farewell(&mut self) {
        self.farewell = Some(0);
    }

    /// Resets the next connections, as many as there is room for.
    pub(super) fn say_farewell(&mut self, cx: &Context) {
        let Some(first) = self.farewell else { return };
        let count = self.blocks.len() as u32;
        let mut room = self.room_for_resets().min(PER_TURN);
        let mut next = first;
        while next < count && room > 0 {
            if self.says_farewell_to_peer_of(cx, next) {
                room -= 1;
            }
            next += 1;
        }
        self.docket.clear();
        self.farewell = (next < count).then_some(next);
        self.turns.hurry(cx.now);
    }

    /// Resets a connection of which its peer knows. False: it is none.
    fn says_farewell_to_peer_of(&mut self, cx: &Context, i: u32) -> bool {
        let is_known = |state: State| state.has_connection() && state != State::SynSent;
        if self.free.contains(i) || !is_known(self.view(i).block.state()) || !self.revive_if_due(cx, i) {
            return false;
        }
        self.reset(cx, i, ECONNRESET);
        true
    }
}
