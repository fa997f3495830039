//! Sockets whose blocks were damaged beyond mending: their programs are told.
//!
//! What a connection's block said cannot be found again, so the connection is over; its peer learns that by the reset that answers
//! its next segment, and its program as if that reset had come from the peer: it reads what is in its ring, and then the error. A
//! listener listens again, and a socket that was not connected yet goes on: its page says nearly all of it. A page that says that it is in use,
//! and that no block has, belongs to a lost block. Any program of the domain can write the page: it gets by that nothing that it
//! could not ask for, and no more sockets than were lost.

use super::block::bit;
use super::counters::Counter;
use super::engine::Tcp;
use super::remains::Remains;
use crate::requests::{UNPRIVILEGED_FIRST, left_to_receive, left_to_send};
use eft_base::errno::{EACCES, ECONNRESET};
use eft_base::{DomainId, SocketId};
use eft_channel::socket::{SocketPage, flag, wish};
use eft_component::Context;
use eft_messages::sockets::BESIDE;

/// How a socket is bound, of which its page says nothing.
const BINDINGS: u32 = bit::REUSE_ADDRESS | bit::REUSE_PORT | bit::V6ONLY | bit::ANY_PORT;

/// Whether a program has it, and does not only find it in an accept queue.
fn is_held(page: &SocketPage) -> bool {
    page.inode() != 0 || page.wishes() & wish::HELD != 0
}

impl Tcp {
    /// A domain's arena is mapped: takes up the lost sockets of which it has pages.
    pub(super) fn take_up_lost(&mut self, cx: &mut Context, domain: DomainId) {
        if self.lost.is_empty() {
            return;
        }
        let mut pages = self.domains.unclaimed();
        pages.retain(|(socket, page)| socket.domain == domain && is_held(page));
        // Those whose remains still name them come first.
        pages.sort_by_key(|(socket, _)| self.lost.iter().all(|lost| lost.socket != *socket));
        for (socket, page) in pages {
            let named = self.lost.iter().position(|lost| lost.socket == socket);
            let remains = match named {
                Some(at) => Some(self.lost.swap_remove(at)),
                None if self.lost.pop().is_some() => None,
                None => return,
            };
            self.take_up(cx, socket, &page, remains);
        }
    }

    fn take_up(&mut self, cx: &mut Context, socket: SocketId, page: &SocketPage, remains: Option<Remains>) {
        if remains.is_some_and(|remains| remains.flags & bit::ORPHAN != 0) {
            // Nobody has a descriptor of it, and nobody would close it.
            return page.set_free();
        }
        let Some(i) = self.allocate(cx) else { return };
        let begun = flag::CONNECTED | flag::CONNECTING | flag::DEAD;
        let was_connected = page.flags() & begun != 0 || page.remote().port != 0;
        if was_connected || !self.give_slot_again(i, socket, page.incarnation()) {
            return self.take_up_dead(cx, i, socket, page);
        }
        self.connection(i).block.set(bit::ATTACHED);
        let errno = self.bind_again(cx, i, page, remains);
        if errno != 0 {
            self.end(cx, i, errno);
        }
        cx.count(Counter::TakenUp);
    }

    /// Binds an unconnected socket as its page says, and lets it listen. Returns 0 or an errno.
    fn bind_again(&mut self, cx: &mut Context, i: u32, page: &SocketPage, remains: Option<Remains>) -> i32 {
        let local = page.local();
        if local.port == 0 {
            return 0;
        }
        let agrees = remains.filter(|remains| remains.local_port == local.port);
        if agrees.is_none() && local.port < UNPRIVILEGED_FIRST {
            return EACCES;
        }
        // With connections on its port a listener binds only as one that may share it with them.
        let flags = agrees.map_or(bit::REUSE_ADDRESS, |remains| remains.flags & BINDINGS);
        // Only its predecessor knows that the port's owner had agreed.
        let is_elsewhere = agrees.is_some() && !self.ports.share.has(local.port);
        let flags = bit::BOUND | flags;
        let errno = self.bind_to(cx, i, local.address.into(), local.port, flags, is_elsewhere);
        if errno != 0 || page.flags() & flag::LISTENING == 0 {
            return errno;
        }
        let backlog = remains.map_or(u32::MAX, |remains| remains.backlog) & !BESIDE;
        self.request_listen(cx, i, backlog | if is_elsewhere { BESIDE } else { 0 })
    }

    /// A connection that is over, as after a reset.
    fn take_up_dead(&mut self, cx: &Context, i: u32, socket: SocketId, page: &SocketPage) {
        let has_slot = self.domains.get_mut(socket.domain).is_some_and(|d| d.allocate_at(socket.slot, i));
        if !has_slot {
            return self.free_block(cx, i);
        }
        let mut c = self.connection(i);
        (c.block.domain, c.block.slot) = (socket.domain, socket.slot);
        // A program may have written any number into its page; then nothing of its rings is left.
        let ((taken, received), (released, sent)) =
            left_to_receive(page).zip(left_to_send(page)).unwrap_or_default();
        (c.block.rcv_taken, c.block.rcv_nxt, c.block.rcv_acked) = (taken, received, received);
        (c.block.snd_released, c.block.snd_una) = (released, sent);
        (c.block.snd_nxt, c.block.snd_end) = (sent, sent);
        c.cold.incarnation = page.incarnation();
        self.attach_page(i);
        let mut c = self.connection(i);
        c.block.set(bit::ATTACHED | if page.flags() & flag::CONNECTED != 0 { bit::CONNECTED } else { 0 });
        self.end(cx, i, ECONNRESET);
        cx.count(Counter::TakenUp);
    }
}
