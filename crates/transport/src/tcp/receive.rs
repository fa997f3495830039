//! Arriving segments (RFC 9293 §3.10.7). Whether one is acceptable at all is judged in [`super::acceptable`].

use super::acceptable::STRAY_INTERVAL;
use super::block::{NONE, NOWHERE, State, bit};
use super::clocks::Timestamps;
use super::connection::Connection;
use super::counters::Counter;
use super::engine::Tcp;
use super::live::due;
use super::segment::{Segment, Unfit, parse};
use super::verifying::Arrived;
use crate::edge::Out;
use eft_arena::docket::Kind;
use eft_base::errno::{ECONNREFUSED, ECONNRESET, EPIPE};
use eft_base::wire::{TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};
use eft_base::{Instant, PacketRef};
use eft_component::{Context, Outbox};

impl Connection<'_> {
    /// The segment's text (step 7): into the ring at its place, in order or not.
    pub(super) fn receive_text(&mut self, cx: &Context, segment: &Segment, scratch: &[u8]) {
        let block = &*self.block;
        if !block.state().may_receive() {
            return;
        }
        let Some(page) = &self.live.page else {
            return cx.count(Counter::DropNoDomain);
        };
        let ring_end = block.rcv_taken + page.receive_len() as u64;
        let seq = block.received_offset(segment.seq);
        let skip = (block.rcv_nxt as i64 - seq).max(0) as u64;
        let start = (seq + skip as i64) as u64;
        let end = ((seq + segment.len as i64).max(0) as u64).min(ring_end).min(block.rcv_fin_at);
        if start >= end {
            if skip >= segment.len as u64 {
                cx.count(Counter::DuplicateData);
                self.note_duplicate(seq, seq + segment.len as i64);
            } else {
                cx.count(Counter::DropWindow);
            }
            return self.mark(due::ACK);
        }
        if start > block.rcv_nxt {
            return self.receive_out_of_order(cx, segment, scratch, (start, end, skip));
        }
        let len = (end - start) as u32;
        if !segment.place(cx, scratch, page, start, skip as u32, len) {
            return cx.count(Counter::DropUnreadable);
        }
        let block = &mut self.block;
        let fills = !self.live.out_of_order.is_empty();
        block.rcv_nxt = if fills { self.live.out_of_order.advance(end, &self.notes) } else { end };
        page.set_receive_end(block.rcv_nxt);
        let came = block.rcv_nxt - start;
        self.stamp_received(cx.now);
        self.live.note_run(cx.now, came);
        cx.add(Counter::ReceivedBytes, came);
        self.mark_input(due::READABLE | due::INFO);
        if fills {
            self.keep_notes();
            // RFC 5681 §4.2: a segment that fills a gap is acknowledged at once.
            self.mark(due::ACK);
        }
        self.owe_acknowledgement(cx.now, segment.count, came);
    }

    fn receive_out_of_order(
        &mut self,
        cx: &Context,
        segment: &Segment,
        scratch: &[u8],
        (start, end, skip): (u64, u64, u64),
    ) {
        cx.count(Counter::OutOfOrder);
        self.live.statistics.on_out_of_order(segment.count);
        if self.live.out_of_order.holds(start, end) {
            cx.count(Counter::DuplicateData);
            self.note_duplicate(start as i64, end as i64);
            // Its range is reported beside the duplicate (RFC 2883 §4).
            self.live.out_of_order.insert(start, end);
        } else if !self.live.out_of_order.has_room(start, end) {
            cx.count(Counter::DropReassembly);
        } else {
            let Some(page) = &self.live.page else {
                return;
            };
            let len = (end - start) as u32;
            // Noted only after the bytes are in place: a successor trusts the note.
            if !segment.place(cx, scratch, page, start, skip as u32, len) {
                return cx.count(Counter::DropUnreadable);
            }
            self.live.out_of_order.insert(start, end);
            self.keep_notes();
        }
        self.acknowledge_quickly();
        if !self.block.has(bit::SACK) {
            self.live.duplicate_acks += 1;
        }
        self.mark(due::ACK | due::INFO);
    }

    /// Step 8. True if TIME-WAIT begins.
    fn receive_fin(&mut self, now: Instant) -> bool {
        let block = &mut self.block;
        if block.has(bit::RECEIVED_FIN) || block.rcv_nxt != block.rcv_fin_at || !block.state().may_receive() {
            return false;
        }
        block.set(bit::RECEIVED_FIN);
        match block.state() {
            State::Established => {
                block.set_state(State::CloseWait);
                self.owe_acknowledgement_of_end(now);
            }
            State::FinWait1 if block.fin_acknowledged() => return true,
            State::FinWait1 => {
                block.set_state(State::Closing);
                self.mark(due::ACK | due::HANG_UP);
            }
            _ => return true,
        }
        self.refresh_flags();
        self.mark_input(due::READABLE | due::END_OF_STREAM);
        false
    }

    /// The SYN came again: answers again, at a limited rate.
    pub(super) fn answer_again(&mut self, cx: &Context, syn: &Segment) {
        let recently = cx.now.saturating_since(self.live.last_sent) < STRAY_INTERVAL;
        if self.block.has(bit::ROUTED) && !recently {
            self.doubt_marks(syn);
            self.mark(due::SYN);
        }
    }

    /// Notes where the peer's FIN lies; it takes effect when everything before it has come.
    fn note_fin(&mut self, segment: &Segment) {
        let block = &mut self.block;
        let at = block.received_offset(segment.seq) + segment.len as i64;
        let expected = at >= block.rcv_nxt as i64 && (at as u64) <= block.rcv_adv;
        if block.rcv_fin_at == NOWHERE && expected && block.state().may_receive() {
            block.rcv_fin_at = at as u64;
        }
    }
}

