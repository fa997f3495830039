//! After a crash: derived state is rebuilt from the blocks, and every output is derived from state.
//!
//! [`Tcp::rebuild`] runs when the arena is opened, before any domain's memory is there. [`Tcp::revive`]
//! runs for each socket once its domain's arena is mapped: it notifies the application, queues
//! connections for accept again, acknowledges, and treats unacknowledged data as lost. All
//! notifications are repeated; a repeated one does no harm.
//!
//! A page that is touched for the first time costs microseconds, and there may be 100,000. So listeners are revived at
//! once, and connections a few in each turn, or when something happens to one: nobody waits for the others.

use super::block::{Cold, NONE, NOWHERE, State, bit};
use super::connection::{Connection, View};
use super::counters::Counter;
use super::engine::Tcp;
use super::listen::RECORD_LEN;
use super::live::due;
use super::out_of_order::OutOfOrder;
use super::remains::Remains;
use super::statistics::Statistics;
use eft_arena::docket::Kind;
use eft_base::errno::ECONNABORTED;
use eft_component::Context;
use eft_messages::sockets::SocketsToTransport;

/// Connections from before the crash that are revived in one flush, beside those to which something happens. One takes some 15 us,
/// with the acknowledgement that it sends, and what arrives meanwhile waits for the end of the turn.
const REVIVED_PER_TURN: usize = 16;

impl Connection<'_> {
    fn revive_connection(&mut self, cx: &Context) {
        let first = self.view().initial_window();
        let live = &mut *self.live;
        let block = &mut self.block;
        live.last_heard = cx.now;
        live.stuck_since = cx.now;
        live.last_sent = cx.now;
        block.backoff = 0;
        if block.flight_size() > 0 && block.state().may_send() {
            // Lost by us, not by congestion: the threshold stays.
            live.recovery.lose_all(block.snd_una, block.snd_nxt);
            block.congestion.restart(first);
        }
        self.mark(due::ACK | due::SEND);
        if self.is_unproven() {
            self.mark(due::SYN);
        }
        if self.view().is_half_aborted() {
            self.mark(due::RESET);
        }
        if !self.block.has(bit::ROUTED) {
            // For a connection from a cookie: the predecessor died before ip answered.
            self.mark(due::ROUTE);
        }
    }

    /// Writes the block's state into the page of a socket from before the crash.
    fn restore_page(&mut self) {
        let block = &self.block;
        if let Some(page) = &self.live.page {
            page.set_receive_end(block.rcv_nxt);
            page.set_send_released(block.snd_released);
            page.set_local(block.tuple.local_endpoint());
            page.set_remote(block.tuple.remote_endpoint());
        }
        self.tell_urgent();
        // Our predecessor's sends are gone, so nothing refers to the ring any more.
        self.release_ring();
        self.refresh_flags();
    }

    /// Repeats every notification that the application may be waiting for.
    pub(super) fn ring_socket(&mut self) {
        let block = &*self.block;
        let mut what = due::WRITABLE | due::INFO;
        if block.rcv_nxt > block.rcv_taken {
            what |= due::READABLE;
        }
        let received_all = block.has(bit::RECEIVED_FIN) || block.has(bit::DEAD);
        if received_all {
            what |= due::READABLE | due::END_OF_STREAM;
        }
        let over = matches!(block.state(), State::Closing | State::LastAck | State::TimeWait)
            || block.has(bit::DEAD);
        if over {
            what |= due::HANG_UP;
        }
        self.mark(what);
    }
}

impl Tcp {
    /// Fills tables, port users, slots and queues from the blocks.
    pub(super) fn rebuild(&mut self) {
        let mut waiting = alloc::vec::Vec::new();
        for i in (0..self.blocks.len() as u32).rev() {
            let block = self.view(i).block;
            let used = block.state() != State::Free;
            // Blocks that only waited for their sends are done, since those ended with the predecessor; not a listener that has
            // left connections.
            let drained = block.has(bit::DRAINING) && !self.view(i).is_parting();
            if used && (drained || !self.rebuild_block(i)) {
                self.quarantined += !drained as u64;
                let c = self.view(i);
                self.lost.extend(Remains::of(c.block, c.cold).filter(|_| !drained));
                self.connection(i).clear();
            }
            let c = self.view(i);
            match c.block.state() {
                State::Free => {
                    self.free.put(i);
                }
                State::TimeWait => waiting.push((c.cold.close_at, i)),
                _ => {}
            }
        }
        waiting.sort_unstable();
        for (_, i) in waiting {
            self.time_wait.push_back((i, self.view(i).block.generation));
        }
        self.rebuild_embryonic();
    }

