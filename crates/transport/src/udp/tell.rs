//! A socket's turn, and what a descriptor shows: readiness and ends.

use super::durable::bit;
use super::engine::Udp;
use super::live::due;
use crate::domains::NONE;
use crate::edge::Out;
use eft_channel::socket::wish;
use eft_component::transport::Effect;
use eft_component::{Context, Outbox};

impl Udp {
    /// Sends what is due, and notifies the application.
    pub(super) fn serve(&mut self, cx: &mut Context, i: u32, out: &mut Outbox<Out>) {
        if self.live[i as usize].due & due::SEND != 0 {
            let running = self.docket.running();
            self.send_datagrams(cx, i, out);
            self.docket.resume(running);
        }
        self.tell_stamps(i);
        self.tell(i, out);
    }

    pub(super) fn tell(&mut self, i: u32, out: &mut Outbox<Out>) {
        let live = &mut self.live[i as usize];
        let what = live.due & (due::READABLE | due::WRITABLE | due::END_OF_STREAM | due::HANG_UP);
        live.due &= !what;
        let block = &self.blocks[i];
        if !block.has(bit::USED) || block.has(bit::ORPHAN) || block.slot == NONE {
            return;
        }
        let socket = self.socket(i);
        if what & due::READABLE != 0 {
            out.push(Out::Effect(Effect::Readable(socket)));
        }
        if what & due::WRITABLE != 0 && self.has_room_for_writer(i) {
            out.push(Out::Effect(Effect::Writable(socket)));
        }
        if what & due::HANG_UP != 0 {
            out.push(Out::Effect(Effect::HangUp(socket)));
        }
        if what & due::END_OF_STREAM != 0 {
            out.push(Out::Effect(Effect::EndOfStream(socket)));
        }
    }

    /// What the application's `shutdown` makes the descriptor show.
    pub(super) fn wished_end(&self, i: u32) -> u32 {
        let wishes = self.live[i as usize].page.as_ref().map_or(0, |page| page.wishes());
        match (wishes & wish::SHUT_READ != 0, wishes & wish::SHUT_WRITE != 0) {
            (true, true) => due::HANG_UP,
            (true, false) => due::END_OF_STREAM,
            (false, _) => 0,
        }
    }

    pub(super) fn has_room_for_writer(&self, i: u32) -> bool {
        self.live[i as usize].page.as_ref().is_some_and(|page| {
            let room = page.is_worth_writing();
            (room || self.blocks[i].has(bit::DEAD)) && page.is_plugged()
        })
    }
}
