//! The end of a connection (RFC 9293 §3.6, §3.10.4, §3.10.5): FIN, TIME-WAIT, reset; and of a socket.

use super::asked::PendingReset;
use super::block::{NONE, NOWHERE, State, bit, clock};
use super::connection::{Connection, View};
use super::counters::Counter;
use super::emit::Outgoing;
use super::engine::Tcp;
use super::live::{Live, due};
use super::options::Builder;
use super::segment::Segment;
use super::signature::Signed;
use crate::edge::Out;
use core::time::Duration;
use eft_base::Instant;
use eft_base::wire::{TCP_ACK, TCP_RST};
use eft_channel::socket::Opt;
use eft_component::{Context, Outbox};

/// How long a connection without application waits for the peer's FIN.
pub(super) const ORPHAN_PATIENCE: Duration = Duration::from_secs(60);
/// How long the connections of a closed domain may still send.
const DOMAIN_PATIENCE: Duration = Duration::from_secs(30);
/// Most resets that wait for room; further ones are not sent.
const PENDING_RESETS_MAX: usize = 1024;

impl View<'_> {
    /// Whether a reset was due when a predecessor died: who closes otherwise has finished sending.
    pub(super) fn is_half_aborted(&self) -> bool {
        let open = matches!(self.block.state(), State::Established | State::CloseWait);
        open && self.block.has(bit::ORPHAN) && self.block.fin_at == NOWHERE
    }

    /// The reset that tells the peer of the end, if the peer knows of the connection.
    fn final_reset(&self) -> Option<PendingReset> {
        let block = self.block;
        let known = block.state().is_synchronized() || block.state() == State::SynReceived;
        (known && block.state() != State::TimeWait).then(|| PendingReset {
            tuple: block.tuple,
            seq: block.send_sequence(block.snd_nxt),
            ack: block.acknowledgment(),
            flags: TCP_RST | TCP_ACK,
            clocks: block.has(bit::TIMESTAMPS).then_some((block.ts_offset, block.ts_recent)),
            signer: None,
        })
    }
}

impl Connection<'_> {
    /// Whether closing it aborts it: unread bytes must not be lost silently after they were acknowledged (RFC 9293 §3.6, RFC
    /// 2525 §2.17), and a linger time of 0 asks for an abort.
    fn is_aborted_by_close(&self) -> bool {
        let linger = self.live.page.as_ref().map_or(0, |p| p.option(Opt::Linger));
        self.block.rcv_nxt > self.block.rcv_taken || linger == 1
    }

    /// Ends the connection, with the error `errno` if it is not 0, and tells its application. True if there is no application.
    fn conclude(&mut self, errno: i32) -> bool {
        let (block, live) = (&mut self.block, &mut *self.live);
        live.stop_timers();
        live.recovery = Default::default();
        live.timing = None;
        live.due = 0;
        let was_embryonic = block.state() == State::SynReceived && block.slot == NONE;
        block.set_state(State::Closed);
        block.set(bit::DEAD);
        if errno != 0 {
            block.set(bit::FAILED);
        }
        self.cold.close_at = NOWHERE;
        if was_embryonic || self.block.has(bit::ORPHAN) {
            return true;
        }
        if let Some(page) = &self.live.page
            && errno != 0
        {
            page.set_error(errno);
        }
        self.refresh_flags();
        self.mark(due::READABLE | due::WRITABLE | due::END_OF_STREAM | due::HANG_UP);
        false
    }

    /// From now on the block only waits for its unanswered sends.
    fn drain(&mut self) {
        self.live.stop_timers();
        self.live.due = 0;
        self.block.set_state(State::Closed);
        self.block.flags = bit::DRAINING | bit::ORPHAN | bit::DEAD;
        self.cold.close_at = NOWHERE;
    }

    /// No byte will follow: a FIN goes out after the last one.
    pub(super) fn finish_sending(&mut self) {
        let block = &mut self.block;
        if block.fin_at != NOWHERE {
            return;
        }
        match block.state() {
            State::Established => block.set_state(State::FinWait1),
            State::CloseWait => block.set_state(State::LastAck),
            _ => return,
        }
        block.fin_at = block.snd_end;
        let over = block.state() == State::LastAck;
        self.refresh_flags();
        self.mark(due::SEND | if over { due::HANG_UP } else { 0 });
    }

    /// The application will receive no more: its descriptor shows the end of the stream, and a hang-up if it has finished
    /// sending, too.
    pub(super) fn finish_receiving(&mut self) {
        let over = self.block.fin_at != NOWHERE;
        self.mark(due::END_OF_STREAM | if over { due::HANG_UP } else { 0 });
    }

    /// Limits the wait in FIN-WAIT-2 of a connection without application.
    pub(super) fn wait_as_orphan(&mut self, now: Instant) {
        let block = &mut self.block;
        if block.has(bit::ORPHAN) && block.state() == State::FinWait2 {
            self.cold.close_at = self.cold.close_at.min((now + ORPHAN_PATIENCE).as_nanos());
            self.rearm();
        }
    }

    /// The domain is gone as well: limits the time in which bytes are still sent.
    pub(super) fn limit_orphan(&mut self, cx: &Context) {
        let block = &mut self.block;
        if block.state().has_connection() && block.slot != NONE {
            self.cold.close_at = self.cold.close_at.min((cx.now + DOMAIN_PATIENCE).as_nanos());
            self.rearm();
        }
    }
}

