//! The application's page. Its words are read once, checked, and only then used: a page with invalid
//! words costs its own connection and no other.

use super::block::{NOWHERE, State, bit};
use super::connection::Connection;
use super::counters::Counter;
use super::engine::Tcp;
use super::listen::RECORD_LEN;
use super::live::due;
use crate::page::Page;
use crate::requests::left_to_receive;
use crate::timers::NEVER;
use alloc::vec::Vec;
use eft_base::errno::ECONNABORTED;
use eft_base::{DomainId, Instant, PoolId, SocketId};
use eft_channel::socket::{Arena, Opt, flag, wish};
use eft_component::Context;

impl Connection<'_> {
    /// Publishes how much was sent: a writer may wait for that.
    pub(super) fn tell_sent(&mut self) {
        if let Some(page) = &self.live.page
            && publish_sent(page, self.block.snd_nxt)
        {
            self.mark(due::WRITABLE);
        }
    }

    /// Whether a writer waiting for room should be woken.
    pub(super) fn has_room_for_writer(&self) -> bool {
        let Some(page) = &self.live.page else {
            return false;
        };
        let block = &*self.block;
        let ended = block.has(bit::DEAD) || block.fin_at != NOWHERE;
        // While unconnected, a plug means that a connect is requested or under way. A listener keeps its plug.
        let unconnected = matches!(block.state(), State::Closed | State::SynSent | State::Listen);
        page.is_plugged() && (ended || !unconnected && page.is_worth_writing())
    }

    /// Releases ring space that the peer acknowledged and to which no unanswered `Send` refers.
    pub(super) fn release_ring(&mut self) {
        let live = &*self.live;
        let block = &mut self.block;
        let released = block.bytes_acknowledged().min(live.in_flight.lowest());
        if released <= block.snd_released {
            return;
        }
        block.snd_released = released;
        if let Some(page) = &live.page {
            page.set_send_released(released);
            self.mark(due::WRITABLE);
        }
    }

    /// Gives a writer that fills its ring room for twice the congestion window, as Linux does (`tcp_sndbuf_expand`): so there are new
    /// data to send while a hole keeps what was sent in the ring for another round trip. In slow start for twice as much, since the
    /// window doubles before the ring can. A program that set SO_SNDBUF chose its room.
    pub(super) fn widen_ring(&mut self) {
        let block = &*self.block;
        // Most often nothing lies in the ring.
        let held = block.snd_end - block.snd_released;
        let Some(page) = self.live.page.as_ref().filter(|_| held > 0) else {
            return;
        };
        let windows = if block.congestion.in_slow_start() { 4 } else { 2 };
        let (wanted, room) = (windows * block.congestion.cwnd as u64, page.send_limit() as u64);
        let is_full = held * 3 > room * 2;
        if is_full && wanted > room && page.widen(wanted) {
            self.mark(due::WRITABLE);
        }
    }

    /// Publishes the socket's flags.
    pub(super) fn refresh_flags(&mut self) {
        let Some(page) = &self.live.page else {
            return;
        };
        let block = &*self.block;
        let mut flags = 0;
        match block.state() {
            State::Listen => flags |= flag::LISTENING,
            State::SynSent => flags |= flag::CONNECTING,
            _ => {}
        }
        if block.has(bit::CONNECTED) {
            flags |= flag::CONNECTED;
        }
        if block.has(bit::RECEIVED_FIN) {
            flags |= flag::FINISHED;
        }
        if block.has(bit::RECEIVED_FIN) || block.has(bit::DEAD) {
            flags |= flag::RECEIVE_END;
        }
        if block.has(bit::DEAD) || block.fin_at != NOWHERE {
            flags |= flag::SEND_CLOSED;
        }
        if block.has(bit::FAILED) {
            flags |= flag::DEAD;
        }
        page.set_flags(flags);
        self.tell_numbers();
    }

    /// What the application waits for besides bytes: numbers, and to be woken for a completion (MSG_ZEROCOPY), which the
    /// shim makes itself.
    fn asks_of_page(&mut self) -> u32 {
        let live = &mut *self.live;
        let Some(page) = &live.page else {
            return 0;
        };
        let completions = page.option(Opt::ZeroCopySends);
        let woken = core::mem::replace(&mut live.completions, completions) == completions;
        let told = if woken { 0 } else { due::READABLE | due::TELL };
        told | if page.is_info_asked() { due::ASKED } else { 0 }
    }

    /// Takes cursors, wishes and options from the page. False if they are impossible.
    fn read_page(&mut self, now: Instant) -> bool {
        let Some(page) = &self.live.page else {
            return true;
        };
        // The application sets a wish after it has published its last byte; so the wish is read first.
        let wishes = page.wishes();
        let (end, taken) = (page.send_end(), page.receive_taken());
        let ring = page.send_len() as u64;
        let keepalive = page.option(Opt::KeepAlive) != 0;
        let withheld = self.withholds();
        let block = &mut self.block;
        let connected = block.state().is_synchronized() && !block.has(bit::DEAD);
        let writes = connected && block.fin_at == NOWHERE && !withheld;
        let end_ok = !writes || (end >= block.snd_end && end - block.snd_released <= ring);
        if !end_ok || taken < block.rcv_taken || taken > block.rcv_nxt {
            return false;
        }
        block.rcv_taken = taken;
        if writes {
            block.snd_end = end;
            publish_sent(page, block.snd_nxt);
            self.live.records.read(page, block.snd_una);
            self.read_stamp_requests();
        }
        if !connected {
            return true;
        }
        if writes && wishes & wish::SHUT_WRITE != 0 {
            self.finish_sending();
        }
        if writes {
            self.read_urgent(wishes);
        }
        if wishes & wish::SHUT_READ != 0 {
            self.finish_receiving();
        }
        self.take_options();
        self.update_window();
        match (keepalive, self.live.keepalive_at == NEVER) {
            (true, true) => self.start_keepalive(now),
            (false, false) => self.live.keepalive_at = NEVER,
            _ => {}
        }
        true
    }
}

