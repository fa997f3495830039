//! Inputs that have killed two lives: each input is recorded in the [docket](eft_arena::docket) before it runs, and a condemned one
//! is refused. A datagram is dropped, on either way; any other condemned input ends its socket.

use super::counters::Counter;
use super::durable::bit;
use super::engine::Udp;
use super::live::due;
use eft_arena::docket::{Kind, Note};
use eft_base::errno::ECONNABORTED;
use eft_component::Context;

impl Udp {
    fn enter(&self, cx: &Context, note: Note) -> bool {
        let runs = self.docket.enter(note);
        cx.add(Counter::DropFatal, !runs as u64);
        runs
    }

    /// Records that work of a socket runs from now on. False: it has killed two predecessors, and must not run.
    pub(super) fn enter_work(&self, cx: &Context, kind: Kind, i: u32) -> bool {
        let b = &self.blocks[i];
        self.enter(cx, Note::of(kind, i, b.generation, &[b.sent, b.receive_end, b.flags.into()]))
    }

    /// The same for the datagram with which a socket's send ring goes on.
    pub(super) fn enter_datagram(&self, cx: &Context, i: u32, len: u32) -> bool {
        let b = &self.blocks[i];
        self.enter(cx, Note::of(Kind::Send, i, b.generation, &[b.sent, len.into()]))
    }

    /// The same for a packet of ip that begins with `head`.
    pub(super) fn enter_packet(&self, head: &[u8]) -> bool {
        self.docket.enter(Note::packet(head))
    }

    /// Ends a socket of which an input has killed two predecessors.
    pub(super) fn give_up(&mut self, cx: &Context, i: u32) {
        if self.free.contains(i) {
            return;
        }
        if self.blocks[i].has(bit::DEAD) {
            // It was over, and had something left to tell.
            self.live[i as usize].due = 0;
            return self.finish_orphan(cx, i);
        }
        self.blocks[i].flags |= bit::DEAD;
        self.publish(i);
        self.set_error(i, ECONNABORTED);
        self.live[i as usize].due &= !due::SEND;
        self.mark(i, due::HANG_UP);
        self.finish_orphan(cx, i);
    }
}
