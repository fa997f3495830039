//! Sockets whose blocks were damaged beyond mending, made anew from their pages.
//!
//! A datagram socket has no peer that would learn of its end, and its program would wait for ever. Nearly all of its state stands
//! in its page, too. When all domains are there, a page that says that it is in use and that no block has belongs to a lost
//! block. Which one says the block's image, if the damage has left the socket's name in it. What the page does not say is taken
//! from such an image, as far as the image agrees with the page. Any program of the domain can write the page: it gets by that
//! nothing that it could not ask for, and no more sockets than were lost.

use super::counters::Counter;
use super::durable::{Block, bit};
use super::engine::Udp;
use super::live::due;
use crate::addresses::ANY6;
use crate::requests::{UNPRIVILEGED_FIRST, left_to_receive, left_to_send};
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::SocketId;
use eft_base::errno::EACCES;
use eft_channel::socket::{SocketPage, flag};
use eft_component::Context;

/// What a page does not say.
const UNTOLD: u32 = bit::ANY_PORT
    | bit::ANY_ADDRESS
    | bit::REUSE_ADDRESS
    | bit::REUSE_PORT
    | bit::V6ONLY
    | bit::ANY6
    | bit::ORPHAN;
/// All bits that the image of a socket may have.
const KNOWN: u32 = UNTOLD | bit::BOUND | bit::CONNECTED | bit::DEAD | bit::LOST;

impl Block {
    /// Whether its image names this socket.
    fn names(&self, socket: SocketId, page: &SocketPage) -> bool {
        let same =
            [self.slot == socket.slot, self.domain == socket.domain, self.incarnation == page.incarnation()];
        same.into_iter().filter(|same| *same).count() >= 2
    }

    /// The flags of its image, if they agree with the page.
    fn told_flags(&self, page: &SocketPage) -> Option<u32> {
        let agrees = self.has(bit::BOUND) == (page.local().port != 0)
            && self.has(bit::CONNECTED) == (page.flags() & flag::CONNECTED != 0)
            && self.flags & !KNOWN == 0;
        agrees.then_some(self.flags & UNTOLD)
    }
}

impl Udp {
    /// All domains are there: makes the lost sockets anew that have a page, and gives up the others.
    pub(super) fn remake_lost(&mut self, cx: &mut Context) {
        if self.lost.is_empty() {
            return;
        }
        let mut nameless = Vec::new();
        for (socket, page) in self.domains.unclaimed() {
            match self.lost.iter().position(|i| self.blocks[*i].names(socket, &page)) {
                Some(at) => {
                    let i = self.lost.swap_remove(at);
                    self.remake(cx, i, true, socket, &page);
                }
                None => nameless.push((socket, page)),
            }
        }
        let certain = self.lost.len() == 1 && nameless.len() == 1;
        for (socket, page) in nameless {
            if let Some(i) = self.lost.pop() {
                self.remake(cx, i, certain, socket, &page);
            }
        }
        for i in core::mem::take(&mut self.lost) {
            self.forget_lost(cx, i);
        }
        self.gauge_blocks(cx);
    }

    /// Makes a socket anew in the block of a lost one. `certain`: the block was that socket's.
    fn remake(&mut self, cx: &mut Context, i: u32, certain: bool, socket: SocketId, page: &SocketPage) {
        let image = self.blocks[i];
        let flags = image.told_flags(page).filter(|_| certain);
        if flags.is_some_and(|flags| flags & bit::ORPHAN != 0) {
            // Nobody has a descriptor of it, and nobody would close it.
            page.set_free();
            return self.forget_lost(cx, i);
        }
        if !self.domains.enter(socket.domain).allocate_at(socket.slot, i) {
            return self.forget_lost(cx, i);
        }
        if !certain {
            self.memberships.release(i);
        }
        let (local, remote) = (page.local(), page.remote());
        let is_any6 = local.address == IpAddr::from(ANY6);
        // What ip has not answered is sent once more: a datagram may come twice.
        let sends = left_to_send(page).filter(|(sent, end)| sent.is_multiple_of(8) && end.is_multiple_of(8));
        let received = left_to_receive(page).filter(|(_, end)| sends.is_some() && end.is_multiple_of(8));
        let is_dead = received.is_none() || page.flags() & flag::DEAD != 0;
        let (receive_taken, receive_end) = received.unwrap_or_default();
        let sent = sends.filter(|_| received.is_some()).map_or(0, |(sent, _)| sent);
        let is_bound = local.port != 0;
        self.blocks[i] = Block {
            flags: bit::USED
                | flags.unwrap_or(if is_any6 { bit::ANY6 } else { 0 })
                | if is_dead { bit::DEAD } else { 0 },
            domain: socket.domain,
            slot: socket.slot,
            incarnation: page.incarnation(),
            sent,
            released: sent,
            receive_end,
            receive_taken,
            open_request: if certain && !is_bound { image.open_request } else { 0 },
            ..Block::free(self.memberships.generation(i).unwrap_or(image.generation.wrapping_add(1)))
        };
        let may_have = local.port >= UNPRIVILEGED_FIRST || (certain && image.local_port == local.port);
        let errno = match (is_bound, may_have) {
            (false, _) => 0,
            (true, true) => self.bind_to(cx, i, local.address.into(), local.port),
            (true, false) => EACCES,
        };
        if errno == 0 && is_bound && page.flags() & flag::CONNECTED != 0 {
            let block = &mut self.blocks[i];
            block.flags |= bit::CONNECTED;
            block.remote = remote.address.into();
            block.remote_port = remote.port;
        }
        if self.blocks[i].open_request != 0 {
            self.domains.inherit_opened(self.blocks[i].open_request, i);
        }
        self.revive(cx, i);
        if errno != 0 {
            self.set_error(i, errno);
        }
        if is_dead {
            self.mark(i, due::HANG_UP);
        }
        cx.count(Counter::Remade);
    }

    /// Gives up a lost socket.
    fn forget_lost(&mut self, cx: &Context, i: u32) {
        self.memberships.release(i);
        self.blocks[i] = Block::free(self.blocks[i].generation.wrapping_add(1));
        self.free.put(i);
        cx.count(Counter::Quarantined);
    }
}