impl Tcp {
    /// A domain's arena is mapped, for the first time or again after our rebirth.
    pub(super) fn open_domain(&mut self, cx: &mut Context, id: DomainId, pool: PoolId, arena: Arena) {
        let members = self.domains.open(id, arena, pool);
        // A connection may have to inherit from its listener's page again.
        let is_listener = |i: &u32| {
            let view = self.view(*i);
            view.block.state() == State::Listen || view.is_parting()
        };
        let (listeners, others): (Vec<u32>, Vec<u32>) = members.into_iter().partition(is_listener);
        for i in listeners {
            self.revive(cx, i);
            cx.advance();
        }
        for i in others {
            self.live.set_revive(i);
            self.unrevived.push_back(i);
        }
        self.take_up_lost(cx, id);
    }

    /// Gives a block a slot of its domain. False if none is free.
    pub(super) fn give_slot(&mut self, i: u32, id: DomainId) -> bool {
        let Some(domain) = self.domains.get_mut(id) else {
            return false;
        };
        let Some(slot) = domain.allocate(i) else {
            return false;
        };
        let mut c = self.connection(i);
        c.block.domain = id;
        c.block.slot = slot;
        if !self.attach_page(i) {
            self.take_slot(i);
            return false;
        }
        let owner = self.config.slots.owner;
        let mut c = self.connection(i);
        if let Some(page) = &c.live.page {
            c.cold.incarnation = page.reset(owner);
            page.set_receive_notify(NOWHERE);
        }
        true
    }

    /// Gives a block the slot of a socket of an earlier stack. Records that still wait in its ring are of
    /// connections that are gone: an accept that takes one finds no connection.
    pub(super) fn give_slot_again(&mut self, i: u32, socket: SocketId, incarnation: u32) -> bool {
        let left = self.domains.page(socket).filter(|(page, _)| page.incarnation() == incarnation);
        let positions = left.and_then(|(page, _)| left_to_receive(&page));
        let (Some((taken, end)), Some(domain)) = (positions, self.domains.get_mut(socket.domain)) else {
            return false;
        };
        if !end.is_multiple_of(RECORD_LEN) || !domain.allocate_at(socket.slot, i) {
            return false;
        }
        let mut c = self.connection(i);
        c.block.domain = socket.domain;
        c.block.slot = socket.slot;
        c.cold.incarnation = incarnation;
        (c.block.rcv_taken, c.block.rcv_nxt) = (taken, end);
        self.attach_page(i);
        self.connection(i).refresh_flags();
        true
    }

    /// Finds the page of a block's slot. False if its arena is not open or has no such slot.
    pub(super) fn attach_page(&mut self, i: u32) -> bool {
        let socket = self.socket(i);
        let Some((page, pool)) = self.domains.page(socket) else {
            return false;
        };
        let block = self.view(i).block;
        let published = (block.rcv_nxt, block.snd_released);
        let page = Page::new(&self.stage, page, socket, i, published);
        let live = self.connection(i).live;
        live.page = Some(page);
        live.pool = pool;
        true
    }

    /// The application has put bytes in, taken bytes out, or set a wish.
    pub(super) fn receive_dirty(&mut self, cx: &Context, i: u32) {
        if self.block(i).has(bit::ORPHAN) {
            return;
        }
        self.read_page(cx, i);
        let mut c = self.connection(i);
        let more = c.asks_of_page();
        c.mark(due::SEND | due::WRITABLE | due::INFO | more);
        self.close_held(cx, i);
    }

    /// Reads cursors, wishes and options. Impossible ones end the connection.
    pub(super) fn read_page(&mut self, cx: &Context, i: u32) {
        if !self.connection(i).read_page(cx.now) {
            return self.distrust(cx, i);
        }
        self.note_keys(i);
        let mut c = self.connection(i);
        c.forget_urgent();
        c.look_for_holder();
    }

    /// What was held without a descriptor is closed, if its page says so.
    pub(super) fn close_held(&mut self, cx: &Context, i: u32) {
        let c = self.view(i);
        let closed = wish::HELD | wish::CLOSED;
        let is_closed = c.live.page.as_ref().is_some_and(|page| page.wishes() & closed == closed);
        if is_closed && c.block.has(bit::PASSIVE) && !c.block.has(bit::ORPHAN) {
            self.close_socket(cx, i);
        }
    }

    /// Ends a connection whose page holds impossible words.
    fn distrust(&mut self, cx: &Context, i: u32) {
        cx.count(Counter::HostilePages);
        self.abort_later(cx, i, ECONNABORTED);
    }
}

/// Publishes how much was sent, if the application set TCP_NOTSENT_LOWAT. True if it did.
fn publish_sent(page: &Page, sent: u64) -> bool {
    let asked = page.option(Opt::NotSentLowWater) != 0;
    if asked {
        page.set_send_sent(sent);
    }
    asked
}
