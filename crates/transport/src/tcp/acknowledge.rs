//! When to acknowledge (RFC 5681 §4.2, RFC 1122 §4.2.3.2) and which window to offer (RFC 9293
//! §3.8.6.2.2: no silly windows).
//!
//! Acknowledgements leave in `flush`, so a batch of arriving segments is answered once. Only
//! duplicate acknowledgements to a peer without SACK go out one by one, as it counts them.

use super::block::{Block, NOWHERE, State, bit};
use super::connection::Connection;
use super::counters::Counter;
use super::emit::Outgoing;
use super::engine::Tcp;
use super::live::{Live, due};
use super::options::Builder;
use super::scoreboard::Range;
use crate::edge::Out;
use crate::page::Page;
use crate::timers::NEVER;
use core::time::Duration;
use eft_base::Instant;
use eft_channel::socket::Opt;
use eft_component::{Context, Outbox};

/// RFC 5681 allows 500 ms; Linux waits 40.
const DELAY: Duration = Duration::from_millis(40);
/// Segments acknowledged at once at the start, so that the peer's window opens fast.
const QUICK_ACKS: u32 = 16;
/// The largest window that a SYN can offer (RFC 7323 §2.2).
const FIRST_WINDOW_MAX: u64 = 65535;
/// Most duplicate acknowledgements at a time.
const DUPLICATES_MAX: u32 = 64;

/// Bytes of the receive ring that may be promised: all, or less if the application set SO_RCVBUF;
/// the shift's granularity is kept back so that rounding up never promises space that does not
/// exist. Never more than the window field can express.
pub(super) fn promisable(page: &Page, scale: u8) -> u64 {
    let ring = page.receive_len();
    let wanted = match page.option(Opt::ReceiveBuffer) as usize {
        0 => ring,
        n => n.clamp(4096, ring),
    };
    let expressible = 65535u64 << scale;
    ((wanted - (1 << scale).min(wanted - 1)) as u64).min(expressible)
}

/// How far the window may reach if the ring has room up to `ring_edge`. A peer that has not acknowledged our SYN-ACK is promised
/// no more than that offered, as on Linux: with a Fast Open cookie alone it has not shown that it hears us.
fn edge_within(block: &Block, ring_edge: u64) -> u64 {
    if block.has(bit::UNPROVEN) { ring_edge.min(block.rcv_adv) } else { ring_edge }
}

impl Live {
    /// Whether what is sent now seems to answer what came: the acknowledgments of what comes next go with further answers, as on
    /// Linux (`inet_csk_inc_pingpong_cnt`), and requests are not acknowledged by themselves.
    pub(super) fn answers(&self, now: Instant) -> bool {
        self.heard_text && now.saturating_since(self.run_at) < DELAY
    }
}