    /// Enters one block into the tables. False if its place is taken or invalid.
    fn rebuild_block(&mut self, i: u32) -> bool {
        let View { block: &block, cold: &Cold { open_request, .. }, .. } = self.view(i);
        if !self.fits_its_queue(i) {
            return false;
        }
        if block.slot != NONE && !self.domains.enter(block.domain).claim(block.slot, i) {
            return false;
        }
        self.is_keyed |= block.has(bit::SIGNED);
        let tuple = block.tuple;
        if block.state().has_connection() {
            // One look-up for both: those are a good part of rebuilding a hundred thousand.
            if self.table.try_insert(tuple, i).is_err() {
                self.disown(i);
                return false;
            }
        }
        if block.has(bit::PORT_USER) {
            let shared = block.has(bit::REUSE_ADDRESS);
            self.ports.add_user(tuple.local, tuple.local_port, shared);
        }
        if block.has(bit::BOUND) {
            self.ports.bind(i, tuple.local_port);
        }
        if block.state().is_synchronized() && block.state() != State::TimeWait {
            self.live.set_open(i);
            if !self.notes[i].is_empty() {
                let c = self.connection(i);
                c.live.out_of_order = OutOfOrder::restored(&c.notes);
            }
            self.open += 1;
        }
        match block.state() {
            State::Listen => {
                self.ports.listen(i, &self.blocks[i]);
                self.domains.enter(block.domain).listeners += 1;
            }
            State::TimeWait => self.connection(i).rearm(),
            State::Closed if open_request != 0 && !block.has(bit::DEAD) => {
                self.domains.inherit_opened(open_request, i);
            }
            _ => {}
        }
        true
    }

    /// Whether a queued connection's record lies within its listener's accept queue.
    fn fits_its_queue(&self, i: u32) -> bool {
        let View { block, cold, .. } = self.view(i);
        let Some(listener) = self.listener_of(i).filter(|_| block.has(bit::QUEUED)) else {
            return true;
        };
        let listener = self.view(listener).block;
        listener.domain == block.domain
            && cold.accept_at.is_multiple_of(RECORD_LEN)
            && cold.accept_at + RECORD_LEN <= listener.rcv_nxt
    }

    fn disown(&mut self, i: u32) {
        let socket = self.socket(i);
        if socket.slot != NONE {
            self.domains.free(socket);
        }
    }

    /// Counts handshakes under way for their listeners; those without a listener are forgotten, unless it has just
    /// been closed: then their peers are told.
    fn rebuild_embryonic(&mut self) {
        for i in 0..self.blocks.len() as u32 {
            self.rebuild_unproven(i);
            let block = self.view(i).block;
            if block.state() != State::SynReceived || block.slot != NONE {
                continue;
            }
            if let Some(listener) = self.listener_of(i) {
                self.connection(listener).live.embryonic += 1;
                self.connection(i).mark(due::ROUTE);
            } else if !self.is_to_be_orphaned(i) {
                let (tuple, shared) = (block.tuple, block.has(bit::REUSE_ADDRESS));
                self.forget_tuple(&tuple);
                self.ports.remove_user(tuple.local, tuple.local_port, shared);
                self.connection(i).clear();
                self.free.put(i);
            }
        }
    }

    /// sockets is connected. Gives up the sockets of unknown domains: their blocks are damaged.
    pub(super) fn quarantine_homeless(&mut self, cx: &Context) {
        self.lost.clear();
        for i in self.domains.sockets_connected() {
            cx.count(Counter::Quarantined);
            if self.view(i).is_parting() {
                self.leave_children_again(i);
            }
            self.say_reset(i);
            self.release(cx, i);
        }
    }

    /// Revives a few of the connections to which nothing has happened yet.
    pub(super) fn revive_some(&mut self, cx: &Context) {
        let mut left = REVIVED_PER_TURN;
        while left > 0
            && let Some(i) = self.unrevived.pop_front()
        {
            if self.view(i).live.is_due(due::REVIVE) {
                self.revive(cx, i);
                cx.advance();
                left -= 1;
            }
        }
    }

