//! Inputs that have killed two lives: each input is recorded in the [docket](eft_arena::docket) before it runs, and a condemned one
//! is refused. A condemned segment is dropped; any other condemned input resets its connection.

use super::counters::Counter;
use super::engine::Tcp;
use eft_arena::docket::{Kind, Note};
use eft_base::errno::ECONNABORTED;
use eft_component::Context;

impl Tcp {
    /// Records that an input of a connection runs from now on. False: it has killed two predecessors, and must not run.
    /// A connection from before the crash is revived before.
    pub(super) fn enter(&mut self, cx: &Context, kind: Kind, i: u32, content: &[u64]) -> bool {
        if kind != Kind::Revive && !self.revive_if_due(cx, i) {
            return false;
        }
        let runs = self.docket.enter(Note::of(kind, i, self.block(i).generation, content));
        cx.add(Counter::DropFatal, !runs as u64);
        runs
    }

    /// The same for work that depends on the connection's state and not on an input's content.
    pub(super) fn enter_state(&mut self, cx: &Context, kind: Kind, i: u32) -> bool {
        let b = self.block(i);
        let content = [b.snd_una, b.snd_nxt, b.rcv_nxt, b.state as u64];
        self.enter(cx, kind, i, &content)
    }

    /// Resets a connection of which an input has killed two predecessors.
    pub(super) fn give_up(&mut self, cx: &Context, i: u32) {
        if self.free.contains(i) {
            return;
        }
        let before = self.view(i).block.state;
        self.abort_later(cx, i, ECONNABORTED);
        if self.view(i).block.state == before {
            // It was over, and had something left to send.
            self.connection(i).live.due = 0;
        }
    }
}
