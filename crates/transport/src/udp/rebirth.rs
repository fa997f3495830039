//! After a crash: derived state is rebuilt from the blocks, and sockets go on when their pages are mapped again.

use super::durable::{Block, bit};
use super::engine::Udp;
use super::live::due;
use eft_arena::docket::Kind;
use eft_component::Context;

impl Udp {
    /// Fills tables from the blocks.
    pub(super) fn rebuild(&mut self) {
        for i in (0..self.blocks.len() as u32).rev() {
            let block = self.blocks[i];
            if block.has(bit::LOST) {
                self.lost.push(i);
                continue;
            }
            let used = block.has(bit::USED);
            if used && self.domains.enter(block.domain).claim(block.slot, i) {
                if block.has(bit::BOUND) {
                    self.ports.entry(block.local_port).or_default().push(i);
                }
                if block.open_request != 0 {
                    self.domains.inherit_opened(block.open_request, i);
                }
            } else {
                if used {
                    self.blocks[i] = Block::free(block.generation.wrapping_add(1));
                    self.memberships.release(i);
                }
                self.free.put(i);
            }
        }
    }

    /// The page of a socket from before a crash is mapped again: repeats all notifications.
    pub(super) fn revive(&mut self, cx: &Context, i: u32) {
        let first = self.live[i as usize].page.is_none();
        if !self.attach_page(i) {
            return self.release(cx, i);
        }
        if !first {
            return;
        }
        if !self.enter_work(cx, Kind::Revive, i) {
            return self.give_up(cx, i);
        }
        let block = &mut self.blocks[i];
        block.released = block.sent;
        if let Some(page) = &self.live[i as usize].page {
            if page.resume(self.config.slots.owner, block.incarnation) {
                page.set_receive_notify(u64::MAX);
            }
            page.set_send_released(block.released);
            page.set_receive_end(block.receive_end);
        }
        self.publish(i);
        if self.blocks[i].has(bit::ORPHAN) {
            self.limit_orphan(cx.now, i);
        }
        self.mark(i, due::READABLE | due::WRITABLE | due::SEND);
    }
}
