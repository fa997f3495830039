//! TCP Fast Open, the server's side (RFC 7413 §4.2.2): a SYN with a good cookie, or any with data where none is required,
//! opens its connection at once, before the handshake is done.
//!
//! Such a connection is already in its later state, with [`bit::UNPROVEN`]: its SYN-ACK is not acknowledged yet, and its
//! timer retransmits it. Its received data and its state are durable as in any other connection, so a successor continues
//! with both, and sends the SYN-ACK once more.

use super::block::bit;
use super::congestion::Congestion;
use super::connection::Connection;
use super::cookie_keys::{CookieKeys, Worth};
use super::counters::Counter;
use super::engine::Tcp;
use super::fast_open::FastOpen;
use super::live::due;
use super::segment::Segment;
use crate::timers::NEVER;
use eft_base::Instant;
use eft_base::wire::{TCP_ACK, TCP_RST, TCP_SYN};
use eft_channel::socket::Opt;
use eft_component::Context;

/// Most unproven connections of a listener, whatever it asks for (as for its backlog).
const QUEUE_MAX: u32 = 4096;

impl Connection<'_> {
    pub(super) fn is_unproven(&self) -> bool {
        self.block.has(bit::UNPROVEN)
    }

    /// The path of an unproven connection, which has sent nothing yet, is known.
    pub(super) fn size_first_window(&mut self) {
        if !self.is_unproven() {
            return;
        }
        self.mark(due::SYN);
        let cwnd = self.view().initial_window();
        let block = &mut self.block;
        if block.snd_nxt == 0 {
            let algorithm = block.congestion.algorithm;
            block.congestion = Congestion { algorithm, cwnd, ..Congestion::new(block.segment_size()) };
        }
    }

    /// The SYN-ACK is acknowledged, with `acknowledged` bytes behind it.
    fn become_proven(&mut self, now: Instant, acknowledged: i64) {
        let (block, live) = (&mut self.block, &mut *self.live);
        block.clear(bit::UNPROVEN | bit::COOKIE | bit::COOKIE_EXPERIMENTAL);
        if let Some((_, at)) = live.timing.take_if(|(offset, _)| *offset == 0)
            && block.backoff == 0
        {
            block.rtt.sample(now.saturating_since(at).as_micros() as u32);
        }
        if block.backoff > 0 {
            // RFC 6298 §5.7, RFC 5681 §3.1, as after any other handshake.
            block.congestion.cwnd = block.segment_size();
            block.rtt.distrust_handshake();
            if acknowledged == 0 && block.flight_size() > 0 {
                // They arrived before the SYN-ACK, so the peer could not accept them.
                live.recovery.lose_all(block.snd_una, block.snd_nxt);
            }
        }
        block.backoff = 0;
        live.statistics.on_established(now);
        live.stuck_since = now;
        live.retransmit_at = if block.flight_size() > 0 { now + block.rtt.rto() } else { NEVER };
        self.refresh_flags();
        self.mark(due::SEND | due::INFO);
    }
}

impl Tcp {
    /// A SYN for a listener has begun connection `i`: opens it at once if that is allowed, and decides what the SYN-ACK
    /// carries (RFC 7413 §4.2.2).
    pub(super) fn open_early(&mut self, cx: &Context, listener: u32, i: u32, syn: &Segment) {
        let shown = syn.options.fast_open;
        let free = self.needs_no_cookie(listener);
        let signed = self.view(i).block.has(bit::SIGNED);
        if signed || (shown.is_none() && !(free && syn.len > 0)) || !self.may_open_early(cx.now, listener) {
            // Beside a signature a SYN-ACK has no room for a cookie.
            return;
        }
        if let Some(shown) = shown.filter(|_| !free) {
            let (client, own) = (syn.tuple.remote, syn.tuple.local);
            let worth = self.keys_of(Some(listener), cx.now).judge(&shown, client, own);
            if worth != Worth::Current {
                let option = if shown.experimental { bit::COOKIE_EXPERIMENTAL } else { 0 };
                self.connection(i).block.set(bit::COOKIE | option);
            }
            if worth == Worth::Nothing {
                let refused = !shown.is_request();
                return cx.count(if refused { Counter::FastOpenRefused } else { Counter::FastOpenAsked });
            }
        }
        if !self.promote(cx, i) {
            return;
        }
        self.connection(listener).live.unproven += 1;
        self.connection(i).block.set(bit::UNPROVEN);
        self.establish(cx, i);
        cx.count(Counter::FastOpened);
        // Behind the SYN.
        let text = Segment { seq: syn.seq.wrapping_add(1), flags: TCP_ACK, ..*syn };
        let (mut c, scratch) = self.connection_and_scratch(i);
        if text.len > 0 {
            c.receive_text(cx, &text, scratch);
        }
        if c.block.rcv_nxt > 0 {
            c.block.set(bit::SYN_DATA);
        }
        c.promise_first_window();
        c.tell_numbers();
    }