impl Tcp {
    /// The application's last descriptor is gone.
    pub(super) fn close_socket(&mut self, cx: &Context, i: u32) {
        if self.view(i).block.has(bit::ORPHAN) {
            return;
        }
        // Bytes put in before the last close are still to be sent.
        self.read_page(cx, i);
        let mut c = self.connection(i);
        c.block.set(bit::ORPHAN);
        c.block.clear(bit::QUEUED);
        match c.block.state() {
            State::Free => {}
            State::Listen | State::Closed | State::SynSent => self.release(cx, i),
            State::SynReceived => self.reset(cx, i, 0),
            State::TimeWait => self.leave_slot(i),
            _ if c.is_aborted_by_close() && !c.has_unsent() => self.reset(cx, i, 0),
            // What the application has just written goes first, as far as the windows let it: Linux sends in the call.
            _ if c.is_aborted_by_close() => c.mark(due::SEND | due::RESET),
            _ => {
                c.finish_sending();
                c.wait_as_orphan(cx.now);
            }
        }
    }

    /// Sends the reset that was put off until what could be sent was sent.
    pub(super) fn reset_if_due(&mut self, cx: &Context, i: u32) {
        let due = self.live[i as usize].due;
        if due & due::RESET != 0 && due & (due::SEND | due::OVERRIDE | due::PIECE) == 0 {
            self.connection(i).live.due &= !due::RESET;
            self.reset(cx, i, 0);
        }
    }

    /// Resets a connection and tells the peer.
    pub(super) fn reset(&mut self, cx: &Context, i: u32, errno: i32) {
        self.say_reset(i);
        self.end(cx, i, errno);
    }

    /// As [`Tcp::reset`], deferred, for callers that still use the connection.
    pub(super) fn abort_later(&mut self, cx: &Context, i: u32, errno: i32) {
        match self.view(i).block.state() {
            State::Listen => {
                self.leave_children(i);
                self.ports.unlisten(i, &self.blocks[i]);
                self.count_listener(i);
                self.end(cx, i, errno);
            }
            state if state.has_connection() => self.reset(cx, i, errno),
            _ => self.end(cx, i, errno),
        }
    }

    /// Queues a reset for the peer of a connection that is about to end.
    pub(super) fn say_reset(&mut self, i: u32) {
        if let Some(reset) = self.view(i).final_reset() {
            self.queue_reset_of(i, reset);
        }
    }

    /// As [`Tcp::say_reset`], with the sequence number that the peer expects next, as its segment acknowledged: our FIN may
    /// be lost, and only the exact number resets (RFC 5961 §3.2).
    pub(super) fn say_reset_at(&mut self, i: u32, seq: u32) {
        if let Some(reset) = self.view(i).final_reset() {
            self.queue_reset_of(i, PendingReset { seq, ack: 0, flags: TCP_RST, ..reset });
        }
    }

    fn queue_reset_of(&mut self, i: u32, reset: PendingReset) {
        let signer = self.signer(i, reset.seq, reset.flags.into());
        self.queue_reset(PendingReset { signer, ..reset });
    }

    /// Sends the reset that RFC 9293 §3.5.2 and §3.10.7.1 require for a segment of no connection, at a limited rate.
    pub(super) fn answer_with_reset(&mut self, cx: &Context, segment: &Segment) {
        let (seq, ack, flags) = if segment.has(TCP_ACK) {
            (segment.ack, 0, TCP_RST)
        } else {
            (0, segment.seq.wrapping_add(segment.sequence_len()), TCP_RST | TCP_ACK)
        };
        let signer = self.answering_signer(segment, seq, flags);
        if signer.is_none() && segment.options.are_signed() {
            // Its sender takes no reset that is not signed (RFC 2385 §4.1).
            return;
        }
        let noise = self.key.hash(b'R', &(cx.now.as_nanos(), segment.seq));
        if !self.resets.take(cx.now, noise) {
            return;
        }
        let reset = PendingReset { tuple: segment.tuple, seq, ack, flags, clocks: None, signer };
        self.queue_reset(reset);
    }