impl Tcp {
    /// A packet from ip.
    pub(super) fn receive_packet(
        &mut self,
        cx: &Context,
        packet: PacketRef,
        header_len: u16,
        checksum_ok: bool,
        segment_size: u16,
        zone: u16,
        out: &mut Outbox<Out>,
    ) {
        let parsed = parse(cx.memory, &mut self.scratch, packet, header_len, checksum_ok, segment_size, zone);
        let mut segment = match parsed {
            Ok(segment) => segment,
            Err(why) => {
                let counter = match why {
                    Unfit::Unreadable => Counter::DropUnreadable,
                    Unfit::Malformed => Counter::DropMalformed,
                    Unfit::Checksum => Counter::DropChecksum,
                };
                return cx.count(counter);
            }
        };
        cx.add(Counter::ReceivedSegments, segment.count as u64);
        cx.add(Counter::ReceivedEmpty, (segment.len == 0) as u64);
        let arrived = Arrived { packet, ip_len: header_len };
        if self.is_authentic(cx, &mut segment, arrived) {
            if self.clocks == Timestamps::Off && segment.flags & TCP_SYN != 0 {
                segment.options.timestamps = None;
            }
            self.receive_segment(cx, &segment, out);
        }
    }

    pub(super) fn receive_segment(&mut self, cx: &Context, segment: &Segment, out: &mut Outbox<Out>) {
        let Some(i) = self.find(&segment.tuple) else {
            return self.receive_unconnected(cx, segment, out);
        };
        let content = [segment.seq as u64, segment.len as u64, segment.flags as u64];
        if !self.enter(cx, Kind::Segment, i, &content) {
            return;
        }
        #[cfg(feature = "poison")]
        super::poison::die_of(segment);
        self.connection(i).live.statistics.on_received(cx.now, segment);
        match self.block(i).state() {
            State::SynSent => self.receive_in_syn_sent(cx, i, segment),
            State::TimeWait => self.receive_in_time_wait(cx, i, segment, out),
            State::SynReceived => self.receive_in_syn_received(cx, i, segment),
            _ if self.block(i).has(bit::UNPROVEN) => self.receive_unproven(cx, i, segment),
            _ => self.receive_synchronized(cx, i, segment),
        }
        self.connection(i).rearm();
    }