impl Connection<'_> {
    /// Sets the window's right edge as far as it may go without silly steps, and returns the window
    /// field of an ordinary segment.
    pub(super) fn offer_window(&mut self, now: Instant) -> u16 {
        let live = &mut *self.live;
        let block = &mut self.block;
        let Some(page) = &live.page else {
            let left = block.rcv_adv.saturating_sub(block.rcv_nxt);
            return (left >> block.receive_scale).min(65535) as u16;
        };
        // The application may have read on since its last doorbell; an unexpected value is no
        // reason to distrust it here.
        let taken = page.receive_taken();
        if taken >= block.rcv_taken && taken <= block.rcv_nxt {
            block.rcv_taken = taken;
            live.statistics.arriving.on_taken(now, taken, block.rcv_nxt - taken);
        }
        let scale = block.receive_scale;
        let limit = promisable(page, scale);
        let threshold = (limit / 2).min(block.mss as u64);
        let ring_edge = block.rcv_taken + limit;
        let edge = edge_within(block, ring_edge);
        let target = if edge >= block.rcv_adv + threshold { edge } else { block.rcv_adv };
        let window = target.saturating_sub(block.rcv_nxt);
        let ring_end = block.rcv_taken + page.receive_len() as u64;
        let mut field = (window.div_ceil(1 << scale)).min(65535);
        if block.rcv_nxt + (field << scale) > ring_end {
            field = (window >> scale).min(65535);
        }
        block.rcv_adv = block.rcv_adv.max(block.rcv_nxt + (field << scale));
        // The application rings only when reading matters: when the peer has less than half of the
        // ring left, and could have more.
        if edge < ring_edge || block.rcv_adv - block.rcv_nxt > limit / 2 {
            page.set_receive_notify(NOWHERE);
        } else {
            let step = update_threshold(limit, block.mss);
            let notify = (block.rcv_adv + step).saturating_sub(limit);
            page.arm_receive_notify(notify);
        }
        field as u16
    }

    /// The window of a SYN or SYN-ACK, which is never scaled (RFC 7323 §2.2).
    pub(super) fn promise_first_window(&mut self) {
        let Some(page) = &self.live.page else {
            return;
        };
        let block = &mut self.block;
        let edge = block.rcv_taken + promisable(page, block.receive_scale);
        let window = edge.saturating_sub(block.rcv_nxt).min(65535);
        block.rcv_adv = block.rcv_nxt + window;
    }

    /// The application took bytes: a window update is due if the window can grow noticeably.
    pub(super) fn update_window(&mut self) {
        let Some(page) = &self.live.page else {
            return;
        };
        let block = &*self.block;
        // Before the peer has sent anything, the first acknowledgement updates the window soon
        // enough.
        if !block.state().may_receive() || block.rcv_nxt == 0 {
            return;
        }
        // Nor is a segment of its own worth it while the peer has most of the window of our SYN or SYN-ACK left, which is not
        // scaled: what came with a SYN is no reason.
        let first = block.rcv_adv <= FIRST_WINDOW_MAX + block.mss as u64;
        // Text that begins within the window may end behind it, where the ring has room.
        if first && block.rcv_adv.saturating_sub(block.rcv_nxt) > FIRST_WINDOW_MAX / 2 {
            return;
        }
        let limit = promisable(page, block.receive_scale);
        let edge = edge_within(block, block.rcv_taken + limit);
        if edge >= block.rcv_adv + update_threshold(limit, block.mss) {
            self.mark(due::ACK);
        }
    }

    /// Data arrived in order: `len` bytes in `segments` wire segments.
    pub(super) fn owe_acknowledgement(&mut self, now: Instant, segments: u32, len: u64) {
        let fed = self.is_fed_in_small_pieces(now, len);
        let live = &mut *self.live;
        live.unacked_segments += segments;
        let wished = live.page.as_ref().is_some_and(|p| p.option(Opt::QuickAck) == 1);
        let quick = live.quick_acks > 0 || wished || fed;
        if live.unacked_segments >= 2 || quick {
            live.quick_acks = live.quick_acks.saturating_sub(segments);
            self.mark(due::ACK);
        } else if live.ack_at == NEVER {
            live.ack_at = now + DELAY;
        }
    }

    /// The peer's FIN arrived. A program mostly answers it at once by its own, which acknowledges it, too, so it waits for that, as
    /// on Linux: a short connection takes one packet less. Linux does not wait where no text came before, since it has no measure
    /// yet for how long.
    pub(super) fn owe_acknowledgement_of_end(&mut self, now: Instant) {
        match self.live.heard_text {
            true => self.live.ack_at = self.live.ack_at.min(now + DELAY),
            false => self.mark(due::ACK),
        }
    }

    /// Within this host a segment that is not full shows that the sender has no more, or that its buffer is full of what is not
    /// acknowledged, which may be less than two full segments of a path without a device. If the application says nothing that
    /// would carry the acknowledgment, a delay would only hold such a sender up. (Linux acknowledges when the reader has taken
    /// all; tcp does not hear of that.)
    fn is_fed_in_small_pieces(&self, now: Instant, len: u64) -> bool {
        let is_silent = || now.saturating_since(self.live.last_sent) >= DELAY;
        self.block.has(bit::LOCAL) && len < self.block.mss as u64 && is_silent()
    }

    /// After loss or idleness the peer's window needs quick answers again.
    pub(super) fn acknowledge_quickly(&mut self) {
        self.live.quick_acks = QUICK_ACKS;
    }

    /// A segment that carries the present acknowledgment was sent.
    pub(super) fn on_acknowledged(&mut self) {
        let live = &mut *self.live;
        live.due &= !due::ACK;
        live.ack_at = NEVER;
        live.unacked_segments = 0;
        self.block.rcv_acked = self.block.rcv_nxt;
    }

    /// The options of every segment after the handshake.
    pub(super) fn ordinary_options(&self, cx: &Context) -> Builder {
        let block = &*self.block;
        let mut options = Builder::beside(block.signature_len());
        if block.has(bit::TIMESTAMPS) {
            options.timestamps(block.timestamp(cx.now), block.ts_recent);
        }
        options
    }

    /// SACK blocks (RFC 2018 §4), a duplicate first (RFC 2883 §4), behind the counts of marked bytes.
    fn add_reports(&mut self, now: Instant, options: &mut Builder) {
        if !self.block.has(bit::SACK) {
            return self.add_byte_counts(now, options, 0, 0);
        }
        let mut ranges = [Range { start: 0, end: 0 }; 4];
        let room = options.sack_room().min(ranges.len()).min(self.sack_blocks_beside_counts(now));
        let mut count = 0;
        if let Some(duplicate) = self.live.duplicate.take() {
            ranges[0] = duplicate;
            count = 1;
        }
        count += self.live.out_of_order.report(&mut ranges[count..room]);
        self.add_byte_counts(now, options, 0, count);
        options.sack(&ranges[..count], |offset| self.block.receive_sequence(offset));
    }

    /// Whether some out-of-order ranges were not reported to the peer yet.
    fn has_unreported(&self) -> bool {
        self.block.has(bit::SACK) && self.live.out_of_order.has_unreported()
    }

    /// Whether the connection may send acknowledgements; TIME-WAIT and embryonic ones may, too.
    pub(super) fn can_acknowledge(&self) -> bool {
        self.block.state().is_synchronized() || self.block.state() == State::SynReceived
    }
}