    /// Whether a listener has Fast Open, and room for another unproven connection (RFC 7413 §5.1).
    fn may_open_early(&mut self, now: Instant, listener: u32) -> bool {
        while let Some((listener, generation)) = self.early_resets.pop(now) {
            let c = self.connection(listener);
            if c.view().is_use(generation) {
                c.live.unproven = c.live.unproven.saturating_sub(1);
            }
        }
        let parent = self.view(listener);
        let wished = match parent.live.page.as_ref().map_or(0, |page| page.option(Opt::FastOpenQueue)) {
            0 if self.fast_open.has(FastOpen::ALL_LISTENERS) => parent.cold.backlog,
            wished => wished,
        };
        self.fast_open.has(FastOpen::SERVER) && parent.live.unproven < wished.min(QUEUE_MAX)
    }

    /// Whether data are taken without a cookie (RFC 7413 §4.1.2: only where the peer is trusted).
    fn needs_no_cookie(&self, listener: u32) -> bool {
        let page = self.view(listener).live.page.as_ref();
        self.fast_open.has(FastOpen::SERVER_NO_COOKIE)
            || page.is_some_and(|page| page.option(Opt::FastOpenNoCookie) != 0)
    }

    /// The keys of a listener's cookies: its own, or the stack's, or those of a secret.
    pub(super) fn keys_of(&self, listener: Option<u32>, now: Instant) -> CookieKeys {
        let page = listener.and_then(|listener| self.view(listener).live.page.as_ref());
        let own = page.map(|page| page.cookie_keys());
        let own = own.and_then(|(bytes, len)| CookieKeys::from_bytes(&bytes[..len]));
        let secret = self.cookie_secret.unwrap_or(self.key);
        own.or(self.cookie_keys).unwrap_or_else(|| CookieKeys::of_day(secret, now))
    }

    /// Handles a segment of an unproven connection: as in SYN-RECEIVED (RFC 9293 §3.10.7.4) until one acknowledges the
    /// SYN-ACK.
    pub(super) fn receive_unproven(&mut self, cx: &Context, i: u32, segment: &Segment) {
        let mut c = self.connection(i);
        if segment.has(TCP_SYN) && !segment.has(TCP_RST) && segment.seq == c.block.irs {
            return c.answer_again(cx, segment);
        }
        if !c.is_acceptable(cx, segment) {
            return;
        }
        if segment.has(TCP_RST) {
            if segment.seq == c.block.acknowledgment() {
                self.count_on(cx.now, i);
            }
            return self.receive_reset(cx, i, segment);
        }
        if segment.has(TCP_SYN) {
            return c.challenge(cx);
        }
        if !segment.has(TCP_ACK) {
            return;
        }
        let acknowledged = c.block.acknowledged_offset(segment.ack);
        if !(0..=c.block.snd_nxt as i64).contains(&acknowledged) {
            cx.count(Counter::DropAck);
            return self.answer_with_reset(cx, segment);
        }
        self.forget_unproven(i);
        let mut c = self.connection(i);
        c.become_proven(cx.now, acknowledged);
        c.take_reflection(segment);
        self.receive_synchronized(cx, i, segment);
    }

    /// Removes the connection from its listener's unproven ones.
    pub(super) fn forget_unproven(&mut self, i: u32) {
        if !self.view(i).block.has(bit::UNPROVEN) {
            return;
        }
        self.connection(i).block.clear(bit::UNPROVEN);
        if let Some(listener) = self.listener_of(i) {
            let live = self.connection(listener).live;
            live.unproven = live.unproven.saturating_sub(1);
        }
    }

    /// An unproven connection is reset: it still counts for a while (RFC 7413 §5.1).
    fn count_on(&mut self, now: Instant, i: u32) {
        if let Some(listener) = self.listener_of(i) {
            let c = self.connection(listener);
            c.live.unproven += 1;
            let generation = c.block.generation;
            self.early_resets.note(now, listener, generation);
        }
    }

    /// After a rebirth: unproven connections count for their listeners again; those reset before do not.
    pub(super) fn rebuild_unproven(&mut self, i: u32) {
        if self.view(i).block.has(bit::UNPROVEN)
            && let Some(listener) = self.listener_of(i)
        {
            self.connection(listener).live.unproven += 1;
        }
    }
}