    /// No connection: LISTEN or CLOSED (§3.10.7.1, §3.10.7.2).
    fn receive_unconnected(&mut self, cx: &Context, segment: &Segment, out: &mut Outbox<Out>) {
        if segment.has(TCP_RST) || !self.is_plausible_peer(segment) {
            return cx.count(Counter::DropNoSocket);
        }
        if segment.has(TCP_SYN)
            && !segment.has(TCP_ACK)
            && let Some(listener) = self.ports.listener(&segment.tuple)
        {
            return self.receive_syn(cx, listener, segment, out);
        }
        if self.receive_cookie(cx, segment) {
            return;
        }
        cx.count(Counter::DropNoSocket);
        self.answer_with_reset(cx, segment);
    }

    /// §3.10.7.3
    fn receive_in_syn_sent(&mut self, cx: &Context, i: u32, segment: &Segment) {
        let acknowledged = self.connection(i).acknowledged_of_syn(segment).filter(|_| segment.has(TCP_ACK));
        let stale =
            acknowledged.is_some() && !segment.has(TCP_RST) && !self.view(i).may_be_answered(cx.now, segment);
        if segment.has(TCP_ACK) && (acknowledged.is_none() || stale) {
            if !segment.has(TCP_RST) {
                self.answer_with_reset(cx, segment);
            }
            return cx.count(Counter::DropAck);
        }
        if segment.has(TCP_RST) {
            if acknowledged.is_some() {
                cx.count(Counter::ResetsReceived);
                cx.count(Counter::FailedConnects);
                self.end(cx, i, ECONNREFUSED);
            }
            return;
        }
        if !segment.has(TCP_SYN) {
            return cx.count(Counter::DropMalformed);
        }
        if let Some(acknowledged) = acknowledged {
            self.learn_of_server(cx, i, segment, acknowledged);
            self.connection(i).settle_early_data(cx, acknowledged);
        }
        let wished_mss = self.wished_mss(i);
        let mut c = self.connection(i);
        c.take_syn(cx.now, segment, wished_mss);
        c.take_answer(segment);
        c.set_mss();
        if acknowledged.is_some() {
            self.establish(cx, i);
            self.connection(i).mark(due::ACK);
            let seq = segment.seq.wrapping_add(1);
            self.receive_content(cx, i, &Segment { seq, ..*segment });
        } else {
            // Simultaneous open (§3.5, figure 8).
            let mut c = self.connection(i);
            c.block.set_state(State::SynReceived);
            c.refresh_flags();
            c.mark(due::SYN);
        }
    }