impl Tcp {
    /// Sends the acknowledgement that is due before a segment with so many bytes, if it must say what has no room there.
    pub(super) fn acknowledge_before(&mut self, cx: &Context, i: u32, payload: u64, out: &mut Outbox<Out>) {
        if self.connection(i).owes_byte_counts_before(cx.now, payload) {
            self.send_acknowledgements(cx, i, out);
        }
    }

    /// Sends the acknowledgements that are due. False if there was no room.
    pub(super) fn send_acknowledgements(&mut self, cx: &Context, i: u32, out: &mut Outbox<Out>) -> bool {
        let duplicates = self.connection(i).live.duplicate_acks.min(DUPLICATES_MAX);
        for _ in 1..duplicates.max(1) {
            if !self.send_acknowledgement(cx, i, out) {
                return false;
            }
            self.connection(i).live.duplicate_acks -= 1;
        }
        if !self.send_acknowledgement(cx, i, out) {
            return false;
        }
        // A batch may have changed more ranges than one acknowledgement reports (RFC 2018 §4).
        while self.connection(i).has_unreported() {
            if !self.send_acknowledgement(cx, i, out) {
                return false;
            }
        }
        let mut c = self.connection(i);
        c.live.duplicate_acks = 0;
        c.on_acknowledged();
        true
    }

    /// Sends one pure acknowledgement, with what was received out of order.
    fn send_acknowledgement(&mut self, cx: &Context, i: u32, out: &mut Outbox<Out>) -> bool {
        if !self.has_room(out) {
            return false;
        }
        let mut c = self.connection(i);
        let window = c.offer_window(cx.now);
        let mut options = c.ordinary_options(cx);
        c.add_reports(cx.now, &mut options);
        let flags = c.acknowledging_flags(true);
        let block = &*c.block;
        let segment = Outgoing {
            urgent: c.view().urgent_pointer(block.snd_nxt),
            ..Outgoing::bare(
                block.tuple,
                block.send_sequence(block.snd_nxt),
                block.acknowledgment(),
                flags,
                window,
                options.bytes(),
            )
        };
        if !self.transmit_bare(cx, out, i, segment) {
            return false;
        }
        cx.count(Counter::PureAcksSent);
        true
    }
}

/// How much the window must be able to grow before an update is worth a segment of its own.
fn update_threshold(limit: u64, mss: u16) -> u64 {
    (limit / 4).max((limit / 2).min(mss as u64))
}