    /// Resets that may wait besides those that do.
    pub(super) fn room_for_resets(&self) -> usize {
        PENDING_RESETS_MAX.saturating_sub(self.pending_resets.len())
    }

    pub(super) fn queue_reset(&mut self, reset: PendingReset) {
        if self.room_for_resets() > 0 {
            self.pending_resets.push(reset);
        }
    }

    /// Sends the resets for which there is room.
    pub(super) fn send_pending_resets(&mut self, cx: &Context, out: &mut Outbox<Out>) {
        while let Some(reset) = self.pending_resets.pop() {
            let mut options = Builder::new();
            if let Some((offset, echo)) = reset.clocks {
                // RFC 7323 §3.2: a reset should carry timestamps, too.
                options.timestamps(clock(cx.now, offset), echo);
            }
            let segment = Outgoing {
                signed: reset.signer.clone().map(Signed::bare),
                ..Outgoing::bare(reset.tuple, reset.seq, reset.ack, reset.flags, 0, options.bytes())
            };
            if !self.transmit_bare(cx, out, NONE, segment) {
                self.pending_resets.push(reset);
                break;
            }
            cx.count(Counter::Resets);
        }
    }

    /// Ends the connection, with the error `errno` if it is not 0. The socket stays until it is closed.
    pub(super) fn end(&mut self, cx: &Context, i: u32, errno: i32) {
        self.leave_table(i);
        self.count_end(cx, i);
        if self.connection(i).conclude(errno) {
            self.release(cx, i);
        }
    }

    /// Takes a connection out of the table and its place among its port's users.
    fn leave_table(&mut self, i: u32) {
        self.forget_unproven(i);
        let mut c = self.connection(i);
        let (tuple, state) = (c.block.tuple, c.block.state());
        let (user, shared) = (c.block.has(bit::PORT_USER), c.block.has(bit::REUSE_ADDRESS));
        if user {
            c.block.clear(bit::PORT_USER);
        }
        if state.has_connection() && self.table.get(&tuple) == Some(&i) {
            self.forget_tuple(&tuple);
        }
        if user {
            self.ports.remove_user(tuple.local, tuple.local_port, shared);
        }
        self.timers.cancel(i);
    }

    fn count_listener(&mut self, i: u32) {
        let domain = self.view(i).block.domain;
        if let Some(f) = self.domains.get_mut(domain) {
            f.listeners = f.listeners.saturating_sub(1);
        }
    }

    /// Gives up everything that a block has, and the block, as soon as no unanswered `Send` refers to its ring and no connection
    /// to a listener's accept queue. Releasing twice does nothing: releasing what a block refers to may lead back to it.
    pub(super) fn release(&mut self, cx: &Context, i: u32) {
        if self.free.contains(i) {
            return;
        }
        self.leave_table(i);
        self.count_end(cx, i);
        let block = self.view(i).block;
        let (tuple, is_bound) = (block.tuple, block.has(bit::BOUND));
        if block.state() == State::Listen {
            self.leave_children(i);
            self.ports.unlisten(i, &self.blocks[i]);
            self.count_listener(i);
        }
        if is_bound {
            self.ports.unbind(i, tuple.local_port);
        }
        self.connection(i).drain();
        self.finish_draining(cx, i);
    }

    /// Frees a block that only waited for answers of ip, or for the end of a listener's connections.
    pub(super) fn finish_draining(&mut self, cx: &Context, i: u32) {
        if self.view(i).is_parting() {
            return;
        }
        let Connection { block, live, .. } = self.connection(i);
        if live.in_flight.count() > 0 {
            return;
        }
        if block.has(bit::DRAINING) {
            self.take_slot(i);
            self.free_block(cx, i);
        } else if block.state() == State::TimeWait && block.has(bit::ORPHAN) {
            self.take_slot(i);
        }
    }

    /// Takes a block's slot back.
    pub(super) fn take_slot(&mut self, i: u32) {
        let socket = self.socket(i);
        if socket.slot == NONE {
            return;
        }
        let mut c = self.connection(i);
        if let Some(page) = c.live.page.take() {
            page.set_free();
        }
        c.block.slot = NONE;
        self.domains.free(socket);
    }

    /// Puts a block back among the free ones.
    pub(super) fn free_block(&mut self, cx: &Context, i: u32) {
        if !self.free.put(i) {
            return;
        }
        let mut c = self.connection(i);
        c.clear();
        *c.live = Live::new();
        self.timers.cancel(i);
        self.gauge_blocks(cx);
    }

    /// A connection in TIME-WAIT that no application holds needs no page.
    pub(super) fn leave_slot(&mut self, i: u32) {
        let c = self.connection(i);
        if c.block.has(bit::ORPHAN) && c.live.in_flight.count() == 0 {
            self.take_slot(i);
        }
    }
}

#[cfg(test)]
mod tests;