    /// Revives a connection if that is still to be done. False if it ended by that.
    pub(super) fn revive_if_due(&mut self, cx: &Context, i: u32) -> bool {
        if !self.live[i as usize].is_due(due::REVIVE) {
            return true;
        }
        self.revive(cx, i);
        !self.free.contains(i)
    }

    /// The same in the middle of a message, which goes on to be what runs.
    pub(super) fn revive_for_message(&mut self, cx: &Context, i: u32) {
        let running = self.docket.running();
        self.revive_if_due(cx, i);
        self.docket.resume(running);
    }

    /// Revives the connection of which a request speaks. Those of a domain that ends are revived as they are closed.
    pub(super) fn revive_for_request(&mut self, cx: &Context, message: &SocketsToTransport) {
        let (_, socket) = message.asks();
        if let Some(i) = self.domains.find(socket) {
            self.revive_for_message(cx, i);
        }
    }

    /// Revives a socket from before the crash: its page is mapped again.
    pub(super) fn revive(&mut self, cx: &Context, i: u32) {
        self.connection(i).live.due &= !due::REVIVE;
        if self.free.contains(i) {
            // The revival of another connection ended it.
            return;
        }
        let first = self.connection(i).live.page.is_none();
        if first && self.view(i).is_parting() {
            self.leave_children_again(i);
        }
        if !self.attach_page(i) {
            // A slot that the arena does not have: the block is damaged.
            cx.count(Counter::Quarantined);
            self.say_reset(i);
            return self.release(cx, i);
        }
        if !first || self.block(i).has(bit::DRAINING) {
            return;
        }
        self.take_settings(i);
        if !self.enter(cx, Kind::Revive, i, &[]) {
            self.say_reset(i);
            return self.release(cx, i);
        }
        self.note_keys(i);
        let owner = self.config.slots.owner;
        let c = self.connection(i);
        if let Some(page) = &c.live.page
            && page.resume(owner, c.cold.incarnation)
        {
            page.set_receive_notify(NOWHERE);
        }
        // The predecessor may have died before it wrote them.
        if let Some(listener) = self.listener_of(i).filter(|_| self.view(i).block.has(bit::QUEUED))
            && !self.is_taken(i)
        {
            self.inherit_options(i, listener);
        }
        let mut c = self.connection(i);
        if let Some(told) = c.live.page.as_ref().and_then(|page| page.told_statistics()) {
            c.live.statistics = Statistics::resumed(told, cx.now);
            c.resume_byte_counts();
        }
        c.restore_page();
        match c.block.state() {
            State::Listen => self.offer_again(i),
            State::SynSent | State::SynReceived => c.mark(due::ROUTE | due::SYN),
            state if state.is_synchronized() => {
                c.resume_mtu_search(cx.now);
                c.revive_connection(cx);
            }
            _ => {}
        }
        self.take_up_listener(i);
        let mut c = self.connection(i);
        if c.block.has(bit::QUEUED) {
            c.expect_attach(cx.now);
        }
        self.read_page(cx, i);
        // The question may have gone down with the predecessor.
        self.connection(i).mark(due::ASKED);
        self.connection(i).ring_socket();
        self.connection(i).rearm();
        if self.doomed.take_if(|doomed| *doomed == i).is_some() {
            cx.count(Counter::DropFatal);
            self.abort_later(cx, i, ECONNABORTED);
        }
        self.close_held(cx, i);
    }

    /// Writes the records of a listener's ring again, each at the place stored in its connection's
    /// block.
    fn offer_again(&mut self, listener: u32) {
        for i in 0..self.blocks.len() as u32 {
            if self.listener_of(i) == Some(listener) {
                self.take_up_listener(i);
            }
        }
    }

    /// For a connection that is revived after its listener: writes its record. A record that was taken
    /// is not written again: its place in the ring may belong to another connection by now.
    fn take_up_listener(&mut self, i: u32) {
        let Some(listener) = self.listener_of(i).filter(|_| self.view(i).block.has(bit::QUEUED)) else {
            return;
        };
        if !self.is_taken(i) {
            self.write_record(i, listener);
        }
    }
}