    /// SYN-RECEIVED, from a listener or by simultaneous open (§3.10.7.4).
    pub(super) fn receive_in_syn_received(&mut self, cx: &Context, i: u32, segment: &Segment) {
        let mut c = self.connection(i);
        let passive = c.block.has(bit::PASSIVE);
        if segment.has(TCP_SYN) && !segment.has(TCP_RST) && segment.seq == c.block.irs {
            // Our SYN-ACK was lost. (Simultaneous open: theirs carries our acknowledgment.)
            let acknowledged = c.acknowledged_of_syn(segment).filter(|_| segment.has(TCP_ACK) && !passive);
            if let Some(acknowledged) = acknowledged {
                c.settle_early_data(cx, acknowledged);
                self.establish(cx, i);
                self.connection(i).note_duplicate_syn();
                self.connection(i).mark(due::ACK);
            } else {
                c.answer_again(cx, segment);
            }
            return;
        }
        if !self.connection(i).is_acceptable(cx, segment) {
            return;
        }
        if segment.has(TCP_RST) {
            if segment.seq != self.view(i).block.acknowledgment() {
                return self.connection(i).challenge(cx);
            }
            cx.count(Counter::ResetsReceived);
            return if passive { self.discard_embryonic(cx, i) } else { self.end(cx, i, ECONNREFUSED) };
        }
        if segment.has(TCP_SYN) {
            return self.connection(i).challenge(cx);
        }
        if !segment.has(TCP_ACK) {
            return;
        }
        let Some(acknowledged) = self.connection(i).acknowledged_of_syn(segment) else {
            if self.replace_by_cookie(cx, i, segment) {
                return;
            }
            cx.count(Counter::DropAck);
            return self.answer_with_reset(cx, segment);
        };
        let is_embryo = passive && self.view(i).block.slot == NONE;
        if is_embryo && (self.defers(cx, i, segment) || !self.promote(cx, i)) {
            return;
        }
        let mut c = self.connection(i);
        c.settle_early_data(cx, acknowledged);
        c.take_reflection(segment);
        self.establish(cx, i);
        self.receive_synchronized(cx, i, segment);
    }

    /// The handshake is done.
    pub(super) fn establish(&mut self, cx: &Context, i: u32) {
        self.take_settings(i);
        let mut c = self.connection(i);
        c.begin_mtu_search(cx.now);
        c.establish(cx);
        self.open += 1;
        self.gauge_open(cx);
        self.read_page(cx, i);
    }

    /// ESTABLISHED and after (§3.10.7.4).
    pub(super) fn receive_synchronized(&mut self, cx: &Context, i: u32, segment: &Segment) {
        let mut c = self.connection(i);
        if !c.is_acceptable(cx, segment) {
            return;
        }
        if segment.has(TCP_RST) {
            return self.receive_reset(cx, i, segment);
        }
        if segment.has(TCP_SYN) {
            // RFC 5961 §4.2.
            return c.challenge(cx);
        }
        let Some(ack) = c.judge_acknowledgment(cx, segment) else {
            return;
        };
        c.note_heard(cx.now, segment);
        c.take_marks(cx, segment);
        if self.take_acknowledgment(cx, i, segment, ack) {
            self.receive_content(cx, i, segment);
        }
    }

    /// Text and FIN (steps 7 and 8); a SYN-ACK may bring some, too (§3.10.7.3).
    fn receive_content(&mut self, cx: &Context, i: u32, segment: &Segment) {
        let (mut c, scratch) = self.connection_and_scratch(i);
        c.note_urgent(segment);
        if segment.len > 0 {
            if c.refuses_text(segment) {
                if c.block.has(bit::ORPHAN) && c.has_unsent() {
                    // Its application has just written them, and closed.
                    return c.mark(due::SEND | due::RESET);
                }
                self.say_reset_at(i, segment.ack);
                return self.end(cx, i, reset_errno(self.view(i).block.state()));
            }
            c.live.heard_text |= !segment.has(TCP_SYN);
            c.receive_text(cx, segment, scratch);
            c.tell_urgent();
        }
        if segment.has(TCP_FIN) {
            c.note_fin(segment);
        }
        if c.receive_fin(cx.now) {
            self.enter_time_wait(cx, i);
            self.connection(i).mark(due::ACK);
        }
    }

    /// RFC 5961 §3.2: only the exact sequence number resets.
    pub(super) fn receive_reset(&mut self, cx: &Context, i: u32, segment: &Segment) {
        let mut c = self.connection(i);
        if segment.seq != c.block.acknowledgment() {
            return c.challenge(cx);
        }
        cx.count(Counter::ResetsReceived);
        let errno = reset_errno(c.block.state());
        self.end(cx, i, errno);
    }
}

/// What the application learns of a reset.
fn reset_errno(state: State) -> i32 {
    match state {
        State::CloseWait => EPIPE,
        State::Closing | State::LastAck => 0,
        _ => ECONNRESET,
    }
}
